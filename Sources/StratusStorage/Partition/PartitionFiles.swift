import StratusModel
import StratusSQLite

/// The places of one partition's files, and which of them count.
///
/// ```text
/// partitions/00012/rows-3.db        the rows; the highest number is the one that counts
/// partitions/00012/rows-3.db-wal    SQLite's, beside it
/// partitions/00012/rows-3.rotten    says of rows-3.db that its rows are not what was applied;
/// partitions/00012/rows-3.differ    or that they are others than those of most replicas
/// partitions/00012/unfinished.db    a snapshot being installed: worthless after a restart
/// partitions/00012/snapshot         a snapshot being sent, arrivals one being received: both lose
/// their partitions/00012/arrivals         name as soon as they are open, and are worthless after a
/// restart partitions/00012/damaged.db       rows that rotted, set aside until a snapshot has taken
/// their place
/// ```
///
/// Installing a snapshot makes a file and renames it to the next number. That is one atomic step,
/// and nothing of the older database, above all not its WAL, can be taken for a part of the new
/// one.
struct PartitionFiles: Sendable {
    let directory: DiskPath
    let tag: UInt32

    init(_ group: GroupID, in parent: DiskPath) {
        let number = String(group.raw)
        let name = String(repeating: "0", count: 5 - number.count) + number
        self.directory = parent.appending(name)
        // Not 0, which is what a file of another kind might have there.
        self.tag = 0x0001_0000 | UInt32(group.raw)
    }

    var spool: DiskPath { self.directory.appending("snapshot") }
    var arrivals: DiskPath { self.directory.appending("arrivals") }

    var unfinished: DiskPath { self.directory.appending("unfinished.db") }
    var aside: DiskPath { self.directory.appending("damaged.db") }

    func rows(_ number: Int) -> DiskPath { self.directory.appending("rows-\(number).db") }

    /// Removes every database but the one that counts. Returns its number; nil if there is none.
    func settle(in files: any Files) throws(DiskError) -> Int? {
        guard try files.exists(self.directory) else { return nil }
        let names = try files.list(self.directory).map(\.raw)
        let current = names.compactMap { self.number($0) }.max()
        let counted =
            current.map { number in
                [self.rows(number).raw, self.rows(number).raw + "-wal"]
                    + WrongRows.allCases.map { self.mark(number, $0).raw }
            } ?? []
        for name in names {
            let path = self.directory.appending(name)
            let counts = counted.contains(path.raw) || path.raw.hasPrefix(self.aside.raw)
            if !counts { try files.remove(path) }
        }
        return current
    }

    /// Moves the rows that count to a name that nobody takes for the partition. Their WAL moves
    /// second: a crash in between leaves a WAL without its database, which the next start removes.
    func setAside(in files: any Files) throws(DiskError) {
        guard let current = try self.settle(in: files) else { return }
        try self.discardAside(in: files)
        for suffix in ["", "-wal"] {
            let path = DiskPath(self.rows(current).raw + suffix)
            guard try files.exists(path) else { continue }
            try files.rename(path, to: DiskPath(self.aside.raw + suffix))
        }
        try files.syncDirectory(self.directory)
    }

    func discardAside(in files: any Files) throws(DiskError) {
        for suffix in ["", "-wal"] {
            let path = DiskPath(self.aside.raw + suffix)
            if try files.exists(path) { try files.remove(path) }
        }
    }

    // MARK: Marks

    private func mark(_ number: Int, _ wrong: WrongRows) -> DiskPath {
        self.directory.appending("rows-\(number).\(wrong.rawValue)")
    }

    /// Its name is what it says.
    func mark(_ number: Int, as wrong: WrongRows, in files: any Files) throws(DiskError) {
        let file = try files.open(self.mark(number, wrong), create: true)
        try file.write(Bytes("wrong\n".utf8), at: 0)
        try file.sync()
        try files.syncDirectory(self.directory)
    }

    func mark(of number: Int, in files: any Files) throws(DiskError) -> WrongRows? {
        for wrong in WrongRows.allCases where try files.exists(self.mark(number, wrong)) {
            return wrong
        }
        return nil
    }

    func removeMarks(of number: Int, in files: any Files) throws(DiskError) {
        for wrong in WrongRows.allCases where try files.exists(self.mark(number, wrong)) {
            try files.remove(self.mark(number, wrong))
        }
    }

    private func number(_ name: String) -> Int? {
        guard name.hasPrefix("rows-"), name.hasSuffix(".db") else { return nil }
        return Int(name.dropFirst(5).dropLast(3))
    }
}
