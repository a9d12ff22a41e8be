import StratusCluster
import StratusHTTP
import StratusIdentity
import StratusModel
import StratusRecords
import StratusRuntime
import StratusSealing

/// The caller's documents: files and folders with identities, in JSON.
struct DocumentService: Sendable {
    let exchange: Exchange

    static let operations = [
        GatewayOperation("items/list", of: .documents, in: .private, needs: .user) {
            try await DocumentService(exchange: $0).list($1)
        },
        GatewayOperation("items/lookup", of: .documents, in: .private, needs: .user) {
            try await DocumentService(exchange: $0).lookUp($1)
        },
        GatewayOperation("items/modify", of: .documents, in: .private, needs: .user) {
            try await DocumentService(exchange: $0).modify($1)
        },
        GatewayOperation("versions/list", of: .documents, in: .private, needs: .user) {
            try await DocumentService(exchange: $0).versions($1)
        },
        GatewayOperation("content/upload", of: .documents, in: .private, needs: .user) {
            try await DocumentService(exchange: $0).uploadURL($1)
        },
        GatewayOperation("content/download", of: .documents, in: .private, needs: .user) {
            try await DocumentService(exchange: $0).downloadURL($1)
        },
        GatewayOperation("data/remove", of: .documents, in: .private, needs: .user) {
            try await DocumentService(exchange: $0).removeData($1)
        },
        GatewayOperation(
            "changes", of: .documents, in: .private, needs: .user, patience: .held,
            .collected { try await DocumentService(exchange: $0).changes($1) }),
        GatewayOperation(
            "content/*", of: .documents, methods: [.get, .post], in: .private, needs: .user,
            patience: .transfer,
            .collected { exchange, _ in try await DocumentService(exchange: exchange).content() }),
    ]

    private var database: DatabaseID { self.exchange.holder.home }

    // MARK: Reading

    func list(_ input: Input) async throws -> Bytes {
        let limit = try input.resultsLimit(max: 200) ?? 200
        let after = try input.string("marker").map { text throws(InputRefusal) in
            guard let place = Base64.decode(text) else { throw .invalidMarker }
            return place
        }
        let folder = try await self.folder(input)
        guard
            case .list(let items, let next) = try await self.ask(
                .list(folder: folder, after: after, limit: limit))
        else { throw RouteError.otherKind }
        guard let items else { throw Self.notFound }
        var json = JSONWriter(reserving: 4_096)
        json.object { object in
            object.key("items")
            object.array { array in for item in items { array.write(item) } }
            if let next { object.member("marker", base64: next) }
        }
        return json.finish()
    }

    func lookUp(_ input: Input) async throws -> Bytes {
        let selectors = try input.requiredElements("items", limit: 200).map { element in
            try Self.selector(try Input(element, at: "items"))
        }
        guard case .lookup(let found) = try await self.ask(.lookup(selectors)) else {
            throw RouteError.otherKind
        }
        var json = JSONWriter(reserving: 4_096)
        json.object { object in
            object.key("items")
            object.array { array in
                for item in found {
                    if let item { array.write(item) } else { array.write(Self.notFound) }
                }
            }
        }
        return json.finish()
    }

    func versions(_ input: Input) async throws -> Bytes {
        let id = try input.requiredString("id")
        guard case .versions(let versions) = try await self.ask(.versions(id: id)) else {
            throw RouteError.otherKind
        }
        guard let versions else { throw Self.notFound }
        var json = JSONWriter()
        json.object { object in
            object.key("versions")
            object.array { array in
                for (index, version) in versions.enumerated() {
                    array.object {
                        $0.member("contentTag", String(version.contentTag, radix: 36))
                        $0.member("isCurrent", index == 0)
                        $0.member("size", Int64(clamping: version.size))
                        $0.member("editedAt", version.editedAtMilliseconds)
                        $0.member("device", version.device)
                    }
                }
            }
        }
        return json.finish()
    }

    // MARK: changes

    func changes(_ input: Input) async throws -> GatewayAnswer {
        let device = try input.requiredString("device")
        guard KeyValueStore.isDevice(device) else {
            throw InputRefusal.unexpectedInput(key: "device")
        }
        let wait = try KeyValueService.wait(input)
        let limit = try input.resultsLimit(max: 200) ?? 200
        let after = try input.string("token").flatMap { text throws(InputRefusal) in
            try self.exchange.position(text, at: self.place)
        }
        let page = try await self.page(after, limit, until: self.exchange.deadline)
        guard page.changes.isEmpty, !page.isFromStart, wait > .zero else {
            return .json(self.answer(page))
        }
        let service = DocumentService(exchange: self.exchange.withoutBody)
        return service.exchange.later(
            wait, for: "documents \(device)", after: page, at: self.place
        ) {
            let page = try await service.page(after, limit, until: $0)
            return page.changes.isEmpty && !page.isFromStart ? nil : page
        } answer: {
            .json(service.answer($0))
        }
    }

