import StratusHTTP
import StratusModel
import StratusRecords
import StratusRuntime

/// The inside of a package. To WebDAV it is a folder; what happens in it is one change of the package.
extension DAVService {
    /// A place within a package, or the package itself.
    struct Inside: Sendable {
        var package: DocumentItem
        var content: DocumentPackage
        /// Empty: the package itself.
        var path: String

        var part: DocumentPart? { self.path.isEmpty ? nil : self.content.part(self.path) }

        /// A part as if it were an item. It has the identity of the package, so that the locks of
        /// the package hold for it.
        func item(_ part: DocumentPart) -> DocumentItem {
            var item = DocumentItem(
                id: self.package.id, kind: part.content == .folder ? .folder : .file,
                name: DocumentPackage.names(part.path).last ?? "", folder: "",
                editedAtMilliseconds: self.package.editedAtMilliseconds,
                device: self.package.device)
            item.contentTag = part.tag
            item.size = part.content.size
            item.tag = self.package.tag
            return item
        }

        func item(at path: String) -> DocumentItem? {
            self.content.part(path).map { self.item($0) }
        }

        var members: [DocumentItem] { self.content.children(of: self.path).map { self.item($0) } }
    }

    /// Contents in a package that are larger become files of their own, where assets are kept.
    private static let inlineSizeMax = 16 << 10

    /// Reads the package that the names go through or end at; nil: there is none.
    func inside(_ names: [String], _ chain: [DocumentItem?]) async throws -> Inside? {
        guard let index = chain.firstIndex(where: { $0?.kind == .package }),
            let package = chain[index]
        else { return nil }
        // Only what is in it needs its list, and reading the package itself.
        guard index < names.count || DAVSurface.reading.contains(self.head.method) else {
            return nil
        }
        var content = DocumentPackage([])
        if package.contentTag != 0 {
            guard
                case .content(let found, let version, let stored) = try await self.documents.ask(
                    .content(id: package.id, version: nil))
            else { throw RouteError.otherKind }
            guard found != nil, version != nil, case .package(let list) = stored else {
                throw Overtaken.changed
            }
            content = list
        }
        return Inside(
            package: package, content: content,
            path: names.dropFirst(index).joined(separator: "/"))
    }

    private func submit(
        _ edits: [DocumentPackageEdit], in inside: Inside, with others: [DocumentOperation] = [],
        _ shown: [String]
    ) async throws -> DocumentItem? {
        let results = try await self.submit([Self.edit(edits, in: inside)] + others, shown)
        guard case .item(let item)? = results.first else { throw RouteError.otherKind }
        return item
    }

    private static func edit(
        _ edits: [DocumentPackageEdit], in inside: Inside
    ) -> DocumentOperation {
        .edit(
            id: inside.package.id, edits, countMax: DocumentPackage.countMax,
            sizeMax: DocumentPackage.sizeMax)
    }

    func respond(
        in inside: Inside, at target: Place, over known: DocumentItem?, _ ifHeader: IfHeader?,
        _ shown: [String]
    ) async throws -> HTTPResponse {
        switch self.head.method {
        case "GET", "HEAD": return try await self.get(target, in: inside)
        case "PROPFIND": return try await self.propertiesFound(target)
        case "PROPPATCH":
            throw DAVFailure(403, "what is in a package keeps no properties of its own")
        case "PUT": return try await self.put(inside, target, over: known, shown)
        case "MKCOL":
            guard self.exchange.body.isEmpty else {
                throw DAVFailure(415, "a new folder takes no body")
            }
            if target.item != nil { throw DAVFailure(405, "the name is taken") }
            guard target.folder != nil else { throw DAVFailure(409, "the folder is not there") }
            _ = try await self.submit(
                [.put(path: inside.path, .folder, seen: nil)], in: inside, shown)
            return HTTPResponse(status: 201)
        case "DELETE":
            guard let item = target.item else { throw DAVFailure(404, "no such item") }
            try self.checkWholeDepth(item)
            _ = try self.checkConditions(item)
            _ = try await self.submit(
                [.remove(path: inside.path, seen: item.kind == .file ? item.contentTag : nil)],
                in: inside, shown)
            return HTTPResponse(status: 204)
        case "LOCK": return try await self.lock(target, ifHeader, shown)
        case "UNLOCK": return try await self.unlock(target)
        default: throw DAVFailure(405, "WebDAV has no such method")
        }
    }

    // MARK: GET and PUT

    private func get(_ target: Place, in inside: Inside) async throws -> HTTPResponse {
        guard let item = target.item else { throw DAVFailure(404, "no such item") }
        guard let part = inside.part, let content = DocumentContent(part.content) else {
            return self.page(target, item, members: inside.members)
        }
        return try await self.answer(content, of: item)
    }

