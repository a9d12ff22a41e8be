package import StratusModel

/// The outside of a node's links: the time, the tasks of one loop, and streams of bytes to peers.
///
/// ``SocketLinks`` is the real one. Links know nothing of sockets or TLS: they rely only on this
/// protocol.
package protocol LinkWorld: AnyObject, Sendable {
    /// Only on the loop.
    var now: MonotonicTime { get }

    /// Calls `action` on the loop at or soon after `time`. Only on the loop.
    func schedule(at time: MonotonicTime, _ action: @escaping () -> Void)

    /// Runs `block` on the loop, after what waits there already.
    func submit(_ block: @escaping @Sendable () -> Void)

    /// Runs `block` now when this is the loop, soon otherwise.
    func perform(_ block: @escaping @Sendable () -> Void)

    /// Begins to look up the peer, connect to it and verify it. Its user hears the result, but only
    /// after this has returned. Only on the loop.
    ///
    /// - Parameter patience: from the first byte sent to the end of the handshake.
    func connect(to peer: PeerAddress, within patience: Duration, user: any LinkStreamUser)
        -> any LinkStream
}

/// The user of a ``LinkStream``. Called on the loop only.
package protocol LinkStreamUser: AnyObject {
    /// Both sides have verified each other. The certificate is the other side's, or nil if it need
    /// not show one.
    func opened(by certificate: LinkCertificate?)
    func received(_ bytes: Bytes)
    /// Appends the bytes to be sent now, if any. Called again once all of them are on their way, if
    /// ``LinkStream/wantsToSend()`` was called or the last call appended something.
    func fill(_ output: inout Bytes)
    /// Once, and last. Never called after ``LinkStream/close()``.
    func ended(_ end: LinkEnd)
}

/// A connection as two streams of bytes that flow at the same time. Only on the loop.
///
/// Promises:
/// - The received bytes were sent by the peer whose certificate was shown, byte for byte and in
///   order. If bytes are missing, they are missing at the end.
/// - No user is called after ``close()``.
package protocol LinkStream: AnyObject {
    func wantsToSend()
    func close()
}

/// A connection that a peer has opened and that is not yet taken: to be opened, or dropped.
package protocol LinkSeed {
    /// The address it comes from: another port each time.
    var origin: String { get }
    func open(within patience: Duration, user: any LinkStreamUser) throws(LinkFailure)
        -> any LinkStream
}

/// Takes connections until it is closed.
package protocol LinkListener: AnyObject {
    func close()
}

/// The other side's verified certificate.
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