    private func answer(_ page: DocumentChangesPage) -> Bytes {
        var json = JSONWriter(reserving: 4_096)
        json.object { object in
            object.member("isFromStart", page.isFromStart)
            object.key("changes")
            object.array { array in
                for change in page.changes {
                    switch change {
                    case .changed(let item): array.write(item)
                    case .removed(let id):
                        array.object {
                            $0.member("id", id)
                            $0.member("removed", true)
                        }
                    }
                }
            }
            object.member(
                "token",
                FeedToken(page.position).text(at: self.place, sealedWith: self.exchange.cipher))
            object.member("moreComing", page.moreComing)
            object.member("identityToken", self.exchange.identityToken)
        }
        return json.finish()
    }

    private var place: FeedPlace {
        FeedPlace(
            container: self.exchange.route.container, scope: .private,
            owner: self.exchange.holder.owner, zone: ZoneID.documentsName)
    }

    private func page(
        _ after: FeedPosition?, _ limit: Int, until deadline: MonotonicTime
    ) async throws -> DocumentChangesPage {
        guard
            case .changes(let page) = try await self.ask(
                .changes(after: after, limit: limit), until: deadline)
        else { throw RouteError.otherKind }
        return page
    }

    // MARK: items/modify

    func modify(_ input: Input) async throws -> Bytes {
        let (device, now) = try Self.sender(input)
        let isAtomic = try input.flag("atomic") ?? true
        var draws = self.exchange.draws()
        var operations: [DocumentOperation] = []
        for element in try input.requiredElements("operations", limit: 200) {
            operations.append(
                try await self.operation(
                    try Input(element, at: "operations"), now: now, &draws))
        }
        guard !operations.isEmpty else { throw InputRefusal.missingKey("operations") }
        let results = try await self.submitParts(
            of: operations, device: device, now: now, isAtomic: isAtomic, &draws)
        var json = JSONWriter(reserving: 4_096)
        json.object { object in
            object.key("items")
            object.array { array in
                for result in results {
                    switch result {
                    case .success(.item(let item)): array.write(item)
                    case .success(.removed(let id)):
                        array.object {
                            $0.member("id", id)
                            $0.member("removed", true)
                        }
                    case .success(.dataRemoved), .success(.lock), .success(.unlocked),
                        .success(.published):
                        preconditionFailure("no operation of a client")
                    case .success(.refused(let refusal, let subject)):
                        array.write(ClientError(refusal, subject: subject))
                    case .failure(let error): array.write(error)
                    }
                }
            }
        }
        return json.finish()
    }

    /// Submits what one entry takes at a time: packages bring many paths. What was decided is
    /// answered, even if a later part fails.
    private func submitParts(
        of operations: [DocumentOperation], device: String, now: Int64, isAtomic: Bool,
        _ draws: inout Draws
    ) async throws -> [Result<DocumentResult, ClientError>] {
        let limit = ModifyDocuments.pathCountMax
        let pathCount = operations.reduce(0) { $0 + $1.pathCount }
        if isAtomic, pathCount > limit {
            throw ClientError(
                .badRequest,
                "the packages of an atomic request have at most \(limit) files and folders together"
            )
        }
        var results: [Result<DocumentResult, ClientError>] = []
        while results.count < operations.count {
            var rest = limit
            let part = operations[results.count...].prefix { operation in
                rest -= operation.pathCount
                return rest >= 0
            }
            do {
                results += try await self.submit(
                    Array(part), device: device, now: now, isAtomic: isAtomic, &draws
                ).map { .success($0) }
            } catch  where !results.isEmpty {
                let error = ClientError(error)
                while results.count < operations.count { results.append(.failure(error)) }
            }
        }
        return results
    }

    /// `data/remove`: everything outside the folder `Documents`.
    func removeData(_ input: Input) async throws -> Bytes {
        let (device, now) = try Self.sender(input)
        var draws = self.exchange.draws()
        var count = 0
        var hasMore = true
        // A root of so many items is emptied in several requests.
        for _ in 0..<50 where hasMore {
            let results = try await self.submit(
                [.removeData], device: device, now: now, isAtomic: true, &draws)
            guard case .dataRemoved(let removed, let isMore)? = results.first else {
                throw RouteError.otherKind
            }
            count += removed
            hasMore = isMore
        }
        var json = JSONWriter()
        json.object {
            $0.member("removed", count)
            $0.member("moreComing", hasMore)
        }
        return json.finish()
    }

