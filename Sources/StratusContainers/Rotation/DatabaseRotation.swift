import StratusCluster
import StratusCoding
import StratusIdentity
package import StratusModel
import StratusRecords
import StratusRows
import StratusSealing

/// Gives every database of a container a newer key, and seals its encrypted fields and its files
/// anew, while clients go on. Each call of ``next()`` does a bounded piece: a page, or one file.
///
/// A rotation that was interrupted goes on at the database that it had come to, with the key that
/// this database got. The walk through that database begins anew: what is sealed under the key
/// already, the partition does not name.
///
/// The old keys of a database are destroyed once no record and no file needs them. From the newer
/// key on its partition names no file under an older one, so a list of older files that is empty
/// stays so.
package struct DatabaseRotation: Sendable {
    /// The counts so far.
    package struct Progress: Sendable, Equatable {
        /// Databases, or parts of them, that have a newer key now, those of interrupted runs among
        /// them.
        package var databaseCount = 0
        /// Records that this run has sealed anew.
        package var recordCount = 0
        /// Files that this run has sealed anew, and their bytes.
        package var fileCount = 0
        package var fileSize: UInt64 = 0
        /// Files that stay under old keys: no node has all of them, or this node keeps none.
        package var keptFileCount = 0
        /// Old keys that are still there because their database has such files.
        package var olderKeyCount = 0
        /// Databases that were not rotated to the end, those of interrupted runs among them. Their
        /// old keys are still there.
        package var failingCount = 0
        /// When the rotation began that this run goes on with. Nil: it began itself.
        package var resumedMilliseconds: Int64?

        package init() {}
    }

    private enum Step: Sendable {
        case start
        case owners(DatabaseWalk)
        case parts(of: String, DatabaseWalk, from: KeyRotation.Place?)
        case database(DatabaseID)
        case zone(DatabaseID, String, after: String?, version: UInt32, idleCount: Int)
        case files(DatabaseID, FilePass)
        case file(DatabaseID, AssetID, FilePass)
        case end(DatabaseID, version: UInt32, keptFileCount: Int)
        case finish

        /// Whose failure ends only the work on this owner's database.
        var owner: String? {
            switch self {
            case .start, .owners, .finish: nil
            case .parts(let owner, _, _): owner
            case .database, .zone, .files, .file, .end: self.database?.owner
            }
        }

        var database: DatabaseID? {
            switch self {
            case .start, .owners, .finish, .parts: nil
            case .database(let database), .zone(let database, _, _, _, _),
                .files(let database, _), .file(let database, _, _), .end(let database, _, _):
                database
            }
        }
    }

    /// How often in a row one page is asked for again of which no record could be sealed anew,
    /// because all of them changed meanwhile.
    private static let idleCountMax = 64
    /// Sealed bytes of one command.
    private static let commandSizeMax = 1 << 20

    private let container: ContainerReference
    private let registry: ContainerRegistry
    private let keys: DatabaseKeys
    private let reader: ArchiveReader
    private let files: (any FileResealing)?
    private let retries: Retries
    private var store: IdentityStore { self.reader.store }
    private var note: KeyRotationNote?
    /// The next one first.
    private var steps: [Step] = [.start]
    package private(set) var progress = Progress()
    /// What the last piece found that cannot be rotated to the end.
    package private(set) var failing: [FailingDatabase] = []

    /// Nil: this node has no encryption keys.
    ///
    /// - Parameter files: what seals files anew; nil: they stay as they are.
    package init?(
        _ directory: Directory, of container: ContainerReference,
        files: (any FileResealing)?, retries: Retries = Retries()
    ) {
        guard let keys = directory.keys else { return nil }
        self.files = files
        self.container = container
        self.keys = keys
        self.registry = directory.registry
        self.reader = ArchiveReader(store: directory.accounts.store)
        self.retries = retries
    }

    /// One piece.
    ///
    /// - Returns: false at the end.
    /// - Throws: where nothing goes on now. Another run goes on from here.
    package mutating func next() async throws -> Bool {
        self.failing = []
        guard let step = self.steps.first else { return false }
        self.steps.removeFirst()
        do {
            try await self.run(step)
        } catch let error as CancellationError {
            throw error
        } catch {
            guard let owner = step.owner, !(error is Stopped) else {
                throw Stopped.cause(of: error)
            }
            self.fail(owner, step.database, (error as? RouteError)?.reason ?? "\(error)")
        }
        return true
    }

    /// What ends this run, and not the work on one database only.
    private struct Stopped: Error {
        var cause: RouteError

        static func cause(of error: any Error) -> any Error {
            (error as? Stopped)?.cause ?? error
        }
    }

    /// Leaves a database as it is, with its old keys.
    private mutating func fail(_ owner: String, _ database: DatabaseID?, _ reason: String) {
        self.failing.append(FailingDatabase(owner: owner, reason: reason))
        self.progress.failingCount += 1
        if let database { self.steps.removeAll { $0.database == database } }
    }

    private mutating func run(_ step: Step) async throws {
        switch step {
        case .start: try await self.start()
        case .owners(var walk):
            guard let owner = try await self.retries.run({ try await walk.next() }) else { break }
            self.steps.insert(
                contentsOf: [.parts(of: owner, walk, from: nil), .owners(walk)], at: 0)
        case .parts(let owner, let walk, let place):
            var parts = try await self.retries.run { try await walk.parts(of: owner) }
            // Those before were done. One that came since has a key from after the begin.
            if let place, let number = parts.firstIndex(where: place.isIn) {
                parts.removeFirst(number)
            }
            self.steps.insert(contentsOf: parts.map { .database($0) }, at: 0)
        case .database(let database): try await self.begin(database)
        case .zone(let database, let zone, let after, let version, let idleCount):
            try await self.reseal(database, zone, after, version, idleCount)
        case .files(let database, let pass): try await self.list(pass, in: database)
        case .file(let database, let file, let pass):
            try await self.reseal(file, of: database, pass)
        case .end(let database, let version, let keptFileCount):
            self.progress.keptFileCount += keptFileCount
            let resealed = try await self.submit(
                RetireKeys(database) { $0.below = keptFileCount == 0 ? version : 0 })
            self.progress.olderKeyCount += Int(clamping: resealed.olderKeyCount)
        case .finish:
            try await self.retries.run { [note] in try await note?.remove() }
        }
    }

    private mutating func start() async throws {
        let (container, store) = (self.container, self.store)
        let note = try await self.retries.run {
            try await KeyRotationNote("databases", of: container, store)
        }
        self.note = note
        let rotation = note.rotation
        guard let place = rotation.place else {
            self.steps = [
                .owners(DatabaseWalk(of: container, self.registry, store)), .finish,
            ]
            return
        }
        self.progress.resumedMilliseconds = rotation.begunMilliseconds
        self.progress.databaseCount = Int(clamping: rotation.databaseCount)
        self.progress.failingCount = Int(clamping: rotation.failingCount)
        let walk = DatabaseWalk(of: container, self.registry, store, after: place.owner)
        self.steps = [.parts(of: place.owner, walk, from: place), .owners(walk), .finish]
    }

    private mutating func begin(_ database: DatabaseID) async throws {
        guard let note = self.note else { return }
        let newest = try await self.retries.run { [keys] in
            try await keys.newestVersion(of: database)
        }
        guard let newest, newest < .max else { return }
        let place: KeyRotation.Place
        if let known = note.rotation.place, known.isIn(database) {
            place = known
        } else {
            place = KeyRotation.Place(database, version: newest + 1)
            // Written before the key is made, so that no other run makes a second one.
            try await self.write { $0.place = place }
        }
        let made = try await self.retries.run { [keys] in
            try await keys.rotate(database, to: place.version)
        }
        guard let version = made else { return }
        self.progress.databaseCount += 1
        var steps: [Step] = []
        if database.scope == .private {
            let zones = try await self.retries.run { [reader] in
                try await reader.zones(of: database)
            }
            steps = zones.map {
                .zone(database, $0, after: nil, version: version, idleCount: 0)
            }
        }
        self.steps.insert(
            contentsOf: steps + [.files(database, FilePass(version: version))], at: 0)
    }

    /// Writes the counts, and what else is to be known.
    private mutating func write(_ change: (inout KeyRotation) -> Void) async throws {
        guard let note = self.note else { return }
        let progress = self.progress
        do {
            self.note = try await self.retries.run {
                var note = note
                try await note.write {
                    $0.databaseCount = UInt64(progress.databaseCount)
                    $0.failingCount = UInt64(progress.failingCount)
                    change(&$0)
                }
                return note
            }
        } catch let error as RouteError { throw Stopped(cause: error) }
    }

    // MARK: Fields

    private mutating func reseal(
        _ database: DatabaseID, _ zone: String, _ after: String?, _ version: UInt32,
        _ idleCount: Int
    ) async throws {
        let (reader, keys) = (self.reader, self.keys)
        let (page, opened, sealer) = try await self.retries.run {
            let page = try await reader.ask(
                SealedRecordsAsk(database) {
                    $0.zone = zone
                    $0.after = after
                    $0.below = version
                })
            return (
                page, try await keys.open(page.records) { _ in database },
                try await keys.fieldSealer(version, of: database)
            )
        }
        guard let sealer else { throw RouteError.refused("its new key is gone") }
        var items: [ResealFields.Item] = []
        for record in page.records {
            guard opened.closed(of: record).isEmpty else {
                throw RouteError.refused(
                    "an encrypted field of record '\(record.name)' does not open")
            }
            items.append(Self.item(record, opened, sealer, zone: zone, version))
        }
        var count = 0
        for part in Self.parts(items) {
            let resealed = try await self.submit(
                ResealFields(database) {
                    $0.zone = zone
                    $0.items = part
                })
            count += Int(clamping: resealed.count)
        }
        self.progress.recordCount += count
        if count < items.count {
            // Somebody saved one of them meanwhile, and its other fields are as they were. What
            // was sealed anew stays so: as long as one is on each page, this comes to an end.
            let idleCount = count > 0 ? 0 : idleCount + 1
            guard idleCount < Self.idleCountMax else {
                throw RouteError.refused("records of zone '\(zone)' change too often")
            }
            if idleCount > 0 { try await self.retries.wait(idleCount / 8) }
            self.steps.insert(
                .zone(database, zone, after: after, version: version, idleCount: idleCount),
                at: 0)
        } else if let next = page.next {
            self.steps.insert(
                .zone(database, zone, after: next, version: version, idleCount: 0), at: 0)
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
        return ResealFields.Item {
            $0.record = record.name
            $0.tag = record.tag
            $0.fields = fields
        }
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

    /// It may be carried out twice: a record that has changed is left as it is.
    private func submit<Operation: DatabaseOperation<RecordState>>(_ operation: Operation)
        async throws -> ResealedFields where Operation.Outcome == ResealedFields
    {
        try await self.retries.run { [reader] in try await reader.submit(operation) }
    }

    // MARK: Files

    /// One walk through the files of a database. The last walk finds none under an older key but
    /// those that stay there.
    private struct FilePass: Sendable {
        let version: UInt32
        var number = 1
        /// The last file that was looked at.
        var after: AssetID?
        /// Files under older keys that this walk has met.
        var olderCount = 0
        var keptCount = 0
        /// Why the last one of them was left as it is.
        var reason: String?
    }

    /// Walks through the files of one database before it is given up.
    private static let filePassCountMax = 6

    private mutating func list(_ pass: FilePass, in database: DatabaseID) async throws {
        let page = try await self.retries.run { [reader] in
            try await reader.ask(
                OlderFilesAsk(database) {
                    $0.after = pass.after
                    $0.below = pass.version
                })
        }
        var next = pass
        var files: [AssetID] = []
        for file in page.files {
            if file.isLost || self.files == nil {
                next.keptCount += 1
            } else {
                next.olderCount += 1
                files.append(file.asset)
            }
        }
        next.after = page.next
        guard page.next == nil else {
            self.steps.insert(
                contentsOf: files.map { .file(database, $0, next) } + [.files(database, next)],
                at: 0)
            return
        }
        if next.olderCount == 0 {
            self.steps.insert(
                .end(database, version: pass.version, keptFileCount: next.keptCount), at: 0)
            return
        }
        guard pass.number < Self.filePassCountMax else {
            throw RouteError.refused(
                "\(next.olderCount) files could not be sealed anew"
                    + (pass.reason.map { ": \($0)" } ?? ""))
        }
        // What was sealed anew is not listed again.
        if pass.number > 1 { try await self.retries.wait(pass.number) }
        var again = FilePass(version: pass.version, number: pass.number + 1)
        again.reason = pass.reason
        self.steps.insert(
            contentsOf: files.map { .file(database, $0, next) } + [.files(database, again)], at: 0)
    }

    private mutating func reseal(_ file: AssetID, of database: DatabaseID, _ pass: FilePass)
        async throws
    {
        guard let files = self.files else { return }
        var left: String?
        do {
            switch try await self.retries.run({ try await files.reseal(file, of: database) }) {
            case .sealed(let size):
                self.progress.fileCount += 1
                self.progress.fileSize += size
            case .left(let reason): left = reason
            }
        } catch let error as RouteError { left = error.reason }
        guard let left else { return }
        // Told if it is still so in the last walk.
        for place in self.steps.indices {
            guard case .files(database, var next) = self.steps[place] else { continue }
            next.reason = left
            self.steps[place] = .files(database, next)
            return
        }
    }
}
