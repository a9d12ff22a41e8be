import StratusCoding
import StratusModel
import StratusSQLite

/// An index of where each copy of one partition is. It is a cache: all of it can be made again from
/// the packs.
///
/// A commit is not synced. After a power cut the index is what it was after some earlier commit,
/// and ``PackRecovery`` reads the packs from the places that this earlier state notes.
final class PackIndex {
    /// The facts known about one pack.
    struct Pack: Equatable {
        var number: UInt64
        /// Records before this place are in the index, and were synced.
        var indexedTo: UInt64
        var isSealed: Bool
    }

    /// The position of a copy.
    struct Place: Equatable {
        var pack: UInt64
        var record: PackRecord
        /// It did not read as it was written.
        var isDamaged: Bool
    }

    private let connection: Connection
    private let system: FileSystem
    private let path: DiskPath
    private let find: Statement
    private let list: Statement
    private let listDamaged: Statement
    private let insert: Statement
    private let delete: Statement
    private let mark: Statement
    private let inPack: Statement
    private let putPack: Statement
    private let deletePack: Statement
    private let deletePackCopies: Statement

    private static let columns = "body, ordinal, pack, position, size, crc, orphan, damaged"

    /// Opens the index of `directory`, or makes an empty one.
    ///
    /// Each gets a file system of its own: what the syncs of an index came to must not end the
    /// process, which it does for rows. After a failure the index is opened again, or made again.
    init(_ directory: PackDirectory, in files: any Files) throws(StoreError) {
        let path = directory.index
        let tag = 0x0002_0000 | UInt32(directory.group.raw)
        let system = FileSystem(files)
        if try onDisk({ () throws(DiskError) in try files.exists(path) }) {
            try RowDatabase.makeDurable(path, in: files)
        } else {
            // What lies beside an absent database belongs to one that is gone.
            try RowDatabase.discard(path, in: files)
        }
        self.system = system
        self.path = path
        let connection = try storing { () throws(SQLiteError) in
            let connection = try Connection(
                path, in: system, .init(synchronous: .normal, fileTag: tag))
            try connection.execute("BEGIN")
            try connection.execute(
                """
                CREATE TABLE IF NOT EXISTS copy (body BLOB NOT NULL, ordinal INTEGER NOT NULL,
                pack INTEGER NOT NULL, position INTEGER NOT NULL, size INTEGER NOT NULL,
                crc INTEGER NOT NULL, orphan INTEGER NOT NULL, damaged INTEGER NOT NULL,
                PRIMARY KEY (body, ordinal)) WITHOUT ROWID
                """)
            try connection.execute(
                "CREATE INDEX IF NOT EXISTS copy_pack ON copy (pack, position, size)")
            // Few are: without an index each page would be looked for in all the rest.
            try connection.execute(
                """
                CREATE INDEX IF NOT EXISTS copy_damaged ON copy (body, ordinal)
                WHERE damaged = 1
                """)
            try connection.execute(
                """
                CREATE TABLE IF NOT EXISTS pack (number INTEGER PRIMARY KEY,
                indexed INTEGER NOT NULL, sealed INTEGER NOT NULL)
                """)
            try connection.execute("COMMIT")
            return connection
        }
        self.connection = connection
        func prepared(_ sql: String) throws(StoreError) -> Statement {
            try storing { () throws(SQLiteError) in try connection.prepare(sql) }
        }
        self.find = try prepared(
            "SELECT \(Self.columns) FROM copy WHERE body = ?1 AND ordinal = ?2")
        func listing(_ isDamaged: String) throws(StoreError) -> Statement {
            try prepared(
                """
                SELECT \(Self.columns) FROM copy
                WHERE (body, ordinal) >= (?1, ?2) AND damaged = \(isDamaged)
                ORDER BY body, ordinal LIMIT ?3
                """)
        }
        self.list = try listing("0")
        self.listDamaged = try listing("1")
        self.insert = try prepared(
            "INSERT OR REPLACE INTO copy (\(Self.columns)) VALUES (?1,?2,?3,?4,?5,?6,?7,?8)")
        self.delete = try prepared("DELETE FROM copy WHERE body = ?1 AND ordinal = ?2")
        self.mark = try prepared(
            "UPDATE copy SET damaged = ?3 WHERE body = ?1 AND ordinal = ?2")
        self.inPack = try prepared(
            """
            SELECT \(Self.columns) FROM copy
            WHERE (pack, position) >= (?1, ?2) ORDER BY pack, position LIMIT ?3
            """)
        self.putPack = try prepared(
            "INSERT OR REPLACE INTO pack (number, indexed, sealed) VALUES (?1, ?2, ?3)")
        self.deletePack = try prepared("DELETE FROM pack WHERE number = ?1")
        self.deletePackCopies = try prepared("DELETE FROM copy WHERE pack = ?1")
    }

