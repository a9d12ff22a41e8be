import StratusHTTP
import StratusModel
import StratusRecords
import StratusRuntime

/// `PUT`, `MKCOL`, `DELETE`, `COPY` and `MOVE`.
extension DAVService {
    private func created(_ isNew: Bool, _ headers: HeaderFields = [:]) -> HTTPResponse {
        HTTPResponse(status: isNew ? 201 : 204, headers: headers)
    }

    /// The folder and the name of a place where something is to be.
    private func slot(_ place: Place) throws -> (folder: DocumentItem, name: String) {
        guard let name = place.names.last else {
            throw DAVFailure(405, "the root is there already")
        }
        guard let folder = place.folder else {
            throw DAVFailure(409, "the folder is not there")
        }
        return (folder, name)
    }

    /// Where a `PUT` stores its file.
    func slot(ofPut target: Place) throws -> (folder: DocumentItem, name: String) {
        guard self.head.headers["Content-Range"] == nil else {
            throw DAVFailure(400, "a part of a file cannot be stored")
        }
        if target.isFolder { throw DAVFailure(405, "a folder has no content") }
        _ = try self.checkConditions(target.item)
        return try self.slot(target)
    }

    /// Whether the request says what it expects to find. `*` is anything.
    private var isConditional: Bool {
        let headers = self.head.headers
        return headers["If"] != nil || headers["If-Unmodified-Since"] != nil
            || headers["If-None-Match"] != nil || headers["If-Match"].map { $0 != "*" } ?? false
    }

    /// Stores a file.
    ///
    /// - Parameter known: what was there when the request came. If another content has come since,
    ///   a request without a condition keeps both.
    func put(
        _ target: Place, over known: DocumentItem?, _ shown: [String]
    ) async throws -> HTTPResponse {
        guard let content else { preconditionFailure("a 'PUT' has a content") }
        let (folder, name) = try self.slot(ofPut: target)
        let time = self.editTime
        let operation: DocumentOperation
        if let item = target.item {
            let base = known?.contentTag ?? 0
            // A condition may hold for both, and says nothing of what nobody has seen.
            guard !self.isConditional || item.contentTag == base else {
                throw DAVFailure(412, "another content came while this one was sent")
            }
            operation = .save(
                id: item.id, content: content, basedOn: base,
                ifUnchanged: self.isConditional, atMilliseconds: time ?? self.now)
        } else {
            operation = .create(
                id: self.draw(), .file, name: name, folder: folder.id, .refuse,
                content: content, atMilliseconds: time ?? self.now)
        }
        guard case .item(let item)? = try await self.submit([operation], shown).first else {
            throw RouteError.otherKind
        }
        // Beside a later edit it is a version that waits, and has no tag here.
        let isCurrent = item.contentTag == item.tag
        var headers: HeaderFields = isCurrent ? ["ETag": Self.tag(item)] : [:]
        if time != nil { headers.set("X-OC-Mtime", "accepted") }
        return self.created(target.item == nil, headers)
    }

    /// `X-OC-Mtime`: when the file was edited, in seconds since 1970. Some clients send it.
    private var editTime: Int64? {
        guard let text = self.head.headers["X-OC-Mtime"]?.prefix(while: { $0 != "." }),
            let seconds = Int64(text), (0...253_402_300_799).contains(seconds)
        else { return nil }
        return seconds * 1_000
    }

    func makeFolder(_ target: Place, _ shown: [String]) async throws -> HTTPResponse {
        guard self.exchange.body.isEmpty else {
            throw DAVFailure(415, "a new folder takes no body")
        }
        if target.item != nil { throw DAVFailure(405, "the name is taken") }
        let (folder, name) = try self.slot(target)
        _ = try await self.submit(
            [
                .create(
                    id: self.draw(), .folder, name: name, folder: folder.id, .refuse,
                    content: nil, atMilliseconds: self.now)
            ], shown)
        return self.created(true)
    }

