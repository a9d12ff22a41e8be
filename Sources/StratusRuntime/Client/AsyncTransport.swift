import Glibc
import StratusModel
import StratusTLS

/// A client's connection as sequential code: every step returns once it is done, or throws at the
/// deadline, at the task's cancellation, or when the connection fails.
///
/// One task at a time, on the loop. `@unchecked`: like everything a loop owns.
final class AsyncTransport: Channel, @unchecked Sendable {
    enum News: Equatable { case ready(Readiness), late, cancelled }

    let loop: EventLoop
    private let transport: Transport
    private var registration: Registration?
    private var waiter: CheckedContinuation<News, Never>?
    /// Counts the waits, so that a cancellation that comes late ends none but its own.
    private var waitNumber = 0
    /// The deadline of the request in progress.
    var deadline: MonotonicTime

    private init(_ transport: Transport, loop: EventLoop, deadline: MonotonicTime) {
        self.transport = transport
        self.loop = loop
        self.deadline = deadline
    }

    // MARK: Opening

    /// Connects to the first of `addresses` that answers, and secures the connection if asked to.
    static func connect(
        to addresses: [SocketAddress], tls: HTTPEndpoint.TLS?, loop: EventLoop,
        deadline: MonotonicTime
    ) async throws(HTTPClientError) -> AsyncTransport {
        var failure = HTTPClientError.unreachable(nil)
        for address in addresses {
            do throws(HTTPClientError) {
                let connection = try await Self.connect(to: address, loop: loop, deadline: deadline)
                if let tls { try await connection.secure(tls) }
                return connection
            } catch {
                // Another address has the same certificate and the same clock.
                guard case .unreachable = error else { throw error }
                failure = error
            }
        }
        throw failure
    }

    private static func connect(
        to address: SocketAddress, loop: EventLoop, deadline: MonotonicTime
    ) async throws(HTTPClientError) -> AsyncTransport {
        let connection: AsyncTransport
        let code: Int32
        do throws(SocketError) {
            let socket = try Socket.new(family: address.family)
            if case .ip = address { socket.disableDelay() }
            code = try socket.connect(to: address)
            connection = AsyncTransport(
                Transport(takingOwnershipOf: socket.release()), loop: loop, deadline: deadline)
            connection.registration = try loop.register(
                connection.transport.descriptor, for: [], connection)
        } catch {
            throw .unreachable(error)
        }
        if code != 0 && code != EINPROGRESS {
            connection.close()
            throw .unreachable(SocketError(code: code, during: "connect"))
        }
        if code == EINPROGRESS {
            _ = try await connection.ready(for: .writable)
            if let error = Socket.pendingError(of: connection.transport.descriptor) {
                connection.close()
                throw .unreachable(error)
            }
        }
        return connection
    }

    func secure(_ tls: HTTPEndpoint.TLS) async throws(HTTPClientError) {
        do throws(TLSError) {
            self.transport.secure(
                with: try TLSSession(
                    client: tls.context, descriptor: self.transport.descriptor, host: tls.name))
        } catch {
            self.close()
            throw .notSecure(error)
        }
        while true {
            switch self.transport.handshake() {
            case .moved: return
            case .blocked(let needs): _ = try await self.ready(for: needs)
            case .ended: throw self.fail(.cutShort)
            case .failed(.tls(let error)): throw self.fail(.notSecure(error))
            case .failed(.socket(let error)): throw self.fail(.unreachable(error))
            }
        }
    }

    // MARK: Bytes

    /// - Returns: false when the server answers already although not everything is sent.
    func write(_ bytes: Bytes) async throws(HTTPClientError) -> Bool {
        var sent = 0
        while sent < bytes.count {
            let transfer = bytes.withUnsafeBytes {
                self.transport.write(UnsafeRawBufferPointer(rebasing: $0[sent...]))
            }
            switch transfer {
            case .moved(let count): sent += count
            case .blocked(let needs):
                let news = try await self.ready(for: needs.union(.readable))
                if !news.contains(needs) { return false }
            case .ended, .failed:
                // It may have answered before it closed; reading tells.
                return false
            }
        }
        return true
    }

