import StratusAssets
import StratusCluster
import StratusHTTP
import StratusIdentity
import StratusModel
import StratusRecords
import StratusRows
import StratusRuntime
import StratusSealing

extension AssetSurface {
    private static let patienceMin = Duration.seconds(300)
    private static let speedMin: UInt64 = 1 << 10

    func download(_ request: HTTPRequest, link text: String, name: String?) async throws
        -> HTTPResponse
    {
        let link: DownloadLink
        do throws(AssetTextRefusal) {
            link = try DownloadLink(
                text, openedWith: self.kit.ciphers.links, at: self.world.wallMilliseconds)
        } catch {
            throw error == .expired
                ? AssetFailure.gone("the download URL has expired: read the record again")
                : AssetFailure.forbidden("unknown download URL")
        }
        guard let stored = try await self.stored(link.asset, in: link.database) else {
            throw AssetFailure.notFound
        }
        let size = stored.body.size
        let tag = Self.tag(of: stored.asset)
        var headers = self.headers(name: name, tag: tag, link)
        let wanted = request.head.headers
        if let known = wanted["If-None-Match"], Self.matches(known, tag) {
            return HTTPResponse(status: 304, headers: headers)
        }
        var range = 0..<size
        var status = 200
        if ByteRange.counts(ifRange: wanted["If-Range"], tag: tag) {
            switch ByteRange(wanted["Range"], size: size) {
            case .whole: break
            case .part(let part):
                range = part
                status = 206
                headers.set("Content-Range", ByteRange.contentRange(part, size: size))
            case .unsatisfiable: throw AssetFailure.unsatisfiable(size: size)
            }
        }
        guard !stored.body.isLost else { throw AssetFailure.gone("the file is lost") }
        let length = Int(range.upperBound - range.lowerBound)
        if request.head.method == "HEAD" || length == 0 {
            return HTTPResponse(
                status: status, headers: headers, body: .stream(EmptyBody(), length: length))
        }
        // In a public database nobody knows the reader: an address reads each file by itself.
        let owner = link.database.owner
        let reader = PlaceHolder(
            link.database.container, owner.isEmpty ? "\(request.peer) \(tag)" : owner)
        let (body, share) = try await self.begin(stored, range, by: reader)
        var response = HTTPResponse(
            status: status, headers: headers, body: .stream(body, length: length))
        response.held = share
        return response
    }

    /// Begins to read a part of an asset, whose first bytes are there when this returns. If the file
    /// is sealed anew meanwhile, it goes on with the new body.
    ///
    /// - Parameter reader: who shares the memory of transfers with others.
    func begin(
        _ stored: StoredAsset, _ range: Range<UInt64>, by reader: PlaceHolder
    ) async throws -> (body: any ResponseBody, share: TransferBuffers.Share) {
        let (world, kit) = (self.world, self.kit)
        let length = Int(range.upperBound - range.lowerBound)
        guard
            let share = await kit.buffers.wait(
                for: min(TransferBuffers.downloadSize, 2 * length + 4_096),
                of: reader, now: { world.now }, sleep: kit.sleep)
        else { throw AssetFailure.later("too many transfers at once", seconds: 10) }
        let patience = max(
            Self.patienceMin, .seconds(Int64(clamping: UInt64(length) / Self.speedMin)))
        let body = FollowedBody(
            of: stored, range, in: self, until: self.world.now + patience, share)
        try await body.begin()
        return (body, share)
    }

    /// Reads a part of a body as it was looked up.
    func reading(
        _ stored: StoredAsset, _ range: Range<UInt64>, until deadline: MonotonicTime,
        _ share: TransferBuffers.Share
    ) async throws -> BodyBeginning {
        guard let members = await self.kit.members(stored.database) else {
            throw AssetFailure.later("the database cannot be reached", seconds: 1)
        }
        let key = try await self.kit.keys.open(
            stored.key, version: stored.body.keyVersion, of: stored.database)
        let plan = BodyReadPlan(
            manifest: stored.body, members: members, range: range,
            sealer: BodySealer(
                databaseKey: key, version: stored.body.keyVersion, database: stored.database,
                body: stored.body.body), deadline: deadline, share: share)
        return await self.kit.bodies.begin(plan)
    }

    /// The asset with its manifest and key; nil: it is gone.
    func stored(_ asset: AssetID, in database: DatabaseID) async throws -> StoredAsset? {
        try await self.kernel.partitions.plain.ask(
            AssetAsk(database) { $0.asset = asset }, at: .database(database), as: .system())
    }

    private func headers(name: String?, tag: String, _ link: DownloadLink) -> HeaderFields {
        let disposition = ContentDisposition(name: name)
        let life = max(0, (link.expiresMilliseconds - self.world.wallMilliseconds) / 1_000)
        return [
            "Content-Type": disposition.contentType, "Content-Disposition": disposition.field,
            "ETag": tag, "Accept-Ranges": "bytes",
            "Cache-Control": "private, max-age=\(life), immutable",
            "Content-Security-Policy": "sandbox; default-src 'none'",
            "X-Content-Type-Options": "nosniff", "Cross-Origin-Resource-Policy": "cross-origin",
        ]
    }

    /// An asset's bytes never change.
    private static func tag(of asset: AssetID) -> String {
        "\"" + Hexadecimal.text(withUnsafeBytes(of: asset.raw.bigEndian) { Bytes($0) }) + "\""
    }

    /// A list of tags, weak ones too: for a GET they are compared weakly (RFC 9110 §13.1.2).
    static func matches(_ field: String, _ tag: String) -> Bool {
        field.split(separator: ",").contains { element in
            let text = element.drop { $0 == " " }.reversed().drop { $0 == " " }.reversed()
            let known = String(text)
            return known == "*" || known == tag || known == "W/" + tag
        }
    }
}

/// For an answer whose head alone matters.
struct EmptyBody: ResponseBody {
    func next() async throws -> Bytes? { nil }
}
