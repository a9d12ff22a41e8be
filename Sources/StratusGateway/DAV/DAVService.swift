import StratusHTTP
import StratusModel
import StratusRecords
import StratusRuntime

/// One request of WebDAV, whose sender is known.
///
/// It reads what the request is about, decides, and sends a command that says what it relied on:
/// content tags, and the tokens of locks. The state refuses the command where that has changed, and
/// the request is decided again.
struct DAVService: Sendable {
    let documents: DocumentService
    let route: DAVRoute
    /// Otherwise only the folder `Documents` is there.
    let showsAll: Bool
    /// What a `PUT` brings.
    let content: DocumentContent?
    /// What was there before its body was read, where that took time; nil: nobody looked.
    let first: Found?
    /// Nil where nothing keeps assets.
    let files: DocumentFiles?

    static let device = "webdav"
    private static let attemptCountMax = 3

    var exchange: Exchange { self.documents.exchange }
    var head: RequestHead { self.exchange.head }
    var now: Int64 { self.exchange.kernel.world.wallMilliseconds }

    /// What a request found before its body was read.
    struct Found: Sendable {
        var item: DocumentItem?
        /// Tokens of the locks that held then. `If` is judged by them: a lock that ends while the
        /// body comes is no reason to refuse it. The state still asks for the locks of others.
        var tokens: Set<String> = []
    }

    func respond() async throws -> HTTPResponse {
        var first = self.first
        for attempt in 1... {
            do {
                return try await self.decide(&first)
            } catch Overtaken.changed where attempt < Self.attemptCountMax {
                continue
            } catch is Overtaken {
                throw DAVFailure(503, "others change the same items: try again later")
            }
        }
        throw DAVFailure(503, "try again later")
    }

    /// What the request relied on has changed.
    enum Overtaken: Error { case changed }

    private func decide(_ first: inout Found?) async throws -> HTTPResponse {
        let target = try await self.resolve(self.route.names)
        let ifHeader = try await self.checkIf(target)
        let shown = try Self.shown(ifHeader)
        let found = first ?? Found(item: target.item)
        first = found
        if let inside = target.inside, !["COPY", "MOVE"].contains(self.head.method),
            !inside.path.isEmpty || self.head.method == "GET"
        {
            return try await self.respond(
                in: inside, at: target, over: found.item, ifHeader, shown)
        }
        switch self.head.method {
        case "GET", "HEAD": return try await self.get(target)
        case "PROPFIND": return try await self.propertiesFound(target)
        case "PROPPATCH": return try await self.patch(target, shown)
        case "PUT": return try await self.put(target, over: found.item, shown)
        case "MKCOL": return try await self.makeFolder(target, shown)
        case "DELETE": return try await self.delete(target, shown)
        case "COPY", "MOVE": return try await self.transfer(target, shown)
        case "LOCK": return try await self.lock(target, ifHeader, shown)
        case "UNLOCK": return try await self.unlock(target)
        default: throw DAVFailure(405, "WebDAV has no such method")
        }
    }

    private static func shown(_ header: IfHeader?) throws -> [String] {
        let shown = header?.tokens.compactMap { DAVLocks.token($0) } ?? []
        guard shown.count <= ModifyDocuments.tokenCountMax else {
            throw DAVFailure(
                400, "'If' shows more than \(ModifyDocuments.tokenCountMax) lock tokens")
        }
        return shown
    }

    /// Refuses a `PUT` before its body is read, where it is clear by then.
    ///
    /// - Returns: what is there now.
    func checkPut() async throws -> Found {
        let target = try await self.resolve(self.route.names)
        let shown = try Self.shown(try await self.checkIf(target))
        let (_, name) = try self.slot(ofPut: target)
        if target.item == nil, DocumentNames.staysLocal(name) {
            throw DAVFailure(.staysLocal, subject: name)
        }
        let all = try await self.locks()
        // Something new changes its folder, whatever the depth of the folder's locks.
        let locks = target.item == nil ? all.onFolder(of: target) : all.on(target)
        guard locks.isEmpty || locks.contains(where: { shown.contains($0.token) }) else {
            throw DAVFailure(
                423, "the item is locked", condition: "lock-token-submitted",
                href: self.route.href(self.route.names, isFolder: false))
        }
        let tokens = Set(all.all.map(\.token)).intersection(shown)
        return Found(item: target.item, tokens: tokens)
    }

