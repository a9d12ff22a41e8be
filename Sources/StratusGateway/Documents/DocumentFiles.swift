import StratusAssets
import StratusHTTP
import StratusModel
import StratusRecords
import StratusRuntime
import Synchronization

/// Contents that are too large for a record: their bytes are assets of the person's database.
struct DocumentFiles: Sendable {
    /// The largest content that a record holds.
    static let inlineSizeMax = DocumentRules().contentSizeMax
    /// How long a file stays that was sent with WebDAV and that no record came to hold. The command
    /// that names it follows at once.
    private static let pinMilliseconds: Int64 = 600_000

    private let assets: AssetSurface

    /// Nil where nothing keeps assets.
    init?(_ kit: AssetKit?, _ kernel: GatewayKernel) {
        guard let kit else { return nil }
        self.assets = AssetSurface(kit, kernel)
    }

    var sizeMax: UInt64 { self.assets.kit.settings.sizeMax }

    /// Takes the bytes of a content to the disks of a majority.
    ///
    /// - Parameters:
    ///   - length: what the client said, if it did.
    ///   - freedSize: bytes of the content whose place it takes.
    ///   - judge: asked once the bytes are there; what it throws discards them.
    func store(
        _ body: any RequestBody, of length: UInt64?, in database: DatabaseID, by user: String,
        freeing freedSize: UInt64, judge: @escaping @Sendable () async throws -> Void
    ) async throws -> DocumentContent {
        try await self.assets.kit.keepUp()
        let ticket = self.assets.ticket(for: database, by: user, sizeMax: self.sizeMax)
        let (pinned, size) = try await self.assets.store(
            body, of: length, ticket,
            pin: PinTerms(
                milliseconds: Self.pinMilliseconds, freedSize: freedSize, judge: judge))
        return .file(
            DocumentFile(asset: pinned.asset, checksum: pinned.fileChecksum, size: size))
    }

    /// The answer to a request for a content, or for a part of it.
    ///
    /// - Parameters:
    ///   - headers: those of the whole, with its tag.
    ///   - files: nil: nothing keeps assets here, so no content is one.
    ///   - reader: who shares the memory of transfers with others; nil: the owner.
    static func answer(
        _ content: DocumentContent, _ head: RequestHead, _ headers: HeaderFields, tag: String,
        of database: DatabaseID, in files: DocumentFiles?, by reader: String? = nil
    ) async throws -> HTTPResponse {
        var headers = headers
        var status = 200
        let size = content.size
        var range = 0..<size
        if ByteRange.counts(ifRange: head.headers["If-Range"], tag: tag) {
            switch ByteRange(head.headers["Range"], size: size) {
            case .whole: break
            case .part(let part):
                range = part
                status = 206
                headers.set("Content-Range", ByteRange.contentRange(part, size: size))
            case .unsatisfiable: throw AssetFailure.unsatisfiable(size: size)
            }
        }
        let length = Int(range.upperBound - range.lowerBound)
        switch content {
        case .inline(let bytes):
            let part =
                length == bytes.count
                ? bytes : Bytes(bytes[Int(range.lowerBound)..<Int(range.upperBound)])
            return HTTPResponse(status: status, headers: headers, body: .bytes(part))
        case .package: preconditionFailure("a package is read by its files")
        case .file(let file):
            guard let files, let stored = try await files.assets.stored(file.asset, in: database)
            else { throw AssetFailure.notFound }
            guard !stored.body.isLost else { throw AssetFailure.gone("the file is lost") }
            if head.method == "HEAD" || length == 0 {
                return HTTPResponse(
                    status: status, headers: headers, body: .stream(EmptyBody(), length: length))
            }
            let (body, share) = try await files.assets.begin(
                stored, range, by: PlaceHolder(database.container, reader ?? database.owner))
            var response = HTTPResponse(
                status: status, headers: headers, body: .stream(body, length: length))
            response.held = share
            return response
        }
    }

    /// What every content is sent with. What people store may be somebody's script: no page may run
    /// it on this origin.
    static func headers(tag: String) -> HeaderFields {
        [
            "Content-Type": "application/octet-stream", "ETag": tag, "Accept-Ranges": "bytes",
            "Content-Disposition": "attachment",
            "Content-Security-Policy": "sandbox; default-src 'none'",
            "X-Content-Type-Options": "nosniff",
        ]
    }
}

/// A body whose first bytes were read already. They hold their part of the bodies' memory until
/// they are taken.
final class ResumedBody: RequestBody {
    private let start: CollectedBody
    private let rest: any RequestBody
    private let share: Mutex<BodyBudget.Share?>

    init(_ start: Bytes, _ rest: any RequestBody, holding share: consuming BodyBudget.Share) {
        self.start = CollectedBody(start)
        self.rest = rest
        self.share = Mutex(share)
    }

    func next() async throws(RequestBodyError) -> Bytes? {
        self.share.withLock { $0 = nil }
        if let start = try await self.start.next() { return start }
        return try await self.rest.next()
    }
}