    func submit(
        _ operations: [DocumentOperation], device: String, now: Int64, isAtomic: Bool,
        showing tokens: [String] = [], _ draws: inout Draws
    ) async throws -> [DocumentResult] {
        var rules = DocumentRules()
        rules.databaseSizeMax = UInt64(self.exchange.kernel.limits.privateDatabaseSizeMax.raw)
        let command = RecordCommand.modifyDocuments(
            ModifyDocuments(
                database: self.database, device: device, nowMilliseconds: now,
                drawnIncarnation: draws.incarnation(), isAtomic: isAtomic, rules: rules,
                operations: operations, tokens: tokens))
        let outcome = try await self.exchange.submit(
            command, to: self.database, schema: Schema(),
            part: Bytes("\(draws.incarnation().raw)".utf8)
        ).outcome
        guard case .documents(let results) = outcome, results.count == operations.count else {
            throw RouteError.otherKind
        }
        return results
    }

    private static func sender(_ input: Input) throws(InputRefusal) -> (String, Int64) {
        let device = try input.requiredString("device")
        guard KeyValueStore.isDevice(device) else { throw .unexpectedInput(key: "device") }
        guard let now = input["now"] else { throw .missingKey("now") }
        guard let milliseconds = now.wholeInt64 else { throw .unexpectedInput(key: "now") }
        return (device, milliseconds)
    }

    private func operation(
        _ input: Input, now: Int64, _ draws: inout Draws
    ) async throws -> DocumentOperation {
        func time() throws(InputRefusal) -> Int64 {
            guard let at = input["at"] else { return now }
            guard let milliseconds = at.wholeInt64 else { throw .unexpectedInput(key: "at") }
            return milliseconds
        }
        func tag(_ key: String) throws(InputRefusal) -> UInt64? { try Self.tag(input, key) }
        switch try input.requiredString("operation") {
        case "create":
            let kind: DocumentItem.Kind
            switch try input.string("kind") ?? "file" {
            case "file": kind = .file
            case "folder": kind = .folder
            case "package": kind = .package
            default: throw InputRefusal.unexpectedInput(key: "kind")
            }
            let id = try input.string("id") ?? draws.documentID()
            return .create(
                id: id, kind, name: try input.requiredString("name"),
                folder: try await self.folder(input), try Self.clash(input),
                content: try self.content(of: input), atMilliseconds: try time())
        case "save":
            guard let content = try self.content(of: input) else {
                throw InputRefusal.missingKey("content")
            }
            return .save(
                id: try input.requiredString("id"), content: content,
                basedOn: try tag("basedOn"), ifUnchanged: try input.flag("ifUnchanged") ?? false,
                atMilliseconds: try time())
        case "place":
            return .place(
                id: try input.requiredString("id"), name: try input.string("name"),
                folder: try input.string("folder"), try Self.clash(input), tag: try tag("tag"))
        case "remove":
            return .remove(id: try input.requiredString("id"), basedOn: try tag("basedOn"))
        case "settle":
            let drop = try input.requiredElements("drop", limit: 64).map {
                element throws(InputRefusal) in
                guard let tag = element.string.flatMap({ ChangeTag(text: $0) }) else {
                    throw .unexpectedInput(key: "drop")
                }
                return tag.raw
            }
            return .settle(
                id: try input.requiredString("id"), current: try tag("current"), drop: drop)
        case "separate":
            return .separate(id: try input.requiredString("id"), first: draws.documentID())
        case "convert":
            let kind: DocumentItem.Kind
            switch try input.requiredString("kind") {
            case "folder": kind = .folder
            case "package": kind = .package
            default: throw InputRefusal.unexpectedInput(key: "kind")
            }
            return .convert(
                id: try input.requiredString("id"), kind, first: draws.documentID(),
                countMax: DocumentPackage.countMax, sizeMax: DocumentPackage.sizeMax)
        default: throw InputRefusal.unexpectedInput(key: "operation")
        }
    }

    static func tag(_ input: Input, _ key: String) throws(InputRefusal) -> UInt64? {
        guard let text = try input.string(key) else { return nil }
        guard let tag = ChangeTag(text: text) else { throw .unexpectedInput(key: key) }
        return tag.raw
    }

    private static func clash(_ input: Input) throws(InputRefusal) -> DocumentOperation.Clash {
        switch try input.string("onClash") ?? "refuse" {
        case "refuse": return .refuse
        case "rename": return .rename
        case "replace": return .replace
        default: throw .unexpectedInput(key: "onClash")
        }
    }

    // MARK: Addresses

