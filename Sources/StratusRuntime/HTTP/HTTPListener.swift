import Glibc
import StratusModel
import StratusTLS

/// Accepts connections from one listening socket on one loop.
///
/// Out of descriptors, it rests instead of spinning: the connection that cannot be accepted stays
/// ready, and a level-triggered loop would tell so for ever.
final class HTTPListener: Channel {
    private let socket: Socket
    private let tls: TLSContextSource?
    private unowned let shard: HTTPServerShard
    private var registration: Registration?

    init(_ socket: consuming Socket, tls: TLSContextSource?, shard: HTTPServerShard) {
        self.socket = socket
        self.tls = tls
        self.shard = shard
    }

    func open() throws(SocketError) {
        self.registration = try self.shard.loop.register(
            self.socket.descriptor, for: .readable, self)
    }

    /// Takes what the kernel has accepted already, then leaves the address.
    func close() {
        guard let registration = self.registration else { return }
        self.acceptAll(countMax: self.shard.limits.backlog)
        self.shard.loop.deregister(registration)
        self.registration = nil
    }

    func becameReady(_ readiness: Readiness) {
        self.acceptAll(countMax: self.shard.limits.acceptCountMax)
    }

    private func acceptAll(countMax: Int) {
        for _ in 0..<countMax {
            switch self.socket.accept() {
            case .connection(let socket, let address): self.admit(socket, from: address)
            case .none: return
            case .failed(let error) where error.kind == .tooManyOpen: return self.rest()
            // The connection was over before it began; the next may be fine.
            case .failed: continue
            }
        }
    }

    private func admit(_ socket: consuming Socket, from address: SocketAddress) {
        if case .ip = address { socket.disableDelay() }
        let transport = Transport(takingOwnershipOf: socket.release())
        var host: String?
        // A proxy's connections are its clients'.
        if case .ip(let text, _) = address, !self.shard.limits.trustedProxies.contains(text) {
            host = text
        }
        guard let place = self.shard.admission.enter(host, on: self.shard) else {
            return Self.refuse(transport, isSecure: self.tls != nil)
        }
        if let tls = self.tls {
            do throws(TLSError) {
                transport.secure(
                    with: try TLSSession(server: tls.context, descriptor: transport.descriptor))
            } catch {
                // No memory for a session: as good as no room.
                return self.shard.admission.leave(place)
            }
        }
        self.shard.add(
            HTTPConnection(
                transport: transport, from: address, countingFor: host, at: place,
                isSecure: self.tls != nil, shard: self.shard))
    }

    /// Says why in one packet that always fits a fresh socket, and forgets it.
    private static func refuse(_ transport: Transport, isSecure: Bool) {
        if !isSecure {
            let answer =
                "HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\ncontent-length: 0\r\n"
                + "connection: close\r\n\r\n"
            _ = Array(answer.utf8).withUnsafeBytes { transport.write($0) }
            transport.endWriting()
        }
        transport.close(isCut: false)
    }

    private func rest() {
        guard let registration = self.registration else { return }
        let loop = self.shard.loop
        loop.watch(registration, for: [])
        _ = loop.schedule(at: loop.now + self.shard.limits.acceptPause) {
            // Closed meanwhile.
            guard let registration = self.registration else { return }
            loop.watch(registration, for: .readable)
        }
    }
}
