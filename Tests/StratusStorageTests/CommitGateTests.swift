import StratusDoubles
import StratusModel
import StratusRows
import StratusSQLite
import StratusStorage
import Synchronization
import Testing

/// The one gate that SQLite's WAL-reset race asks for, and what stands behind it.
@Suite struct CommitGateTests {
    /// A disk that calls back before the first write to a database's own file: in the middle of a
    /// checkpoint.
    final class HookedFiles: Files {
        let files = SimulatedFiles(seed: 1)
        let hook = Mutex<(@Sendable () -> Void)?>(nil)

        final class HookedFile: File {
            let file: any File
            let path: DiskPath
            let owner: HookedFiles
            init(_ file: any File, _ path: DiskPath, _ owner: HookedFiles) {
                self.file = file
                self.path = path
                self.owner = owner
            }
            func read(_ into: UnsafeMutableRawBufferPointer, at offset: UInt64) throws(DiskError)
                -> Int
            { try self.file.read(into, at: offset) }
            func write(_ from: UnsafeRawBufferPointer, at offset: UInt64) throws(DiskError) {
                if self.path == "rows.db" {
                    let hook = self.owner.hook.withLock { hook in
                        defer { hook = nil }
                        return hook
                    }
                    hook?()
                }
                try self.file.write(from, at: offset)
            }
            func sync() throws(DiskError) { try self.file.sync() }
            func resize(_ length: UInt64) throws(DiskError) { try self.file.resize(length) }
            var length: UInt64 { get throws(DiskError) { try self.file.length } }
        }

        func open(_ path: DiskPath, create: Bool) throws(DiskError) -> any File {
            HookedFile(try self.files.open(path, create: create), path, self)
        }
        func rename(_ from: DiskPath, to: DiskPath) throws(DiskError) {
            try self.files.rename(from, to: to)
        }
        func remove(_ path: DiskPath) throws(DiskError) { try self.files.remove(path) }
        func exists(_ path: DiskPath) throws(DiskError) -> Bool { try self.files.exists(path) }
        func makeDirectory(_ path: DiskPath) throws(DiskError) {
            try self.files.makeDirectory(path)
        }
        func syncDirectory(_ path: DiskPath) throws(DiskError) {
            try self.files.syncDirectory(path)
        }
        func list(_ path: DiskPath) throws(DiskError) -> [DiskPath] { try self.files.list(path) }
        func lock(_ path: DiskPath) throws(DiskError) -> any DiskLock { try self.files.lock(path) }
        func space() throws(DiskError) -> DiskSpace { try self.files.space() }
    }

    /// Two connections that SQLite itself would let run side by side.
    static let one: Bytes = [1]
    static let two: Bytes = [2]

    /// `@unchecked Sendable`: used by one thread; the hook runs on the one that calls it.
    struct Pair: @unchecked Sendable {
        let files = HookedFiles()
        let writer: RowDatabase
        let checkpointer: RowDatabase

        init() throws {
            let system = FileSystem(self.files)
            let options = Connection.Options(synchronous: .normal, fileTag: 1)
            try RowDatabase.make("rows.db", in: system, fileTag: 1)
            self.writer = try RowDatabase("rows.db", in: system, options)
            self.checkpointer = try RowDatabase("rows.db", in: system, options)
            try self.write(1)
            _ = try Rows(over: self.checkpointer).row(.record, CommitGateTests.one)
        }

        func write(_ number: UInt8) throws {
            let rows = Rows(over: self.writer)
            try rows.put(.record, [number], Bytes(repeating: number, count: 300))
            try rows.commit()
        }
    }

    @Test func `reads and uncommitted writes may run beside a checkpoint`() throws {
        let pair = try Pair()
        pair.files.hook.withLock { hook in
            hook = {
                let rows = Rows(over: pair.writer)
                #expect((try? rows.row(.record, Self.one))?.count == 300)
                #expect((try? rows.put(.record, Self.two, Self.two)) != nil)
                rows.freeze()
                #expect((try? rows.writeFrozen()) == true)
            }
        }
        #expect(try pair.checkpointer.checkpoint().isComplete)
        try pair.writer.commit()
        #expect(try Rows(over: pair.checkpointer).row(.record, Self.two) == [2])
    }

    @Test func `S-45 a COMMIT beside a checkpoint stops the process`() async {
        await #expect(processExitsWith: .failure) {
            let pair = try Pair()
            pair.files.hook.withLock { hook in hook = { try? pair.write(2) } }
            _ = try pair.checkpointer.checkpoint()
        }
    }
}