    /// - Returns: empty at the end.
    func read() async throws(HTTPClientError) -> Bytes {
        var room = Bytes(repeating: 0, count: 64 << 10)
        while true {
            switch room.withUnsafeMutableBytes({ self.transport.read(into: $0) }) {
            case .moved(let count):
                room.removeLast(room.count - count)
                return room
            case .blocked(let needs): _ = try await self.ready(for: needs)
            case .ended: return []
            case .failed: throw self.fail(.cutShort)
            }
        }
    }

    var certificate: PeerCertificate? { self.transport.session?.peerCertificate }
    var session: TLSSession? { self.transport.session }

    /// Whether a connection kept for later still is one: anything that came means no.
    var isStillIdle: Bool {
        var byte: UInt8 = 0
        let transfer = withUnsafeMutableBytes(of: &byte) { self.transport.read(into: $0) }
        if case .blocked = transfer { return true } else { return false }
    }

    /// Hands the open connection to another channel. Nil when it is broken already.
    func release() -> (Transport, Registration)? {
        guard let registration = self.registration else { return nil }
        self.registration = nil
        return (self.transport, registration)
    }

    func close() {
        if let registration = self.registration { self.loop.deregister(registration) }
        self.registration = nil
        if self.transport.isReady { self.transport.session?.sayGoodbye() }
        self.transport.close(isCut: false)
    }

    private func fail(_ error: HTTPClientError) -> HTTPClientError {
        self.close()
        return error
    }

    // MARK: Waiting

    func becameReady(_ readiness: Readiness) {
        // A broken socket is ready for everything: the next attempt tells what is wrong.
        let isBroken = !readiness.isDisjoint(with: .broken)
        self.resume(.ready(isBroken ? readiness.union([.readable, .writable]) : readiness))
    }

    private func ready(for interest: Readiness) async throws(HTTPClientError) -> Readiness {
        self.loop.assertCurrent()
        guard self.registration != nil else { throw .cutShort }
        self.waitNumber += 1
        let number = self.waitNumber
        var timer: EventLoop.Timer?
        let news: News = await withTaskCancellationHandler {
            await withCheckedContinuation { timer = self.wait($0, for: interest) }
        } onCancel: {
            self.loop.submit { if self.waitNumber == number { self.resume(.cancelled) } }
        }
        if let timer { self.loop.cancel(timer) }
        switch news {
        case .ready(let readiness): return readiness
        case .late: throw self.fail(.deadlinePassed)
        case .cancelled: throw self.fail(.cancelled)
        }
    }

    /// The way here may lead through the loop's queue, so everything that can end the wait begins
    /// here, and what has happened on the way ends it at once. A cancellation after this finds the
    /// waiter.
    func wait(
        _ continuation: CheckedContinuation<News, Never>, for interest: Readiness
    ) -> EventLoop.Timer? {
        if Task.isCancelled {
            continuation.resume(returning: .cancelled)
            return nil
        }
        guard let registration = self.registration else {
            // Broken: the next attempt tells how.
            continuation.resume(returning: .ready([.readable, .writable]))
            return nil
        }
        self.waiter = continuation
        let timer = self.loop.schedule(at: self.deadline) { self.resume(.late) }
        self.loop.watch(registration, for: interest)
        return timer
    }

    private func resume(_ news: News) {
        guard let waiter = self.waiter else {
            // Broken while nobody waits: told for ever otherwise.
            if let registration = self.registration, case .ready = news {
                self.loop.deregister(registration)
                self.registration = nil
            }
            return
        }
        self.waiter = nil
        // At once: the loop may look at its sockets again before the waiter has its turn.
        if let registration = self.registration { self.loop.watch(registration, for: []) }
        waiter.resume(returning: news)
    }
}
