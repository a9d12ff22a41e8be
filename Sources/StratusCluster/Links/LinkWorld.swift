package import StratusModel

/// What the links of a node ask of the outside: the time and the turns of one loop, and streams of bytes to peers.
///
/// ``SocketLinks`` is the real one. Links do not know of sockets or TLS: what they rely on is said here.
package protocol LinkWorld: AnyObject, Sendable {
    /// Only on the loop.
    var now: MonotonicTime { get }

    /// Calls `action` on the loop at or soon after `time`. Only on the loop.
    func schedule(at time: MonotonicTime, _ action: @escaping () -> Void)

    /// Runs `block` on the loop, after what waits there already.
    func submit(_ block: @escaping @Sendable () -> Void)

    /// Runs `block` now when this is the loop, soon otherwise.
    func perform(_ block: @escaping @Sendable () -> Void)

    /// Begins to look for the peer, to connect and to make sure of who it is. Its user hears how that ends, but not
    /// before this has returned. Only on the loop.
    ///
    /// - Parameter patience: from the first byte sent to the end of the handshake.
    func connect(to peer: PeerAddress, within patience: Duration, user: any LinkStreamUser)
        -> any LinkStream
}

/// Who uses a ``LinkStream``. Called on the loop only.
package protocol LinkStreamUser: AnyObject {
    /// Both sides are sure of each other: this is who the other one is, or nil where it need not say.
    func opened(by certificate: LinkCertificate?)
    func received(_ bytes: Bytes)
    /// Appends what is to be sent now; nothing when nothing is. Called again once all of it is on its way and
    /// ``LinkStream/wantsToSend()`` was called, or something was appended the last time.
    func fill(_ output: inout Bytes)
    /// Once, and last. Never called after ``LinkStream/close()``.
    func ended(_ end: LinkEnd)
}

/// A connection as two streams of bytes that flow at the same time. Only on the loop.
///
/// Promises:
/// - What arrives was sent by the peer whose certificate was shown, byte for byte and in order; what is missing is
///   missing at the end.
/// - Nobody is called after ``close()``.
package protocol LinkStream: AnyObject {
    func wantsToSend()
    func close()
}

/// A connection that a peer has opened and that is not yet taken: to be opened, or dropped.
package protocol LinkSeed {
    /// Where it comes from: another port each time.
    var origin: String { get }
    func open(within patience: Duration, user: any LinkStreamUser) throws(LinkFailure)
        -> any LinkStream
}

/// Takes connections until it is closed.
package protocol LinkListener: AnyObject {
    func close()
}

/// Who the other side is, by its verified certificate.
package struct LinkCertificate: Sendable, Equatable {
    package var name: String?
    package var fingerprint: Bytes

    package init(name: String?, fingerprint: Bytes) {
        self.name = name
        self.fingerprint = fingerprint
    }
}

package enum LinkEnd: Sendable, Equatable {
    /// The other side closed the connection, or its process ended.
    case closed
    case failed(LinkFailure)

    package var description: String {
        switch self {
        case .closed: "the other side closed the connection"
        case .failed(let failure): failure.description
        }
    }
}

package struct LinkFailure: Error, Sendable, Equatable, CustomStringConvertible {
    package let description: String
    /// The system of the other side answered that no process listens there.
    package let isRefusal: Bool

    package init(_ description: String, isRefusal: Bool = false) {
        self.description = description
        self.isRefusal = isRefusal
    }
}

extension LinkWorld {
    /// Runs `body` on the loop and answers with its result.
    func run<Result: Sendable>(_ body: @escaping @Sendable () -> Result) async -> Result {
        await withCheckedContinuation { continuation in
            self.perform { continuation.resume(returning: body()) }
        }
    }
}