    /// A folder by its ID, or by its path.
    private func folder(_ input: Input) async throws -> String {
        if let id = try input.string("folder") { return id }
        guard let path = try input.string("path") else { throw InputRefusal.missingKey("folder") }
        guard case .lookup(let found) = try await self.ask(.lookup([Self.path(path)])) else {
            throw RouteError.otherKind
        }
        guard let folder = found.first ?? nil else { throw Self.notFound }
        return folder.id
    }

    private static func selector(_ input: Input) throws -> DocumentsAsk.Selector {
        if let id = try input.string("id") { return .id(id) }
        guard let path = try input.string("path") else { throw InputRefusal.missingKey("id") }
        return Self.path(path)
    }

    private static func path(_ text: String) -> DocumentsAsk.Selector {
        .path(text.split(separator: "/").map { String($0) })
    }

    func ask(
        _ question: DocumentsAsk.Question, until deadline: MonotonicTime? = nil
    ) async throws -> DocumentsAnswer {
        var caller = self.exchange.caller
        if let deadline { caller.end = deadline }
        guard
            case .documents(let documents) = try await self.exchange.ask(
                .documents(DocumentsAsk(database: self.database, question)),
                at: .database(self.database), as: caller)
        else { throw RouteError.otherKind }
        return documents
    }

    static let notFound = ClientError(.notFound, "no such item")
}

extension Draws {
    /// The ID of a new item, or the token of a new lock.
    mutating func documentID() -> String {
        RequestIdentity(high: self.nextWord(), low: self.nextWord()).description
    }
}

extension JSONWriter {
    fileprivate mutating func write(_ item: DocumentItem) {
        self.object {
            $0.member("id", item.id)
            $0.member("kind", item.kind.name)
            $0.member("name", item.name)
            if !item.folder.isEmpty { $0.member("folder", item.folder) }
            if item.tag == 0 { return }
            $0.member("tag", String(item.tag, radix: 36))
            $0.member("editedAt", item.editedAtMilliseconds)
            $0.member("device", item.device)
            guard item.kind != .folder else { return }
            $0.member("size", Int64(clamping: item.size))
            if item.contentTag == 0 {
                $0.member("awaitsContent", true)
            } else {
                $0.member("contentTag", String(item.contentTag, radix: 36))
            }
            if item.conflicts != 0 { $0.member("conflicts", Int64(clamping: item.conflicts)) }
        }
    }

    fileprivate mutating func write(_ error: ClientError) {
        self.object {
            $0.member("serverErrorCode", error.code.rawValue)
            $0.member("reason", error.reason)
        }
    }
}

extension ClientError {
    init(_ refusal: DocumentRefusal, subject: String) {
        let subject = Self.quoted(subject)
        self =
            switch refusal {
            case .notFound: Self(.notFound, "no such item")
            case .nameInvalid:
                Self(
                    .badRequest,
                    "'\(subject)' is no name: a name has 1 to \(DocumentNames.sizeMax) bytes "
                        + "without slashes and control characters")
            case .staysLocal: Self(.badRequest, "'\(subject)': .nosync items stay on their device")
            case .nameTaken: Self(.conflict, "the name is taken by item \(subject)")
            case .folderNotFound: Self(.notFound, "no such folder: '\(subject)'")
            case .notAFile: Self(.badRequest, "'\(subject)' is a folder, which has no content")
            case .isRoot: Self(.badRequest, "'\(subject)' cannot be changed")
            case .circle: Self(.badRequest, "a folder cannot be in itself")
            case .tooDeep: Self(.badRequest, "more than \(subject) folders deep")
            case .tooManyItems: Self(.badRequest, "more than \(subject) items")
            case .stale: Self(.conflict, "it has changed since")
            case .tooManyVersions:
                Self(.conflict, "\(subject) versions wait to be settled: settle some first")
            case .versionsWait:
                Self(
                    .conflict,
                    "\(subject) versions wait to be settled, which would be removed too: settle them, "
                        + "or remove it without 'basedOn'")
            case .contentTooLarge:
                Self(
                    .quotaExceeded,
                    "a content in a request has at most \(subject) bytes: upload larger ones")
            case .databaseFull:
                Self(.quotaExceeded, "the database would be larger than \(subject) bytes")
            case .idInvalid:
                Self(.badRequest, "'\(subject)' is taken, or has not 32 hexadecimal digits")
            case .versionNotFound: Self(.notFound, "no such version")
            case .atomicFailure: Self(.atomicError, "another operation was refused")
            case .locked:
                Self(
                    .tryAgainLater, "item \(subject) is locked by a client of WebDAV",
                    retryAfter: 10)
            case .lockNotFound: Self(.notFound, "no such lock")
            case .notAPackage:
                Self(.badRequest, "'\(subject)' is no package, which alone has 'files'")
            case .assetMissing:
                Self(.badRequest, "the uploaded file is not there any more: upload it again")
            }
    }
}
