package import StratusModel

// What bodies, their chunks and the nodes that hold them are laid as.

extension BodyManifest.Chunk: FormValue {
    package init() { self.init(storedSize: 0, crc: 0) }

    package mutating func lay<F: Form>(in form: inout F) throws(F.Problem) {
        try form.lay(&self.storedSize)
        try form.lay(fixed: &self.crc)
    }
}

extension CopyHolding: FormValue {
    package init() { self.init(node: NodeID(0), at: .zero) }

    package mutating func lay<F: Form>(in form: inout F) throws(F.Problem) {
        var (node, at) = (self.node.raw, self.at.raw)
        try form.lay(&node)
        try form.lay(fixed: &at)
        self = CopyHolding(node: NodeID(node), at: LogIndex(at))
    }
}

extension BodyExtent: FormValue {
    package init() { self.init(BodyID(0), chunkCount: 0) }

    package mutating func lay<F: Form>(in form: inout F) throws(F.Problem) {
        try form.lay(&self.body)
        try form.lay(&self.chunkCount)
    }
}

/// The name of the body, then the pages of its row.
extension BodyManifest: FormValue {
    package init() {
        self.init(
            body: BodyID(0), database: 0, namedAt: .zero, size: 0,
            chunkSize: AssetLimits.chunkSizeDefault, keyVersion: 1, chunks: [])
    }

    package mutating func lay<F: Form>(in form: inout F) throws(F.Problem) {
        try form.lay(
            &self,
            by: { writer, manifest in
                writer.write(body: manifest.body)
                let pages = BodyCoding.pages(of: manifest)
                writer.write(count: pages.count)
                for page in pages { writer.write(prefixed: page) }
            }
        ) { reader throws(DecodingError) in
            let body = try reader.body()
            var pages: [Bytes] = []
            for _ in 0..<(try reader.count()) { pages.append(try reader.prefixed()) }
            return try BodyCoding.manifest(of: body, pages: pages)
        }
    }
}