    /// Refuses a body that was read and would have to wait beside others, where too many do.
    func checkWaiting(over found: Found) async throws {
        let limit = DocumentRules().versionCountMax
        guard let item = try await self.resolve(self.route.names).item, item.kind == .file,
            item.contentTag != found.item?.contentTag, item.conflicts >= UInt64(limit)
        else { return }
        throw DAVFailure(.tooManyVersions, subject: String(limit))
    }

    // MARK: Where

    /// A place, and what is there.
    struct Place: Sendable {
        var names: [String]
        /// The root and every folder above the place that is there, and at last what is at the
        /// place; nil where there is nothing.
        var chain: [DocumentItem?]
        /// The place within a package, or of one that is read.
        var inside: Inside?

        var item: DocumentItem? { self.chain.last ?? nil }
        /// The item of the folder above; nil: it is not there, or the place is the root.
        var folder: DocumentItem? {
            guard self.chain.count > 1, let folder = self.chain[self.chain.count - 2],
                folder.kind != .file
            else { return nil }
            return folder
        }
        var isFolder: Bool { self.item.map { $0.kind != .file } ?? false }
        /// The IDs of the item and of the folders above it.
        var ids: [String] { self.chain.compactMap { $0?.id } }
    }

    func resolve(_ names: [String]) async throws -> Place {
        guard case .lookup(var chain) = try await self.documents.ask(.chain(names)),
            chain.count == names.count + 1
        else { throw RouteError.otherKind }
        if !self.showsAll, chain.count == 1 || chain[1]?.id != DocumentNames.documents {
            for index in chain.indices.dropFirst() { chain[index] = nil }
            // Nothing can be made beside the one folder, and the root cannot be locked.
            if !DAVSurface.reading.contains(self.head.method) {
                throw DAVFailure(403, "this app password is for the folder Documents alone")
            }
        }
        let inside = try await self.inside(names, chain)
        if let inside, !inside.path.isEmpty,
            let first = chain.firstIndex(where: { $0?.kind == .package })
        {
            // Every part of the path below the package, as if it were an item.
            for index in (first + 1)..<chain.count {
                chain[index] = inside.item(
                    at: names[first..<index].joined(separator: "/"))
            }
        }
        return Place(names: names, chain: chain, inside: inside)
    }

    func href(_ place: Place) -> String {
        self.route.href(place.names, isFolder: place.isFolder)
    }

    static func tag(_ item: DocumentItem) -> String {
        "\"\(String(item.contentTag, radix: 36))\""
    }

    // MARK: Conditions

    /// `If`: refuses with 412 unless one of its lists holds.
    private func checkIf(_ target: Place) async throws -> IfHeader? {
        guard let field = self.head.headers["If"] else { return nil }
        guard let header = IfHeader(field) else { throw DAVFailure(400, "'If' is malformed") }
        let locks = try await self.locks()
        var places: [String: Place] = [:]
        for list in header.lists {
            var place: Place? = target
            if let resource = list.resource {
                if let known = places[resource] {
                    place = known
                } else if let named = DAVRoute.named(resource, host: self.head.headers["Host"]),
                    named.container == self.route.container, places.count < 16
                {
                    place = try await self.resolve(named.names)
                    places[resource] = place
                } else {
                    place = nil
                }
            }
            let holds = list.conditions.allSatisfy { condition in
                let isMet =
                    switch condition.state {
                    case .tag(let tag):
                        place?.item.map { $0.kind == .file && Self.tag($0) == tag } ?? false
                    case .token(let text):
                        DAVLocks.token(text).map { token in
                            self.first?.tokens.contains(token) == true
                                || place.map { locks.on($0) }?.contains { $0.token == token }
                                    ?? false
                        } ?? false
                    }
                return isMet != condition.isNegated
            }
            if holds { return header }
        }
        throw DAVFailure(412, "no condition of 'If' holds")
    }

