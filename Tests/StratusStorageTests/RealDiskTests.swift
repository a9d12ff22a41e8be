import Foundation
import StratusDoubles
import StratusModel
import StratusRuntime
import StratusSQLite
import StratusStorage
import Testing

/// The same code on a real disk, in a directory of its own.
@Suite struct RealDiskTests {
    static func withWorld(_ body: (String) throws -> Void) throws {
        let directory = NSTemporaryDirectory() + "stratus-storage-\(UUID().uuidString)"
        defer { try? FileManager.default.removeItem(atPath: directory) }
        try body(directory)
    }

    @Test func `the simulated disk and the real one name the same files`() throws {
        try Self.withWorld { directory in
            for files in [try RealWorld(dataDirectory: directory).files, SimulatedFiles(seed: 1)] {
                try files.makeDirectory("a/b")
                for path in ["a/2", "a/10", "a/b/c"] as [DiskPath] {
                    _ = try files.open(path, create: true)
                }
                #expect(try files.list("a") == ["10", "2", "b"])
                #expect(try files.list(.root) == ["a"])
                try files.rename("a/2", to: "a/3")
                try files.remove("a/10")
                #expect(try files.list("a") == ["3", "b"])
                #expect(try files.exists("a/3") && !files.exists("a/2"))
                #expect(throws: DiskError.self) { _ = try files.open("a/2", create: false) }
                let lock = try files.lock("L")
                #expect(throws: DiskError.self) { _ = try files.lock("L") }
                withExtendedLifetime(lock) {}
            }
        }
    }

    @Test func `a partition goes on after a restart`() throws {
        try Self.withWorld { directory in
            for life in 0..<3 as Range<UInt64> {
                let world = try RealWorld(dataDirectory: directory)
                let data = try DataDirectory(in: world)
                let store = try PartitionStore(
                    RegisterState(), group: GroupID(12), in: "partitions",
                    of: FileSystem(world.files))
                #expect(store.applied.raw == life * 20)
                try store.take((life * 20 + 1)...(life * 20 + 20))
                if life == 1 { try store.close() }
                try store.expectState(through: life * 20 + 20, "life \(life)")
                #expect(try store.verify() == [])
                withExtendedLifetime(data) {}
            }
        }
    }

    @Test func `a log goes on after a restart`() throws {
        try Self.withWorld { directory in
            for life in 0..<3 as Range<UInt64> {
                let world = try RealWorld(dataDirectory: directory)
                var limits = SegmentedLog.Limits()
                limits.segmentSize = .kibibytes(16)
                let log = try SegmentedLog(in: "log", of: world, isNew: life == 0, limits: limits) {
                    _ in
                }
                #expect(log.damage == SegmentedLog.Damage())
                #expect(log.last(of: GroupID(1)).index.raw == life * 100)
                log.append(1, (life * 100 + 1)...(life * 100 + 100))
                log.flushAll()
                log.release(GroupID(1), through: LogIndex(life * 100 + 50))
                #expect(log.fault == nil)
            }
        }
    }
}
