import Foundation
import StratusModel
import Testing

@testable import StratusRuntime

@Suite struct RealFilesTests {
    @Test func `what is written is read back, and a short read means the end`() throws {
        try withTemporaryDirectory { path in
            let files = try RealFiles(directory: path)
            let file = try files.open("a", create: true)
            try Bytes("hello".utf8).withUnsafeBytes { try file.write($0, at: 3) }
            try file.sync()
            #expect(try file.length == 8)
            var room = Bytes(repeating: 7, count: 20)
            let count = try room.withUnsafeMutableBytes { try file.read($0, at: 0) }
            #expect(count == 8)
            #expect(Bytes(room[..<8]) == [0, 0, 0] + Bytes("hello".utf8))
            try file.resize(4)
            #expect(try file.length == 4)
        }
    }

    @Test func `a missing file is told apart from everything else`() throws {
        try withTemporaryDirectory { path in
            let files = try RealFiles(directory: path)
            #expect(throws: DiskError(.notFound, during: "open", path: "none", code: ENOENT)) {
                try files.open("none", create: false)
            }
            #expect(throws: DiskError(.notFound, during: "remove", path: "none", code: ENOENT)) {
                try files.remove("none")
            }
            #expect(try !files.exists("none"))
            #expect(try !files.exists("none/below"))
        }
    }

    @Test func `directories are made with their parents, listed in byte order and removed`() throws
    {
        try withTemporaryDirectory { path in
            let files = try RealFiles(directory: path + "/deep/er")
            try files.makeDirectory("x/y/z")
            try files.makeDirectory("x/y/z")
            for name in ["b", "a", "B", "ä"] {
                _ = try files.open(DiskPath("x/y").appending(name), create: true)
            }
            try files.syncDirectory("x/y")
            try files.syncDirectory(.root)
            #expect(try files.list("x/y") == ["B", "a", "b", "z", "ä"])
            try files.remove("x/y/z")
            #expect(try !files.exists("x/y/z"))
            try files.rename("x/y/a", to: "x/y/b")
            #expect(try files.list("x/y") == ["B", "b", "ä"])
        }
    }

    @Test func `a lock is refused while another holds it, and free once that is gone`() throws {
        try withTemporaryDirectory { path in
            let files = try RealFiles(directory: path)
            var held: (any DiskLock)? = try files.lock("lock")
            #expect(throws: DiskError(.denied, during: "lock", path: "lock", code: EWOULDBLOCK)) {
                try files.lock("lock")
            }
            _ = held
            held = nil
            _ = try files.lock("lock")
        }
    }

    /// Syncing a pipe is refused by every kernel: the one failure to be had without a faulty disk.
    @Test func `a sync that failed once fails for ever, on every handle of the file`() throws {
        var ends: [Int32] = [0, 0]
        #expect(pipe(&ends) == 0)
        let poisoned = RealFiles.Poisoned()
        let second = dup(ends[1])
        defer { close(ends[0]) }
        let file = try RealFile(descriptor: ends[1], path: "broken", poisoned: poisoned)
        let other = try RealFile(descriptor: second, path: "broken", poisoned: poisoned)
        #expect(throws: DiskError(.syncFailed, during: "sync", path: "broken", code: EINVAL)) {
            try file.sync()
        }
        for handle in [file, other] {
            #expect(throws: DiskError(.syncFailed, during: "sync", path: "broken")) {
                try handle.sync()
            }
            #expect(throws: DiskError(.syncFailed, during: "write", path: "broken")) {
                try Bytes([1]).withUnsafeBytes { try handle.write($0, at: 0) }
            }
        }
    }

    @Test func `a full disk says so`() throws {
        let poisoned = RealFiles.Poisoned()
        let file = try RealFile(
            descriptor: open("/dev/full", O_RDWR), path: "full", poisoned: poisoned)
        #expect(throws: DiskError(.full, during: "write", path: "full", code: ENOSPC)) {
            try Bytes([1]).withUnsafeBytes { try file.write($0, at: 0) }
        }
    }

    @Test func `a path that leaves the directory stops the process`() async {
        await #expect(processExitsWith: .failure) {
            let files = try RealFiles(directory: "/tmp")
            _ = try files.exists("../etc")
        }
    }

    @Test func `random numbers do not repeat`() throws {
        try withTemporaryDirectory { path in
            let world = try RealWorld(dataDirectory: path)
            let drawn = Set((0..<10_000).map { _ in world.random() })
            #expect(drawn.count == 10_000)
        }
    }
}

/// A directory of the test's own, gone afterwards.
func withTemporaryDirectory<Result>(_ body: (String) throws -> Result) throws -> Result {
    let path = makeTemporaryDirectory()
    defer { removeDirectory(path) }
    return try body(path)
}

func makeTemporaryDirectory() -> String {
    let parent = FileManager.default.temporaryDirectory.path
    var template = Array("\(parent)/stratus-runtime-XXXXXX".utf8CString)
    precondition(mkdtemp(&template) != nil)
    return template.withUnsafeBufferPointer { String(cString: $0.baseAddress!) }
}

func removeDirectory(_ path: String) {
    try? FileManager.default.removeItem(atPath: path)
}
