import Glibc
package import StratusModel
package import StratusTLS

/// The user of a ``ByteStream``. Called on the stream's loop only.
package protocol ByteStreamUser: AnyObject {
    /// The handshake is done, and the peer has shown this certificate.
    func streamOpened(_ stream: ByteStream, certificate: PeerCertificate?)
    func stream(_ stream: ByteStream, received bytes: Bytes)
    /// Appends the bytes to be sent now, if any. Called again once the kernel has all of them, if
    /// ``ByteStream/wantsToSend()`` was called or the last call appended something.
    func stream(_ stream: ByteStream, fill output: inout Bytes)
    /// Once, and last. Never called after ``ByteStream/close()``.
    func streamEnded(_ stream: ByteStream, _ end: ByteStream.End)
}

/// A TLS connection as two streams of bytes that flow at the same time, for links between nodes.
///
/// Its user bounds the bytes in flight by how much it appends at a time. The kernel keeps little
/// unsent, so that urgent messages overtake the ones that wait with the user.
///
/// `@unchecked`: touched only on its loop; see ``EventLoop``.
package final class ByteStream: Channel, @unchecked Sendable {
    package enum End: Sendable, Equatable, CustomStringConvertible {
        /// The peer said goodbye, or its process ended.
        case ended
        case failed(TransportError)
        /// Not connected, or not secured, in time.
        case tooSlow

        package var description: String {
            switch self {
            case .ended: "the other side closed the connection"
            case .failed(.socket(let error)): "\(error)"
            case .failed(.tls(let error)): "\(error)"
            case .tooSlow: "no connection in time"
            }
        }
    }

    /// Linux's numbers: not all headers that Swift imports have them.
    private enum Option {
        static let userTimeout: Int32 = 18
        static let unsentLowWater: Int32 = 25
    }

    /// Bytes read before others get their turn on the loop.
    private static let readTurnMax = 4
    /// The bytes the kernel may hold unsent before it stops asking for more.
    private static let unsentSizeMax: Int32 = 128 << 10
    /// The time after which unacknowledged bytes mean that the connection is dead. A peer that is
    /// cut off is noticed and tried again before the kernel's own time-out of a quarter of an hour.
    private static let silenceMillisecondsMax: Int32 = 4_000

    fileprivate enum Phase { case connecting, handshaking, open, closed }

    package let loop: EventLoop
    private let transport: Transport
    private weak var user: (any ByteStreamUser)?
    private var registration: Registration?
    private var phase: Phase
    private var timer: EventLoop.Timer?
    /// The buffer for received bytes: reused for every read, and seen by nobody else.
    private var room = Bytes(repeating: 0, count: 64 << 10)
    private var output: Bytes = []
    private var sent = 0
    private var isAsked = false

    fileprivate init(
        _ transport: Transport, phase: Phase, loop: EventLoop, user: any ByteStreamUser
    ) {
        self.transport = transport
        self.phase = phase
        self.loop = loop
        self.user = user
    }

    // MARK: Opening

    /// Begins to connect. Its user hears how that ends. Only on the loop.
    ///
    /// - Parameter name: whom the peer's certificate must name.
    package static func connect(
        to address: SocketAddress, tls: TLSContext, name: String, loop: EventLoop,
        within patience: Duration, user: any ByteStreamUser
    ) throws(TransportError) -> ByteStream {
        loop.assertCurrent()
        let stream: ByteStream
        let code: Int32
        do throws(SocketError) {
            let socket = try Socket.new(family: address.family)
            code = try socket.connect(to: address)
            stream = ByteStream(
                Transport(takingOwnershipOf: socket.release()), phase: .connecting, loop: loop,
                user: user)
            if code != 0 && code != EINPROGRESS { throw SocketError(code: code, during: "connect") }
        } catch { throw .socket(error) }
        do throws(TLSError) {
            stream.transport.secure(
                with: try TLSSession(
                    client: tls, descriptor: stream.transport.descriptor, host: name))
        } catch { throw .tls(error) }
        try stream.begin(within: patience, for: .writable)
        return stream
    }

    fileprivate static func accepted(
        _ transport: Transport, tls: TLSContext, loop: EventLoop, within patience: Duration,
        user: any ByteStreamUser
    ) throws(TransportError) -> ByteStream {
        do throws(TLSError) {
            transport.secure(
                with: try TLSSession(server: tls, descriptor: transport.descriptor))
        } catch { throw .tls(error) }
        let stream = ByteStream(transport, phase: .handshaking, loop: loop, user: user)
        try stream.begin(within: patience, for: .readable)
        return stream
    }

    private func begin(within patience: Duration, for interest: Readiness) throws(TransportError) {
        self.set(Int32(IPPROTO_TCP), TCP_NODELAY, 1)
        self.set(Int32(IPPROTO_TCP), Option.unsentLowWater, Self.unsentSizeMax)
        self.set(Int32(IPPROTO_TCP), Option.userTimeout, Self.silenceMillisecondsMax)
        do throws(SocketError) {
            self.registration = try self.loop.register(
                self.transport.descriptor, for: interest, self)
        } catch { throw .socket(error) }
        self.timer = self.loop.schedule(at: self.loop.now + patience) { [weak self] in
            self?.timer = nil
            self?.end(.tooSlow)
        }
    }

    private func set(_ level: Int32, _ option: Int32, _ value: Int32) {
        var value = value
        setsockopt(
            self.transport.descriptor, level, option, &value,
            socklen_t(MemoryLayout<Int32>.size))
    }

    // MARK: Its user

    /// There is something to send. Only on the loop.
    package func wantsToSend() {
        self.loop.assertCurrent()
        guard self.phase == .open else { return }
        self.isAsked = true
        if self.output.isEmpty { self.send() }
        self.watch()
    }

    package func close() {
        self.loop.assertCurrent()
        guard self.phase != .closed else { return }
        let wasOpen = self.phase == .open
        self.phase = .closed
        if let timer { self.loop.cancel(timer) }
        self.timer = nil
        if let registration { self.loop.deregister(registration) }
        self.registration = nil
        if wasOpen { self.transport.session?.sayGoodbye() }
        self.transport.close(isCut: false)
        self.output = []
    }

    private func end(_ end: End) {
        guard self.phase != .closed else { return }
        if case .failed = end { self.phase = .handshaking }  // No goodbye after a failure.
        self.close()
        self.user?.streamEnded(self, end)
    }

    // MARK: The loop

    func becameReady(_ readiness: Readiness) {
        if self.phase == .connecting {
            if let error = Socket.pendingError(of: self.transport.descriptor) {
                return self.end(.failed(.socket(error)))
            }
            self.phase = .handshaking
        }
        if self.phase == .handshaking {
            self.shakeHands()
            guard self.phase == .open else { return }
        }
        if self.phase == .open { self.receive() }
        if self.phase == .open { self.send() }
        if self.phase == .open { self.watch() }
    }

    private func shakeHands() {
        switch self.transport.handshake() {
        case .moved:
            self.phase = .open
            if let timer { self.loop.cancel(timer) }
            self.timer = nil
            self.isAsked = true
            self.user?.streamOpened(self, certificate: self.transport.session?.peerCertificate)
        case .blocked(let needs):
            if let registration { self.loop.watch(registration, for: needs) }
        case .ended: self.end(.ended)
        case .failed(let error): self.end(.failed(error))
        }
    }

    private func receive() {
        for _ in 0..<Self.readTurnMax {
            switch self.room.withUnsafeMutableBytes({ self.transport.read(into: $0) }) {
            case .moved(let count):
                self.user?.stream(self, received: Bytes(self.room[..<count]))
                guard self.phase == .open else { return }
            case .blocked: return
            case .ended: return self.end(.ended)
            case .failed(let error): return self.end(.failed(error))
            }
        }
        // OpenSSL may hold what the socket will not tell of again.
        if self.transport.hasPending {
            self.loop.submit { if self.phase == .open { self.becameReady(.readable) } }
        }
    }

    private func send() {
        while self.phase == .open {
            if self.output.isEmpty {
                guard self.isAsked else { return }
                self.user?.stream(self, fill: &self.output)
                if self.output.isEmpty {
                    self.isAsked = false
                    return
                }
            }
            let transfer = self.output.withUnsafeBytes {
                self.transport.write(UnsafeRawBufferPointer(rebasing: $0[self.sent...]))
            }
            switch transfer {
            case .moved(let count):
                self.sent += count
                if self.sent == self.output.count {
                    self.output.removeAll(keepingCapacity: true)
                    self.sent = 0
                }
            case .blocked: return
            case .ended: return self.end(.ended)
            case .failed(let error): return self.end(.failed(error))
            }
        }
    }

    private func watch() {
        guard let registration, self.phase == .open else { return }
        var interest = self.transport.readNeeds
        if !self.output.isEmpty { interest.formUnion(self.transport.writeNeeds) }
        self.loop.watch(registration, for: interest)
    }
}

