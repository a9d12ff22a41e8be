import StratusCluster
import StratusHTTP
package import StratusIdentity
package import StratusModel
import StratusRecords
package import StratusRuntime
import Synchronization

/// Everything a container holds about one of its users: written out, or destroyed.
///
/// An archive is JSON lines: the first says whom it is about, each other one is a record as the web services
/// write it, with its database. The private database comes whole; of the public one the user's own record and
/// every record the user created.
package struct UserArchive: Sendable {
    private let accounts: Accounts
    private let access: ContainerAccess
    private let registry: ContainerRegistry
    private var store: IdentityStore { self.accounts.store }

    package init(_ people: SignInService) {
        self.accounts = people.accounts
        self.access = people.access
        self.registry = people.authenticator.registry
    }

    /// What an erasure did.
    package struct Receipt: Sendable, Equatable {
        package var containerCount = 0
        package var zoneCount = 0
        package var recordCount = 0
    }

    // MARK: Export

    /// Nil: no such account.
    package func export(_ id: AccountID, in container: ContainerReference) async throws
        -> (any ResponseBody)?
    {
        guard let account = try await self.accounts.account(id) else { return nil }
        let name = self.store.keys.userRecordName(
            of: id, epoch: account.epoch, in: container)
        var head = JSONWriter()
        head.object {
            $0.member("format", "stratus user archive 1")
            $0.member("container", container.container)
            $0.member("environment", container.environment.name)
            $0.member("userRecordName", name)
            $0.member("email", account.email)
            $0.member("givenName", account.givenName)
            $0.member("familyName", account.familyName)
            $0.member("isDiscoverable", account.isDiscoverable)
            $0.member("createdMilliseconds", account.createdMilliseconds)
        }
        let walk = try await self.walk(name, in: container)
        return Lines(head: head.finish() + [0x0A], walk: walk)
    }

    private func walk(_ user: String, in container: ContainerReference) async throws -> Walk {
        let reader = Reader(store: self.store)
        let owned = DatabaseID(container: container, scope: .private, owner: user)
        let open = try await self.registry.publicDatabase(of: container)
        let types = try await reader.schema(of: container).types.map(\.name)
        var steps: [Walk.Step] = []
        for zone in try await reader.zones(of: owned) where zone != ZoneID.defaultName {
            steps.append(.feed(owned, zone: zone, after: nil))
        }
        for type in types { steps.append(.type(owned, type, after: nil, creator: nil)) }
        steps.append(.record(open.part(of: user), name: user))
        for type in types where type != RecordState.userType {
            for part in open.parts {
                steps.append(.type(part, type, after: nil, creator: user))
            }
        }
        return Walk(reader: reader, steps: steps)
    }

    /// Pages of records, one step after the other.
    private struct Walk: Sendable {
        enum Step: Sendable {
            case feed(DatabaseID, zone: String, after: FeedPosition?)
            case type(DatabaseID, String, after: Bytes?, creator: String?)
            case record(DatabaseID, name: String)
        }

        let reader: Reader
        var steps: [Step]

        /// The next page with the database it is of; nil at the end.
        mutating func next() async throws -> (DatabaseScope, [Record])? {
            guard let step = self.steps.first else { return nil }
            switch step {
            case .feed(let database, let zone, let after):
                let page = try await self.reader.changes(in: zone, of: database, after: after)
                if page.moreComing {
                    self.steps[0] = .feed(database, zone: zone, after: page.position)
                } else {
                    self.steps.removeFirst()
                }
                let records = page.changes.compactMap { change -> Record? in
                    if case .changed(let record) = change { record } else { nil }
                }
                return (database.scope, records)
            case .type(let database, let type, let after, let creator):
                let page = try await self.reader.page(of: type, in: database, after: after)
                if let next = page.next {
                    self.steps[0] = .type(database, type, after: next, creator: creator)
                } else {
                    self.steps.removeFirst()
                }
                let records = page.records.filter {
                    creator == nil || $0.created.userRecordName == creator
                }
                return (database.scope, records)
            case .record(let database, let name):
                self.steps.removeFirst()
                return (database.scope, try await self.reader.record(name, in: database))
            }
        }
    }

    /// The archive as it goes out: a page in memory, never more.
    private final class Lines: ResponseBody {
        private let state: Mutex<(head: Bytes?, walk: Walk)>

        init(head: Bytes, walk: Walk) { self.state = Mutex((head, walk)) }

        func next() async throws -> Bytes? {
            let head = self.state.withLock { state -> Bytes? in
                defer { state.head = nil }
                return state.head
            }
            if let head { return head }
            // Asked for one piece at a time, so nobody else moves the walk meanwhile.
            var walk = self.state.withLock { $0.walk }
            defer { self.state.withLock { [walk] in $0.walk = walk } }
            while let (scope, records) = try await walk.next() {
                if records.isEmpty { continue }
                var lines = Bytes()
                for record in records {
                    var writer = JSONWriter(reserving: 512)
                    writer.object {
                        $0.member("database", scope.name)
                        $0.key("record")
                        $0.writeRecord(record, AnswerShape())
                    }
                    lines += writer.finish()
                    lines.append(0x0A)
                }
                return lines
            }
            return nil
        }
    }

    // MARK: Erasure

    /// Destroys what every container holds for somebody, and the account.
    ///
    /// The account is shut first; sessions that a node still believes in are over after `settling`. What is
    /// cut short is safe to begin again: the account goes last.
    ///
    /// - Returns: nil where there is no such account.
    package func erase(_ id: AccountID, settling: Duration = .milliseconds(1_200)) async throws
        -> Receipt?
    {
        guard let account = try await self.accounts.account(id) else { return nil }
        _ = try await self.accounts.change(id) { $0.status = .disabled }
        try await Task.sleep(for: settling)
        var receipt = Receipt()
        for container in try await self.accounts.containers(of: id) {
            let name = self.store.keys.userRecordName(
                of: id, epoch: account.epoch, in: container)
            try await self.erase(name, in: container, &receipt)
            try await self.access.removeUser(name, in: container)
            receipt.containerCount += 1
        }
        return try await self.accounts.remove(id) ? receipt : nil
    }

    private func erase(
        _ user: String, in container: ContainerReference, _ receipt: inout Receipt
    ) async throws {
        let reader = Reader(store: self.store)
        let owned = DatabaseID(container: container, scope: .private, owner: user)
        let erased = try await DatabaseErasure(store: self.store).run(owned)
        receipt.zoneCount += Int(clamping: erased.zoneCount)
        receipt.recordCount += Int(clamping: erased.recordCount)
        let open = try await self.registry.publicDatabase(of: container).part(of: user)
        if !(try await reader.record(user, in: open)).isEmpty {
            if try await reader.delete(user, in: open) { receipt.recordCount += 1 }
        }
    }

    // MARK: Reading and writing as Stratus itself

    private struct Reader: Sendable {
        let store: IdentityStore
        private static let patience = Duration.seconds(30)

        private func ask(_ ask: RecordQuery.Ask, at key: ShardKey) async throws -> RecordAnswer {
            let query = RecordQuery(principal: Principal(kind: .system), ask)
            let answer = try await self.store.router.read(
                query.enveloped(), at: key, deadline: self.store.world.now + Self.patience)
            return try RecordAnswer(decoding: answer.body)
        }

        func schema(of container: ContainerReference) async throws -> Schema {
            guard
                case .schema(let schema) = try await self.ask(
                    .schema(container), at: .container(container))
            else { throw RouteError.refused("no schema where one was asked for") }
            return schema ?? Schema()
        }

        func zones(of database: DatabaseID) async throws -> [String] {
            guard
                case .zones(let zones) = try await self.ask(
                    .zones(database, names: nil), at: .database(database))
            else { throw RouteError.refused("no zones where some were asked for") }
            return zones.compactMap { zone in
                if case .zone(let summary) = zone { summary.name } else { nil }
            }
        }

        func changes(in zone: String, of database: DatabaseID, after: FeedPosition?) async throws
            -> ZoneChangesPage
        {
            let ask = ZoneChangesAsk(database: database, zone: zone, after: after)
            switch try await self.ask(.zoneChanges(ask), at: .database(database)) {
            case .zoneChanges(let page): return page
            // Deleted meanwhile: nothing of it is left to tell.
            case .zoneRefused:
                return ZoneChangesPage(
                    changes: [],
                    position: FeedPosition(incarnation: ZoneIncarnation(0), tag: ChangeTag(0)),
                    moreComing: false)
            default: throw RouteError.refused("no changes where some were asked for")
            }
        }

        func page(of type: String, in database: DatabaseID, after: Bytes?) async throws
            -> QueryPage
        {
            let ask = QueryPageAsk(
                database: database, predicate: RecordPredicate(recordType: type), after: after,
                requiresIndexes: false)
            switch try await self.ask(.page(ask), at: .database(database)) {
            case .page(let page): return page
            // A partition that never saw the type has no records of it.
            case .refused(let refusal) where refusal.reason == .typeUnknown:
                return QueryPage(records: [], next: nil, zone: nil, touchCount: 0)
            default: throw RouteError.refused("no page where one was asked for")
            }
        }

        func record(_ name: String, in database: DatabaseID) async throws -> [Record] {
            let ask = RecordLookup(database: database, names: [name])
            guard
                case .lookup(let found) = try await self.ask(
                    .lookup(ask), at: .database(database))
            else { return [] }
            return found.items.compactMap { item in
                if case .found(let record) = item { record } else { nil }
            }
        }

        /// False: others' VALIDATE references keep the record where it is.
        func delete(_ name: String, in database: DatabaseID) async throws -> Bool {
            let outcome = try await self.store.submit(
                .modifyRecords(
                    ModifyRecords(
                        database: database, drawnIncarnation: ZoneIncarnation(0),
                        operations: [RecordOperation(.forceDelete, recordName: name)])),
                to: database)
            guard case .records(let modified) = outcome, let result = modified.results.first else {
                throw RouteError.refused("an outcome of another kind")
            }
            switch result {
            case .saved, .deleted: return true
            case .refused(let refusal) where refusal.reason == .referenced: return false
            case .refused: throw RouteError.notExecuted(retryAfter: .seconds(1))
            }
        }
    }
}
