import COpenSSL

/// A failure reported by OpenSSL.
package struct TLSError: Error, Sendable, Equatable, CustomStringConvertible {
    package enum Kind: Sendable, Equatable {
        /// The certificate, key or authority given is unusable.
        case badCertificate
        /// The peer's certificate was not accepted.
        case untrustedPeer
        /// The peer broke the protocol, or speaks none of ours.
        case protocolViolation
        /// The connection ended without a goodbye.
        case cut
        case other
    }

    package let kind: Kind
    package let operation: StaticString
    /// OpenSSL's own words, of the first error in its queue: later ones only add where it passed.
    package let message: String

    init(_ kind: Kind, during operation: StaticString, message: String) {
        self.kind = kind
        self.operation = operation
        self.message = message
    }

    /// Takes the error from this thread's queue and leaves the queue empty.
    static func taken(_ kind: Kind, during operation: StaticString) -> TLSError {
        let code = ERR_get_error()
        ERR_clear_error()
        return TLSError(kind, during: operation, message: Self.text(of: code))
    }

    static func text(of code: UInt) -> String {
        if code == 0 { return "no message" }
        return withUnsafeTemporaryAllocation(of: CChar.self, capacity: 256) { room in
            ERR_error_string_n(code, room.baseAddress!, room.count)
            return String(cString: room.baseAddress!)
        }
    }

    package static func == (one: Self, other: Self) -> Bool {
        one.kind == other.kind && one.message == other.message
    }

    package var description: String {
        "TLS \(self.kind) in '\(self.operation)': \(self.message)"
    }
}
