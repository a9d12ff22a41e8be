import ChildProcesses
import Glibc
import Testing

/// The ground the process tests stand on.
@Suite struct ChildProcessTests {
    @Test func `of a hundred children started at once each sees its own end of file`()
        async throws
    {
        // Each child holds its input open until it is released; while they overlap, a leaked end of
        // any pipe would keep another from ending.
        let children = try await withThrowingTaskGroup(of: (Int, ChildProcess).self) { group in
            for number in 0..<100 {
                group.addTask {
                    let child = try ChildProcess(
                        "/bin/sh",
                        ["-c", "echo up \(number); cat > /dev/null; echo down \(number) >&2"],
                        input: .leash)
                    return (number, child)
                }
            }
            return try await group.reduce(into: []) { $0.append($1) }
        }
        for (number, child) in children {
            #expect(await child.firstLine() == "up \(number)")
        }
        // One after the other, in both directions: each ends while all others live.
        for (number, child) in children.sorted(by: { $0.0 < $1.0 }) {
            child.closeInput()
            let ended = try await child.end(within: .seconds(20))
            #expect(ended.code == 0 && ended.isWhole)
            #expect(ended.output == "up \(number)\n" && ended.errors == "down \(number)\n")
        }
    }

    @Test func `input is passed on, also more than a pipe holds, and nobody need read it`()
        async throws
    {
        let much = [UInt8](repeating: 0x61, count: 1 << 20)
        let counted = try await ChildProcess.run("/usr/bin/wc", ["-c"], input: .bytes(much))
        #expect(counted.output == "1048576\n")
        let unread = try await ChildProcess.run("/bin/true", input: .bytes(much))
        #expect(unread.code == 0)
    }

    @Test func `a child that does not end is killed and named`() async throws {
        let child = try ChildProcess("/bin/sleep", ["3000"])
        await #expect(throws: ChildProcess.Failure.self) {
            try await child.end(within: .milliseconds(50))
        }
        #expect(try await child.end().code == 128 + SIGKILL)
        let forgotten = try ChildProcess("/bin/sleep", ["3000"], lifetime: .milliseconds(20))
        #expect(try await forgotten.end().code == 128 + SIGKILL)
    }

    @Test func `a grandchild that keeps the pipe does not keep the test`() async throws {
        let ended = try await ChildProcess.run("/bin/sh", ["-c", "sleep 8 & echo done"])
        #expect(ended.code == 0)
        #expect(ended.output == "done\n")
        #expect(!ended.isWhole)
    }

    @Test func `a child ends with the last reference, and on a leash in its own way`() async throws
    {
        var child: ChildProcess? = try ChildProcess("/bin/sleep", ["3000"])
        let identifier = try #require(child?.identifier)
        child = nil
        try await Self.gone(identifier)
        var leashed: ChildProcess? = try ChildProcess("/bin/cat", input: .leash)
        let other = try #require(leashed?.identifier)
        leashed = nil
        try await Self.gone(other)
    }

    @Test func `a program that is not there is a failure, and its descriptors go`() throws {
        #expect(throws: ChildProcess.Failure.self) { try ChildProcess("/nowhere/program") }
    }

    @Test func `a child has its three descriptors and no other`() async throws {
        let file = open("/dev/null", O_RDONLY)
        let stray = fcntl(file, F_DUPFD, 200)
        defer {
            close(file)
            close(stray)
        }
        let ended = try await ChildProcess.run(
            "/bin/sh",
            [
                "-c",
                "for n in 0 1 2 3 4 5 6 7 8 9 \(stray); do [ -e /proc/$$/fd/$n ] && echo $n; done; true",
            ])
        #expect(ended.output == "0\n1\n2\n")
    }

    /// Reaped: not even a zombie answers to its number.
    private static func gone(_ identifier: pid_t) async throws {
        for _ in 0..<2_000 {
            if kill(identifier, 0) != 0 { return }
            try await Task.sleep(for: .milliseconds(3))
        }
        Issue.record("\(identifier) is there still")
    }
}