    private func put(
        _ inside: Inside, _ target: Place, over known: DocumentItem?, _ shown: [String]
    ) async throws -> HTTPResponse {
        guard let content else { preconditionFailure("a 'PUT' has a content") }
        _ = try self.slot(ofPut: target)
        // In a package one content takes the place of another, so nobody's may be replaced unseen.
        guard target.item?.contentTag == known?.contentTag else {
            throw DAVFailure(412, "another content came while this one was sent")
        }
        let part: DocumentPart.Content
        switch content {
        case .file(let file): part = .file(file)
        case .inline(let bytes):
            guard bytes.count > Self.inlineSizeMax, let files else {
                part = .inline(bytes)
                break
            }
            guard
                case .file(let file) = try await files.store(
                    CollectedBody(bytes), of: UInt64(bytes.count),
                    in: self.exchange.holder.home, by: self.exchange.sender.name,
                    freeing: target.item?.size ?? 0, judge: {})
            else { throw RouteError.otherKind }
            part = .file(file)
        case .package: preconditionFailure("the content of a 'PUT' is bytes")
        }
        let package = try await self.submit(
            [.put(path: inside.path, part, seen: target.item?.contentTag)], in: inside, shown)
        var headers: HeaderFields = [:]
        if let package { headers.set("ETag", Self.tag(package)) }
        return HTTPResponse(status: target.item == nil ? 201 : 204, headers: headers)
    }

    // MARK: COPY and MOVE

    /// Copies or moves where a package is the source's place, the destination's, or both.
    func transfer(
        _ source: Place, to target: Place, mayOverwrite: Bool, _ shown: [String]
    ) async throws -> HTTPResponse {
        let isMove = self.head.method == "MOVE"
        guard let item = source.item else { throw DAVFailure(404, "no such item") }
        guard target.folder != nil else { throw DAVFailure(409, "the folder is not there") }
        let isNew = target.item == nil
        guard isNew || mayOverwrite else { throw DAVFailure(412, "the destination is there") }
        if let from = source.inside, let to = target.inside, from.package.id == to.package.id {
            let (old, new) = (from.path, to.path)
            let sourceKeys = DocumentNames.folded(old)
            let targetKeys = DocumentNames.folded(new)
            let slash: Bytes = [UInt8(ascii: "/")]
            guard sourceKeys != targetKeys || isMove && Bytes(old.utf8) != Bytes(new.utf8) else {
                throw DAVFailure(403, "source and destination are the same")
            }
            guard !targetKeys.starts(with: sourceKeys + slash),
                !sourceKeys.starts(with: targetKeys + slash)
            else { throw DAVFailure(403, "one of the two holds the other") }
            var edits: [DocumentPackageEdit] = []
            if let there = target.item, sourceKeys != targetKeys {
                edits.append(
                    .remove(path: new, seen: there.kind == .file ? there.contentTag : nil))
            }
            edits.append(.transfer(from: old, to: new, isMove: isMove))
            _ = try await self.submit(edits, in: from, shown)
            return HTTPResponse(status: isNew ? 201 : 204)
        }
        guard item.kind == .file else {
            throw DAVFailure(403, "into a package, and out of it, go single files")
        }
        var operations: [DocumentOperation] = []
        let content = try await self.fileContent(of: source, item)
        if let to = target.inside {
            guard target.item?.kind != .folder else {
                throw DAVFailure(403, "a folder is at the destination")
            }
            let part: DocumentPart.Content
            switch content {
            case .inline(let bytes): part = .inline(bytes)
            case .file(let file): part = .file(file)
            case .package: throw DAVFailure(403, "a package cannot be in another one")
            }
            operations.append(
                Self.edit([.put(path: to.path, part, seen: target.item?.contentTag)], in: to))
        } else {
            guard let folder = target.folder, let name = target.names.last else {
                throw DAVFailure(409, "the folder is not there")
            }
            if let old = target.item { operations += self.removal(of: old) }
            operations.append(
                .create(
                    id: self.draw(), .file, name: name, folder: folder.id, .refuse,
                    content: content, atMilliseconds: self.now))
        }
        if isMove {
            if let from = source.inside {
                operations.append(
                    Self.edit([.remove(path: from.path, seen: item.contentTag)], in: from))
            } else {
                operations += self.removal(of: item)
            }
        }
        _ = try await self.submit(operations, shown)
        return HTTPResponse(status: isNew ? 201 : 204)
    }

    private func fileContent(
        of place: Place, _ item: DocumentItem
    ) async throws -> DocumentContent {
        if let part = place.inside?.part, let content = DocumentContent(part.content) {
            return content
        }
        if item.contentTag == 0 { return .inline([]) }
        guard
            case .content(let found, let version, let stored) = try await self.documents.ask(
                .content(id: item.id, version: nil))
        else { throw RouteError.otherKind }
        guard found?.contentTag == item.contentTag, version != nil else {
            throw Overtaken.changed
        }
        return stored
    }
}
