import StratusHTTP
import StratusModel
import StratusRecords
import StratusRuntime

/// `LOCK` and `UNLOCK`.
extension DAVService {
    private static let usualSeconds: Int64 = 600

    func lock(
        _ target: Place, _ ifHeader: IfHeader?, _ shown: [String]
    ) async throws -> HTTPResponse {
        if self.exchange.body.isEmpty { return try await self.refresh(target, shown) }
        let (isExclusive, owner) = try self.wanted()
        let isInfinite: Bool
        switch self.head.headers["Depth"]?.lowercased() {
        case "0": isInfinite = false
        case nil, "infinity": isInfinite = true
        default: throw DAVFailure(400, "the depth of a lock is 0 or infinity")
        }
        var operations: [DocumentOperation] = []
        let item: String
        if let known = target.item {
            item = known.id
        } else if let inside = target.inside {
            // What is in a package is locked with the whole of it.
            guard target.folder != nil else { throw DAVFailure(409, "the folder is not there") }
            item = inside.package.id
            operations.append(
                .edit(
                    id: item, [.put(path: inside.path, .inline([]), seen: nil)],
                    countMax: DocumentPackage.countMax, sizeMax: DocumentPackage.sizeMax))
        } else {
            // A lock on a name that nothing has makes an empty file.
            guard let folder = target.folder, let name = target.names.last else {
                throw DAVFailure(409, "the folder is not there")
            }
            item = self.draw()
            operations.append(
                .create(
                    id: item, .file, name: name, folder: folder.id, .refuse, content: .inline([]),
                    atMilliseconds: self.now))
        }
        let token = self.draw()
        operations.append(
            .lock(
                DocumentLock(
                    token: token, item: item, isExclusive: isExclusive, isInfinite: isInfinite,
                    owner: owner, untilMilliseconds: 0),
                milliseconds: self.seconds * 1_000, countMax: DocumentLock.countMax))
        let results = try await self.submit(operations, shown)
        guard case .lock(let lock)? = results.last else { throw RouteError.otherKind }
        var response = self.discovery(lock, target, status: target.item == nil ? 201 : 200)
        response.headers.set("Lock-Token", "<\(DAVLocks.text(token))>")
        return response
    }

    private func refresh(_ target: Place, _ shown: [String]) async throws -> HTTPResponse {
        let held = try await self.locks().on(target)
        guard let token = shown.first(where: { token in held.contains { $0.token == token } })
        else { throw DAVFailure(412, "'If' shows no token of a lock on this item") }
        let results = try await self.submit(
            [.refresh(token: token, milliseconds: self.seconds * 1_000)], shown)
        guard case .lock(let lock)? = results.last else { throw RouteError.otherKind }
        return self.discovery(lock, target, status: 200)
    }

    func unlock(_ target: Place) async throws -> HTTPResponse {
        guard let field = self.head.headers["Lock-Token"], field.hasPrefix("<"),
            field.hasSuffix(">")
        else { throw DAVFailure(400, "'Lock-Token' is missing") }
        guard let token = DAVLocks.token(String(field.dropFirst().dropLast())),
            try await self.locks().on(target).contains(where: { $0.token == token })
        else {
            throw DAVFailure(
                409, "no such lock is on this item", condition: "lock-token-matches-request-uri")
        }
        _ = try await self.submit([.unlock(token: token)], [token])
        return HTTPResponse(status: 204)
    }

    private func discovery(
        _ lock: DocumentLock, _ target: Place, status: Int
    ) -> HTTPResponse {
        let written = DAVLocks.activeLock(lock, root: self.root(of: lock, target), at: self.now)
        return HTTPResponse(
            status: status, headers: ["Content-Type": "application/xml; charset=UTF-8"],
            body: .bytes(
                Bytes(
                    "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<D:prop xmlns:D=\"DAV:\">".utf8)
                    + DAVLocks.discovery(written) + Bytes("</D:prop>\n".utf8)))
    }

    /// The address of the item that a lock is on, which is the target or a folder above it.
    func root(of lock: DocumentLock, _ place: Place) -> String {
        for (count, item) in place.chain.enumerated() where item?.id == lock.item {
            return self.route.href(
                Array(place.names[..<count]), isFolder: item.map { $0.kind != .file } ?? false)
        }
        return self.href(place)
    }

    private func wanted() throws -> (isExclusive: Bool, owner: Bytes) {
        let info = try self.document("lockinfo")
        guard let scope = info.element(.dav("lockscope")),
            info.element(.dav("locktype"))?.element(.dav("write")) != nil
        else { throw DAVFailure(400, "'lockinfo' has no scope or no type") }
        let isExclusive = scope.element(.dav("exclusive")) != nil
        guard isExclusive || scope.element(.dav("shared")) != nil else {
            throw DAVFailure(400, "the scope of a lock is exclusive or shared")
        }
        // Answers have it as it is written here.
        let owner =
            info.element(.dav("owner")).map {
                DAVProperties.alone($0, prefixes: [("DAV:", "D")])
            } ?? []
        return (isExclusive, owner)
    }

    /// The first time of `Timeout` that says a number.
    private var seconds: Int64 {
        let longest = DocumentLock.spanMilliseconds / 1_000
        for part in self.head.headers.list("Timeout") {
            if part.lowercased() == "infinite" { return longest }
            guard part.lowercased().hasPrefix("second-"),
                let seconds = Int64(part.dropFirst("second-".count)), seconds > 0
            else { continue }
            return min(seconds, longest)
        }
        return Self.usualSeconds
    }
}
