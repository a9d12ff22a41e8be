import StratusCluster
import StratusCoding
import StratusIdentity
package import StratusModel
import StratusRecords
import StratusSealing

/// Gives every database of a container a newer key, and seals its encrypted fields anew, while
/// clients go on. Each call of ``next()`` does a bounded piece.
///
/// The old keys of a database are destroyed once no record needs them, unless it has files: those
/// stay sealed under the key that was the newest when they came.
package struct DatabaseRotation: Sendable {
    package struct Failing: Sendable, Equatable {
        /// Empty: the public database.
        package var owner: String
        package var reason: String
    }

    /// The counts so far.
    package struct Progress: Sendable, Equatable {
        /// Databases, or parts of them, that have a newer key now.
        package var databaseCount = 0
        package var recordCount = 0
        /// Old keys that are still there because their database has files.
        package var olderKeyCount = 0
        /// Databases that were not rotated to the end. Their old keys are still there.
        package var failing: [Failing] = []

        package init() {}
    }

    private enum Step: Sendable {
        case users(after: Bytes?)
        case database(DatabaseID)
        case zone(DatabaseID, String, after: String?, version: UInt32, triesLeft: Int)
        case end(DatabaseID, version: UInt32)

        var database: DatabaseID? {
            switch self {
            case .users: nil
            case .database(let database), .zone(let database, _, _, _, _), .end(let database, _):
                database
            }
        }
    }

    private static let userCountMax = 20
    /// How often one page is asked for again because records on it change all the time.
    private static let tryCountMax = 16
    /// Sealed bytes of one command.
    private static let commandSizeMax = 1 << 20

    private let container: ContainerReference
    private let layout: ContainerLayout
    private let keys: DatabaseKeys
    private let reader: ArchiveReader
    private var store: IdentityStore { self.reader.store }
    private var steps: [Step]
    package private(set) var progress = Progress()

    /// Nil: this node has no encryption keys.
    package init?(_ directory: Directory, of container: ContainerReference) async throws {
        guard let keys = directory.keys else { return nil }
        self.container = container
        self.keys = keys
        self.reader = ArchiveReader(store: directory.accounts.store)
        self.layout = try await directory.registry.layout(of: container)
        let open = try await directory.registry.publicDatabase(of: container)
        self.steps = open.parts.map { .database($0) } + [.users(after: nil)]
    }

    /// One piece.
    ///
    /// - Returns: false at the end.
    package mutating func next() async throws -> Bool {
        guard let step = self.steps.first else { return false }
        self.steps.removeFirst()
        do {
            try await self.run(step)
        } catch let error as RouteError {
            // Without the list of users nothing goes on.
            guard let database = step.database else { throw error }
            self.fail(database, error)
        }
        return true
    }

    private mutating func fail(_ database: DatabaseID, _ error: RouteError) {
        let reason =
            switch error {
            case .refused(let reason): reason
            case .notExecuted, .outcomeUnknown: "its partition does not answer"
            case .upgrading: "the cluster is being upgraded"
            }
        self.fail(database, reason)
    }

    /// Leaves a database as it is, with its old keys.
    private mutating func fail(_ database: DatabaseID, _ reason: String) {
        self.progress.failing.append(Failing(owner: database.owner, reason: reason))
        self.steps.removeAll { $0.database == database }
    }

    private mutating func run(_ step: Step) async throws {
        switch step {
        case .users(let after): try await self.addUsers(after)
        case .database(let database): try await self.begin(database)
        case .zone(let database, let zone, let after, let version, let triesLeft):
            try await self.reseal(database, zone, after, version, triesLeft)
        case .end(let database, let version):
            let resealed = try await self.submit(
                ResealFields(database: database, items: [], retiresBelow: version))
            self.progress.olderKeyCount += Int(clamping: resealed.olderKeyCount)
        }
    }

    private mutating func addUsers(_ after: Bytes?) async throws {
        let users = try await self.store.page(
            .user, of: IdentityKey.home(self.container), at: .container(self.container),
            after: after, limit: Self.userCountMax)
        for user in users {
            let name = String(decoding: user.name, as: UTF8.self)
            let database = self.layout.privateDatabase(of: name, in: self.container)
            for part in try await PrivateParts(store: self.store).parts(of: database) {
                self.steps.append(.database(part))
            }
        }
        if users.count == Self.userCountMax { self.steps.append(.users(after: users.last?.name)) }
    }

    private mutating func begin(_ database: DatabaseID) async throws {
        guard let version = try await self.keys.rotate(database) else { return }
        self.progress.databaseCount += 1
        var steps: [Step] = []
        if database.scope == .private {
            for zone in try await self.reader.zones(of: database) {
                steps.append(
                    .zone(
                        database, zone, after: nil, version: version, triesLeft: Self.tryCountMax))
            }
        }
        self.steps.insert(contentsOf: steps + [.end(database, version: version)], at: 0)
    }

    // MARK: Fields

    private mutating func reseal(
        _ database: DatabaseID, _ zone: String, _ after: String?, _ version: UInt32,
        _ triesLeft: Int
    ) async throws {
        let page = try await self.reader.sealedRecords(
            SealedAsk(database: database, zone: zone, after: after, below: version))
        let opened = try await self.keys.open(page.records) { _ in database }
        guard let sealer = try await self.keys.fieldSealer(version, of: database) else {
            throw RouteError.refused("its new key is gone")
        }
        var items: [ResealFields.Item] = []
        for record in page.records {
            guard opened.closed(of: record).isEmpty else {
                self.fail(
                    database, "an encrypted field of record '\(record.name)' does not open")
                return
            }
            items.append(Self.item(record, opened, sealer, zone: zone, version))
        }
        var count = 0
        for part in Self.parts(items) {
            let resealed = try await self.submit(
                ResealFields(database: database, zone: zone, items: part))
            count += Int(clamping: resealed.count)
        }
        self.progress.recordCount += count
        if count < items.count {
            // Somebody saved one of them meanwhile, and its other fields are as they were.
            guard triesLeft > 1 else {
                throw RouteError.refused("records of zone '\(zone)' change too often")
            }
            self.steps.insert(
                .zone(database, zone, after: after, version: version, triesLeft: triesLeft - 1),
                at: 0)
        } else if let next = page.next {
            self.steps.insert(
                .zone(
                    database, zone, after: next, version: version, triesLeft: Self.tryCountMax),
                at: 0)
        }
    }

    private static func item(
        _ record: Record, _ opened: OpenedFields, _ sealer: FieldSealer, zone: String,
        _ version: UInt32
    ) -> ResealFields.Item {
        var fields: [Field] = []
        for field in record.fields {
            guard case .sealed(_, let old) = field.value, let value = opened.value(of: field),
                (try? SealedFieldCoding.keyVersion(of: old)) != version
            else { continue }
            let place = FieldPlace(zone: zone, record: record.name, field: field.name)
            fields.append(Field(name: field.name, value: sealer.seal(value, at: place)))
        }
        return ResealFields.Item(record: record.name, tag: record.tag, fields: fields)
    }

    /// The items of one command each: one at least, and no more bytes than an entry should have.
    private static func parts(_ items: [ResealFields.Item]) -> [[ResealFields.Item]] {
        var parts: [[ResealFields.Item]] = []
        var size = 0
        for item in items {
            let own = item.fields.reduce(item.record.utf8.count) { sum, field in
                if case .sealed(_, let sealed) = field.value { sum + sealed.count } else { sum }
            }
            if parts.isEmpty || size + own > Self.commandSizeMax {
                parts.append([])
                size = 0
            }
            parts[parts.count - 1].append(item)
            size += own
        }
        return parts
    }

    private func submit(_ reseal: ResealFields) async throws -> ResealedFields {
        guard
            case .resealed(let resealed) = try await self.store.submit(
                .resealFields(reseal), to: reseal.database)
        else { throw RouteError.refused("an outcome of another kind") }
        return resealed
    }
}