/// Takes connections for links on one loop. Only on the loop.
///
/// `@unchecked`: see ``ByteStream``.
package final class ByteListener: Channel, @unchecked Sendable {
    private static let acceptCountMax = 16
    private static let pause = Duration.milliseconds(100)

    private let socket: Socket
    private let loop: EventLoop
    private let accept: (ByteStreamSeed) -> Void
    private var registration: Registration?

    /// Listens from now on.
    ///
    /// - Parameter accept: receives every connection, to open it with
    ///   ``ByteStreamSeed/open(tls:within:user:)`` or to drop it.
    package init(
        on address: SocketAddress, loop: EventLoop, accept: @escaping (ByteStreamSeed) -> Void
    ) throws(SocketError) {
        loop.assertCurrent()
        self.socket = try Socket.listening(on: address, backlog: 64, isShared: false)
        self.loop = loop
        self.accept = accept
        self.registration = try loop.register(self.socket.descriptor, for: .readable, self)
    }

    /// With the port the system chose.
    package var address: SocketAddress? { self.socket.localAddress }

    package func close() {
        guard let registration else { return }
        self.loop.deregister(registration)
        self.registration = nil
    }

    func becameReady(_ readiness: Readiness) {
        for _ in 0..<Self.acceptCountMax {
            switch self.socket.accept() {
            case .connection(let socket, let from):
                self.accept(
                    ByteStreamSeed(
                        transport: Transport(takingOwnershipOf: socket.release()), loop: self.loop,
                        from: from))
            case .none: return
            case .failed(let error) where error.kind == .tooManyOpen: return self.rest()
            case .failed: continue
            }
        }
    }

    private func rest() {
        guard let registration else { return }
        self.loop.watch(registration, for: [])
        _ = self.loop.schedule(at: self.loop.now + Self.pause) { [weak self] in
            guard let self, let registration = self.registration else { return }
            self.loop.watch(registration, for: .readable)
        }
    }
}

/// A connection that was accepted and is not yet opened.
package struct ByteStreamSeed {
    let transport: Transport
    let loop: EventLoop
    package let from: SocketAddress

    package func open(
        tls: TLSContext, within patience: Duration, user: any ByteStreamUser
    ) throws(TransportError) -> ByteStream {
        try ByteStream.accepted(
            self.transport, tls: tls, loop: self.loop, within: patience, user: user)
    }
}
