import CSpawn
import Foundation
import Glibc
import Synchronization

/// A child program of a test: started, listened to and ended.
///
/// Why not Foundation's `Process`: its pipes, and the socket by which it hears of an end, can leak
/// into children that another thread starts at the same moment. A test that waits for the end of
/// such a pipe waits for another child's end too, for ever if that is a server. Here:
/// - every descriptor is made with `O_CLOEXEC`, and a child closes whatever else it inherits;
/// - every wait has a deadline, and waits without holding a thread of the test's pool;
/// - a child that outlives `lifetime` is killed, even if its test has forgotten it.
///
/// One thread for each child reads, writes and reaps. It holds the state alone, so that a child
/// ends with the last reference to it.
public final class ChildProcess: Sendable {
    /// The input that a child reads.
    public enum Input: Sendable {
        case nothing
        /// These bytes, then the end.
        case bytes([UInt8])
        /// Nothing, but open until ``ChildProcess/closeInput()``, the last reference or the death
        /// of this process, whichever comes first.
        case leash
    }

    public struct Ended: Sendable, Equatable {
        /// The exit code. For a child that a signal ended it is 128 plus the signal's number, as in
        /// a shell.
        public var code: Int32
        public var output: String
        public var errors: String
        /// Both pipes were read to their end. False where a grandchild kept one open.
        public var isWhole: Bool
    }

    public struct Failure: Error, CustomStringConvertible {
        public let description: String

        public init(_ description: String) { self.description = description }
    }

    public let identifier: Int32
    private let state: ChildState
    private let isLeashed: Bool

    /// - Parameter environment: added to this process's own, less everything named `STRATUS…`.
    public init(
        _ path: String, _ arguments: [String] = [], environment: [String: String] = [:],
        input: Input = .nothing, lifetime: Duration = .seconds(900)
    ) throws {
        var all = ProcessInfo.processInfo.environment.filter { !$0.key.hasPrefix("STRATUS") }
        all.merge(environment) { $1 }
        let output = try PipeEnds()
        let errors = try PipeEnds()
        var stdin: PipeEnds?
        var isLeashed = false
        switch input {
        case .nothing: break
        case .bytes: stdin = try PipeEnds()
        case .leash:
            stdin = try PipeEnds()
            isLeashed = true
        }
        self.isLeashed = isLeashed
        do {
            self.identifier = try Self.spawn(
                path, [path] + arguments, all.map { "\($0.key)=\($0.value)" }, stdin?.reading,
                output.writing, errors.writing)
        } catch {
            for pipe in [output, errors, stdin] { pipe?.close() }
            throw error
        }
        // The child's ends.
        for descriptor in [output.writing, errors.writing, stdin?.reading ?? -1]
        where descriptor >= 0 {
            close(descriptor)
        }
        var bytes: [UInt8] = []
        if case .bytes(let given) = input { bytes = given }
        self.state = ChildState(
            self.identifier, input: stdin?.writing, bytes: bytes, output: output.reading,
            errors: errors.reading, lifetime: lifetime)
        let state = self.state
        Thread.detachNewThread { state.watch() }
    }

    deinit {
        self.state.closeInput()
        // A child on a leash ends in its own way when its input ends.
        if !self.isLeashed { self.state.signal(SIGKILL) }
    }

    /// Runs to the end.
    public static func run(
        _ path: String, _ arguments: [String] = [], environment: [String: String] = [:],
        input: Input = .nothing, within limit: Duration = .seconds(180)
    ) async throws -> Ended {
        let child = try ChildProcess(path, arguments, environment: environment, input: input)
        return try await child.end(within: limit)
    }

    public var output: String { self.state.text(\.output) }
    public var errors: String { self.state.text(\.errors) }
    public var isRunning: Bool { self.state.isRunning }

    /// Nothing happens when the child has ended: its number may be somebody else's by then.
    public func signal(_ number: Int32) { self.state.signal(number) }

    public func closeInput() { self.state.closeInput() }

    /// Waits for the end. A child that has not ended within `limit` is killed, and that is the
    /// failure.
    public func end(within limit: Duration = .seconds(180)) async throws -> Ended {
        if await self.waits(within: limit, until: { self.state.ended != nil }),
            let ended = self.state.ended
        {
            return ended
        }
        self.signal(SIGKILL)
        throw Failure(
            "process \(self.identifier) did not end within \(limit); output: \(self.output); "
                + "errors: \(self.errors)")
    }

    /// The first line of output, once it is there; nil when the child ended without one.
    public func firstLine(within limit: Duration = .seconds(120)) async -> String? {
        _ = await self.waits(within: limit) {
            self.output.contains("\n") || self.state.ended != nil
        }
        let text = self.output
        return text.firstIndex(of: "\n").map { String(text[..<$0]) }
    }

    /// Waits until `condition` holds, `limit` at most.
    public func waits(
        within limit: Duration = .seconds(120), until condition: () throws -> Bool
    ) async rethrows -> Bool {
        let clock = ContinuousClock()
        let end = clock.now + limit
        while clock.now < end {
            if try condition() { return true }
            try? await Task.sleep(for: .milliseconds(3))
        }
        return try condition()
    }

    private static func spawn(
        _ path: String, _ arguments: [String], _ environment: [String], _ input: Int32?,
        _ output: Int32, _ errors: Int32
    ) throws -> pid_t {
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        if let input {
            posix_spawn_file_actions_adddup2(&actions, input, 0)
        } else {
            posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)
        }
        posix_spawn_file_actions_adddup2(&actions, output, 1)
        posix_spawn_file_actions_adddup2(&actions, errors, 2)
        // Whatever a library opened without O_CLOEXEC.
        spawn_close_from(&actions, 3)

        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        var none = sigset_t()
        sigemptyset(&none)
        var every = sigset_t()
        sigfillset(&every)
        posix_spawnattr_setsigmask(&attributes, &none)
        posix_spawnattr_setsigdefault(&attributes, &every)
        posix_spawnattr_setflags(
            &attributes, Int16(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF))

        let argv = arguments.map { strdup($0) } + [nil]
        let envp = environment.map { strdup($0) } + [nil]
        defer { for text in argv + envp { free(text) } }
        var identifier: pid_t = 0
        let result = posix_spawn(&identifier, path, &actions, &attributes, argv, envp)
        guard result == 0 else {
            throw Failure("\(path) did not start: \(String(cString: strerror(result)))")
        }
        return identifier
    }
}
