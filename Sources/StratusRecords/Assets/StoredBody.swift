import StratusCoding
package import StratusModel

/// A body that nodes have stored and that no row names yet.
package struct StoredBody: Sendable, Equatable {
    /// Chunks of one body: 64 GiB in chunks of 256 KiB.
    package static let chunkCountMax = 1 << 18
    package static let storerCountMax = 16

    package var body: BodyID
    /// Plain bytes.
    package var size: UInt64
    package var chunkSize: UInt32
    /// The version of the database's key that it is sealed under; never 0.
    package var keyVersion: UInt32
    package var chunks: [BodyManifest.Chunk]
    /// As it was said to the nodes that stored copies: by then they may have removed them.
    package var orphanAfterMilliseconds: Int64
    /// Nodes that have all of it. A leader appends what names the body only if they are enough.
    package var storers: [CopyHolding]

    package init(
        body: BodyID, size: UInt64, chunkSize: UInt32, keyVersion: UInt32,
        chunks: [BodyManifest.Chunk], orphanAfterMilliseconds: Int64, storers: [CopyHolding]
    ) {
        self.body = body
        self.size = size
        self.chunkSize = chunkSize
        self.keyVersion = keyVersion
        self.chunks = chunks
        self.orphanAfterMilliseconds = orphanAfterMilliseconds
        self.storers = storers
    }

    /// An empty one.
    init() {
        self.init(
            body: BodyID(), size: 0, chunkSize: AssetLimits.chunkSizeDefault, keyVersion: 1,
            chunks: [], orphanAfterMilliseconds: 0, storers: [])
    }

    /// Whether its numbers agree with each other and lie within their bounds.
    package var isConsistent: Bool {
        self.keyVersion > 0 && self.manifest(of: 0, namedAt: .zero).isConsistent
    }

    func manifest(of database: UInt32, namedAt: LogIndex) -> BodyManifest {
        BodyManifest(
            body: self.body, database: database, namedAt: namedAt, size: self.size,
            chunkSize: self.chunkSize, keyVersion: self.keyVersion, chunks: self.chunks)
    }

    /// Size, size of a chunk, version of the key and end, which stand together in each operation.
    mutating func layNumbers<F: Form>(in form: inout F) throws(F.Problem) {
        try form.lay(&self.size)
        try form.lay(&self.chunkSize)
        try form.lay(&self.keyVersion)
        try form.lay(&self.orphanAfterMilliseconds)
    }

    mutating func layStorers<F: Form>(in form: inout F) throws(F.Problem) {
        try form.lay(&self.storers, atMost: Self.storerCountMax)
    }

    mutating func layChunks<F: Form>(in form: inout F) throws(F.Problem) {
        try form.lay(&self.chunks, atMost: Self.chunkCountMax)
        try form.require(self.isConsistent)
    }
}

/// An operation that is appended only where nodes hold all copies of a body.
protocol NamesCopies {
    /// The nodes that hold them; nil: there are no copies.
    var holdings: [CopyHolding]? { get }
}
