import Glibc
import StratusRuntime

/// The known state of a child, and the thread that finds it out.
final class ChildState: Sendable {
    private struct Known {
        var output: [UInt8] = []
        var errors: [UInt8] = []
        /// Nil once it is closed.
        var input: Int32?
        var unsent: ArraySlice<UInt8>
        var keepsInput: Bool
        /// The child is gone and reaped; its number means nothing any more.
        var status: Int32?
        var isWhole = false
        var isOver = false
    }

    private let identifier: pid_t
    /// Closed by the watcher at its end.
    private let outputPipe: Int32
    private let errorPipe: Int32
    private let end: ContinuousClock.Instant
    private let known: SystemMutex<Known>

    struct Texts {
        var output: String
        var errors: String
    }

    init(
        _ identifier: pid_t, input: Int32?, bytes: [UInt8], output: Int32, errors: Int32,
        lifetime: Duration
    ) {
        self.identifier = identifier
        self.outputPipe = output
        self.errorPipe = errors
        self.end = ContinuousClock().now + lifetime
        self.known = SystemMutex(
            Known(input: input, unsent: bytes[...], keepsInput: bytes.isEmpty))
        for descriptor in [output, errors, input ?? -1]
        where descriptor >= 0 {
            _ = fcntl(descriptor, F_SETFL, O_NONBLOCK)
        }
    }

    func text(_ part: KeyPath<Texts, String>) -> String {
        self.known.withLock {
            Texts(
                output: String(decoding: $0.output, as: UTF8.self),
                errors: String(decoding: $0.errors, as: UTF8.self))[keyPath: part]
        }
    }

    var isRunning: Bool { self.known.withLock { $0.status == nil } }

    var ended: ChildProcess.Ended? {
        self.known.withLock { known in
            guard known.isOver, let status = known.status else { return nil }
            let signal = status & 0x7F
            return ChildProcess.Ended(
                code: signal == 0 ? (status >> 8) & 0xFF : 128 + signal,
                output: String(decoding: known.output, as: UTF8.self),
                errors: String(decoding: known.errors, as: UTF8.self), isWhole: known.isWhole)
        }
    }

    /// Signals under the lock under which the child is reaped, so its number cannot have gone to
    /// another process.
    func signal(_ number: Int32) {
        self.known.withLock { if $0.status == nil { kill(self.identifier, number) } }
    }

    func closeInput() {
        self.known.withLock { Self.closeInput(of: &$0) }
    }

    private static func closeInput(of known: inout Known) {
        if let input = known.input { close(input) }
        known.input = nil
    }

    /// Watches the child: until it is reaped and both pipes have ended, or two seconds after.
    func watch() {
        // A child may end before it has read its input.
        var pipeSignal = sigset_t()
        sigemptyset(&pipeSignal)
        sigaddset(&pipeSignal, SIGPIPE)
        pthread_sigmask(SIG_BLOCK, &pipeSignal, nil)

        let clock = ContinuousClock()
        var isOutputOpen = true
        var areErrorsOpen = true
        var last: ContinuousClock.Instant?
        while true {
            self.wait(isOutputOpen, areErrorsOpen)
            if isOutputOpen { isOutputOpen = self.read(self.outputPipe, \.output) }
            if areErrorsOpen { areErrorsOpen = self.read(self.errorPipe, \.errors) }
            self.write()
            if self.reap(), last == nil { last = clock.now + .seconds(2) }
            if clock.now > self.end { self.signal(SIGKILL) }
            if let last, !(isOutputOpen || areErrorsOpen) || clock.now > last { break }
        }
        self.known.withLock {
            $0.isWhole = !isOutputOpen && !areErrorsOpen
            $0.isOver = true
            Self.closeInput(of: &$0)
        }
        close(self.outputPipe)
        close(self.errorPipe)
    }

    private func wait(_ isOutputOpen: Bool, _ areErrorsOpen: Bool) {
        // A negative descriptor is passed over.
        var polled = [
            pollfd(
                fd: isOutputOpen ? self.outputPipe : -1, events: Int16(POLLIN), revents: 0),
            pollfd(
                fd: areErrorsOpen ? self.errorPipe : -1, events: Int16(POLLIN), revents: 0),
        ]
        let isOpen = isOutputOpen || areErrorsOpen
        poll(&polled, nfds_t(polled.count), isOpen ? 20 : 3)
    }

    /// - Returns: whether the pipe is open still.
    private func read(_ pipe: Int32, _ part: WritableKeyPath<Known, [UInt8]>) -> Bool {
        var buffer = [UInt8](repeating: 0, count: 1 << 14)
        while true {
            let count = Glibc.read(pipe, &buffer, buffer.count)
            if count > 0 {
                self.known.withLock { $0[keyPath: part] += buffer[..<count] }
            } else if count < 0, errno == EINTR {
                continue
            } else {
                return count < 0 && errno == EAGAIN
            }
        }
    }

    private func write() {
        self.known.withLock { known in
            guard let input = known.input, !known.keepsInput else { return }
            while !known.unsent.isEmpty {
                let count = known.unsent.withUnsafeBytes {
                    Glibc.write(input, $0.baseAddress, $0.count)
                }
                if count < 0, errno == EAGAIN { return }
                // Nobody reads any more.
                if count <= 0 { break }
                known.unsent.removeFirst(count)
            }
            Self.closeInput(of: &known)
        }
    }

    private func reap() -> Bool {
        self.known.withLock { known in
            if known.status != nil { return true }
            var status: Int32 = 0
            guard waitpid(self.identifier, &status, WNOHANG) == self.identifier else {
                return false
            }
            known.status = status
            return true
        }
    }
}