    /// Whether this index cannot be trusted any more, nor opened again as it is.
    var hasFailedSync: Bool { self.system.hasFailedSync }

    // MARK: Reading

    func place(of name: CopyName) throws(StoreError) -> Place? {
        try storing { () throws(SQLiteError) in
            defer { self.find.reset() }
            try self.find.bind(Self.key(name.body).span.bytes, at: 1)
            try self.find.bind(Int64(name.ordinal), at: 2)
            return try self.find.step() ? Self.place(self.find) : nil
        }
    }

    /// Copies from `name` on, ascending: the sound ones, or those that were found damaged.
    func held(from name: CopyName, limit: Int, areDamaged: Bool = false) throws(StoreError)
        -> [HeldCopy]
    {
        try storing { () throws(SQLiteError) in
            let list = areDamaged ? self.listDamaged : self.list
            defer { list.reset() }
            try list.bind(Self.key(name.body).span.bytes, at: 1)
            try list.bind(Int64(name.ordinal), at: 2)
            try list.bind(Int64(limit), at: 3)
            var copies: [HeldCopy] = []
            while try list.step() { copies.append(Self.place(list).record.copy) }
            return copies
        }
    }

    /// Copies in the order of packs and places, from `position` of `pack` on, damaged ones too.
    func places(from pack: UInt64, _ position: UInt64, limit: Int) throws(StoreError) -> [Place] {
        try storing { () throws(SQLiteError) in
            defer { self.inPack.reset() }
            try self.inPack.bind(Int64(bitPattern: pack), at: 1)
            try self.inPack.bind(Int64(bitPattern: position), at: 2)
            try self.inPack.bind(Int64(limit), at: 3)
            var places: [Place] = []
            while try self.inPack.step() { places.append(Self.place(self.inPack)) }
            return places
        }
    }

    func packs() throws(StoreError) -> [Pack] {
        try storing { () throws(SQLiteError) in
            let statement = try self.connection.prepare(
                "SELECT number, indexed, sealed FROM pack ORDER BY number")
            defer { statement.reset() }
            var packs: [Pack] = []
            while try statement.step() {
                packs.append(
                    Pack(
                        number: UInt64(bitPattern: statement.integer(in: 0)),
                        indexedTo: UInt64(bitPattern: statement.integer(in: 1)),
                        isSealed: statement.integer(in: 2) != 0))
            }
            return packs
        }
    }

    /// How many bytes of each pack the index speaks of.
    func liveSizes() throws(StoreError) -> [UInt64: UInt64] {
        try storing { () throws(SQLiteError) in
            let statement = try self.connection.prepare("SELECT pack, size FROM copy")
            defer { statement.reset() }
            var sizes: [UInt64: UInt64] = [:]
            while try statement.step() {
                let size = PackFormat.recordSize(of: UInt32(statement.integer(in: 1)))
                sizes[UInt64(bitPattern: statement.integer(in: 0)), default: 0] += UInt64(size)
            }
            return sizes
        }
    }

    // MARK: Writing