    func delete(_ target: Place, _ shown: [String]) async throws -> HTTPResponse {
        guard let item = target.item else { throw DAVFailure(404, "no such item") }
        try self.checkWholeDepth(item)
        _ = try self.checkConditions(item)
        _ = try await self.submit(self.removal(of: item), shown)
        return HTTPResponse(status: 204)
    }

    /// Removes what the client saw. Contents that wait to be settled it did not see: each becomes a
    /// file of its own.
    func removal(of item: DocumentItem) -> [DocumentOperation] {
        let removal = DocumentOperation.remove(
            id: item.id, basedOn: item.kind == .folder ? nil : item.contentTag)
        return item.conflicts == 0
            ? [removal] : [.separate(id: item.id, first: self.draw()), removal]
    }

    func checkWholeDepth(_ item: DocumentItem) throws {
        guard item.kind != .file, let depth = self.head.headers["Depth"] else { return }
        guard depth.lowercased() == "infinity" else {
            throw DAVFailure(400, "a folder goes with everything in it: 'Depth' is infinity")
        }
    }

    // MARK: COPY and MOVE

    func transfer(_ source: Place, _ shown: [String]) async throws -> HTTPResponse {
        let isMove = self.head.method == "MOVE"
        guard let item = source.item else { throw DAVFailure(404, "no such item") }
        guard let text = self.head.headers["Destination"] else {
            throw DAVFailure(400, "'Destination' is missing")
        }
        guard let named = DAVRoute.named(text, host: self.head.headers["Host"]) else {
            throw DAVFailure(502, "'Destination' is no place of this server")
        }
        guard named.container == self.route.container else {
            throw DAVFailure(403, "'Destination' is in another container")
        }
        let mayOverwrite: Bool
        switch self.head.headers["Overwrite"]?.uppercased() {
        case nil, "T": mayOverwrite = true
        case "F": mayOverwrite = false
        default: throw DAVFailure(400, "'Overwrite' is T or F")
        }
        if isMove { try self.checkWholeDepth(item) }
        let target = try await self.resolve(named.names)
        _ = try self.checkConditions(item)
        if source.inside != nil || target.inside != nil {
            return try await self.transfer(
                source, to: target, mayOverwrite: mayOverwrite, shown)
        }
        let (folder, name) = try self.slot(target)
        var operations: [DocumentOperation] = []
        if let old = target.item {
            if old.id == item.id {
                // The same item by a name in other case: it gets that name.
                guard isMove, target.names.last.map({ Bytes($0.utf8) }) != Bytes(item.name.utf8),
                    old.folder == item.folder
                else {
                    throw DAVFailure(403, "source and destination are the same")
                }
            } else {
                guard mayOverwrite else { throw DAVFailure(412, "the destination is there") }
                guard !source.ids.contains(old.id) else {
                    throw DAVFailure(403, "the destination holds the source")
                }
                operations += self.removal(of: old)
            }
        }
        guard !target.ids.dropLast(target.item == nil ? 0 : 1).contains(item.id) else {
            throw DAVFailure(403, "a folder cannot be in itself")
        }
        if DocumentNames.isRoot(item.id), isMove {
            throw DAVFailure(403, "'\(item.id)' cannot be moved")
        }
        if isMove {
            operations.append(
                .place(id: item.id, name: name, folder: folder.id, .refuse, tag: item.tag))
        } else {
            try await self.copy(
                item,
                as: DocumentCopy(
                    source: item.id, name: name, folder: folder.id, id: self.draw(),
                    isDeep: try self.copiesAll(item)), removing: operations, shown)
            return self.created(operations.isEmpty)
        }
        _ = try await self.submit(operations, shown)
        return self.created(operations.count == 1)
    }

    private func copiesAll(_ item: DocumentItem) throws -> Bool {
        switch self.head.headers["Depth"]?.lowercased() {
        case nil, "infinity": return true
        case "0": return false
        default:
            guard item.kind == .file else {
                throw DAVFailure(400, "the depth of a copy is 0 or infinity")
            }
            return true
        }
    }
}
