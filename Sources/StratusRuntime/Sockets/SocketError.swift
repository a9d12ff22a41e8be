import Glibc

/// An error that the system reported about a socket.
package struct SocketError: Error, Sendable, Equatable, CustomStringConvertible {
    package enum Kind: Sendable, Equatable {
        case addressInUse, addressNotAvailable, denied, refused, unreachable, tooManyOpen, cut
        case malformedAddress
        case other
    }

    package let kind: Kind
    package let operation: StaticString
    /// The system's error number, 0 where there is none.
    package let code: Int32

    init(_ kind: Kind, during operation: StaticString) {
        self.kind = kind
        self.operation = operation
        self.code = 0
    }

    init(code: Int32, during operation: StaticString) {
        self.kind =
            switch code {
            case EADDRINUSE: .addressInUse
            case EADDRNOTAVAIL: .addressNotAvailable
            case EACCES, EPERM: .denied
            case ECONNREFUSED, ENOENT: .refused
            case EHOSTUNREACH, ENETUNREACH, EHOSTDOWN, ENETDOWN: .unreachable
            case EMFILE, ENFILE, ENOBUFS, ENOMEM: .tooManyOpen
            case ECONNRESET, EPIPE, ECONNABORTED, ENOTCONN: .cut
            default: .other
            }
        self.operation = operation
        self.code = code
    }

    package static func == (one: Self, other: Self) -> Bool {
        one.kind == other.kind && one.code == other.code
    }

    package var description: String {
        "socket: \(self.kind) (\(self.code)) during \(self.operation)"
    }
}