    /// All of `body`'s changes, or none.
    func change(_ body: () throws(StoreError) -> Void) throws(StoreError) {
        try storing { () throws(SQLiteError) in try self.connection.execute("BEGIN IMMEDIATE") }
        do throws(StoreError) {
            try body()
            try storing { () throws(SQLiteError) in try self.connection.execute("COMMIT") }
        } catch {
            if self.connection.isInTransaction { try? self.connection.execute("ROLLBACK") }
            throw error
        }
    }

    func put(_ record: PackRecord, in pack: UInt64) throws(StoreError) {
        let copy = record.copy
        try storing { () throws(SQLiteError) in
            defer { self.insert.reset() }
            try self.insert.bind(Self.key(copy.name.body).span.bytes, at: 1)
            let numbers: [Int64] = [
                Int64(copy.name.ordinal), Int64(bitPattern: pack),
                Int64(bitPattern: record.position), Int64(copy.storedSize), Int64(copy.crc),
                copy.orphanAfterMilliseconds, 0,
            ]
            for (offset, number) in numbers.enumerated() {
                try self.insert.bind(number, at: Int32(offset + 2))
            }
            try self.insert.run()
        }
    }

    func note(_ pack: Pack) throws(StoreError) {
        try self.run(
            self.putPack, Int64(bitPattern: pack.number), Int64(bitPattern: pack.indexedTo),
            pack.isSealed ? 1 : 0)
    }

    func remove(_ name: CopyName) throws(StoreError) {
        try storing { () throws(SQLiteError) in
            defer { self.delete.reset() }
            try self.delete.bind(Self.key(name.body).span.bytes, at: 1)
            try self.delete.bind(Int64(name.ordinal), at: 2)
            try self.delete.run()
        }
    }

    func set(_ name: CopyName, isDamaged: Bool) throws(StoreError) {
        try storing { () throws(SQLiteError) in
            defer { self.mark.reset() }
            try self.mark.bind(Self.key(name.body).span.bytes, at: 1)
            try self.mark.bind(Int64(name.ordinal), at: 2)
            try self.mark.bind(isDamaged ? 1 : 0, at: 3)
            try self.mark.run()
        }
    }

    /// Forgets a pack and every copy that was thought to be in it.
    func remove(pack: UInt64) throws(StoreError) {
        try self.run(self.deletePackCopies, Int64(bitPattern: pack))
        try self.run(self.deletePack, Int64(bitPattern: pack))
    }

    private func run(_ statement: Statement, _ numbers: Int64...) throws(StoreError) {
        try storing { () throws(SQLiteError) in
            defer { statement.reset() }
            for (offset, number) in numbers.enumerated() {
                try statement.bind(number, at: Int32(offset + 1))
            }
            try statement.run()
        }
    }

    // MARK: The disk

    var walFrameCount: Int { self.connection.walFrameCount }

    /// Makes every commit durable.
    func checkpoint() throws(StoreError) {
        let result = try storing { () throws(SQLiteError) in try self.connection.checkpoint() }
        precondition(result.isComplete, "the index has one connection, which reads nothing now")
    }

    // MARK: Columns

    private static func key(_ body: BodyID) -> Bytes { BodyCoding.key(of: body) }

    private static func place(_ statement: Statement) -> Place {
        var raw: UInt128 = 0
        for byte in statement.unownedBlob(in: 0) { raw = raw << 8 | UInt128(byte) }
        let copy = HeldCopy(
            name: CopyName(
                body: BodyID(raw), ordinal: UInt32(truncatingIfNeeded: statement.integer(in: 1))),
            orphanAfterMilliseconds: statement.integer(in: 6),
            storedSize: UInt32(truncatingIfNeeded: statement.integer(in: 4)),
            crc: UInt32(truncatingIfNeeded: statement.integer(in: 5)))
        return Place(
            pack: UInt64(bitPattern: statement.integer(in: 2)),
            record: PackRecord(
                copy: copy, position: UInt64(bitPattern: statement.integer(in: 3))),
            isDamaged: statement.integer(in: 7) != 0)
    }
}