    /// `If-Match` and its relatives (RFC 9110 §13).
    ///
    /// - Returns: true where the answer is 304.
    func checkConditions(_ item: DocumentItem?) throws -> Bool {
        let tag = item.flatMap { $0.kind == .file ? Self.tag($0) : nil }
        func matches(_ field: String) -> Bool {
            if field == "*" { return item != nil }
            guard let tag else { return false }
            return field.split(separator: ",").contains { part in
                part.drop { $0 == " " }.prefix { $0 != " " } == tag
            }
        }
        let headers = self.head.headers
        let isReading = DAVSurface.reading.contains(self.head.method)
        if let field = headers["If-Match"] {
            guard matches(field) else { throw DAVFailure(412, "it is not the one of 'If-Match'") }
        } else if let field = headers["If-Unmodified-Since"], let item {
            // A date that cannot be read is no condition (RFC 9110 §13.1.4).
            guard HTTPDate.seconds(field, at: self.now).map({ $0 >= Self.seconds(item) }) ?? true
            else {
                throw DAVFailure(412, "it has changed since")
            }
        }
        if let field = headers["If-None-Match"] {
            if matches(field) {
                if isReading { return true }
                throw DAVFailure(412, "it is one of 'If-None-Match'")
            }
        } else if isReading, let field = headers["If-Modified-Since"], let item {
            return HTTPDate.seconds(field, at: self.now).map { $0 >= Self.seconds(item) } ?? false
        }
        return false
    }

    static func date(_ item: DocumentItem) -> String {
        HTTPDate.text(Self.seconds(item))
    }

    private static func seconds(_ item: DocumentItem) -> Int64 {
        item.editedAtMilliseconds / 1_000
    }

    // MARK: Asking and changing

    /// The locks that hold now.
    func locks() async throws -> DAVLocks {
        guard case .locks(let locks) = try await self.documents.ask(.locks) else {
            throw RouteError.otherKind
        }
        let now = self.now
        // A lock of the root is for those who see all of the store.
        return DAVLocks(
            locks.filter {
                $0.untilMilliseconds > now && (self.showsAll || $0.item != DocumentNames.root)
            })
    }

    /// Carries out operations, all or none.
    ///
    /// - Throws: the first refusal that is not another one's consequence.
    func submit(
        _ operations: [DocumentOperation], _ tokens: [String]
    ) async throws -> [DocumentResult] {
        let results = try await self.results(operations, tokens)
        try self.check(results)
        return results
    }

    /// Carries out operations, and says what became of each.
    func results(
        _ operations: [DocumentOperation], isAtomic: Bool = true, _ tokens: [String]
    ) async throws -> [DocumentResult] {
        var draws = self.exchange.draws()
        return try await self.documents.submit(
            operations, device: Self.device, now: self.now, isAtomic: isAtomic,
            showing: tokens, &draws)
    }

    func check(_ results: [DocumentResult]) throws {
        for result in results {
            guard case .refused(let refusal, let subject) = result, refusal != .atomicFailure else {
                continue
            }
            switch refusal {
            // What was read a moment ago: it is read again.
            case .stale, .versionsWait, .nameTaken, .notFound: throw Overtaken.changed
            case .locked:
                var failure = DAVFailure(refusal, subject: subject)
                failure.href = self.route.href(self.route.names, isFolder: false)
                throw failure
            default: throw DAVFailure(refusal, subject: subject)
            }
        }
    }

    func draw() -> String {
        var draws = self.exchange.draws()
        return draws.documentID()
    }
}
