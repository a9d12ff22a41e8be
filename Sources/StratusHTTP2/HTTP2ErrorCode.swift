/// Why a stream or a connection ended, as it goes over the wire (RFC 9113 §7).
package struct HTTP2ErrorCode: RawRepresentable, Sendable, Hashable, CustomStringConvertible {
    package var rawValue: UInt32

    package init(rawValue: UInt32) { self.rawValue = rawValue }

    package static let none = Self(rawValue: 0)
    package static let protocolViolation = Self(rawValue: 1)
    package static let `internal` = Self(rawValue: 2)
    package static let flowControl = Self(rawValue: 3)
    package static let refusedStream = Self(rawValue: 7)
    package static let cancel = Self(rawValue: 8)
    package static let compression = Self(rawValue: 9)
    package static let enhanceYourCalm = Self(rawValue: 11)

    package var description: String {
        switch self.rawValue {
        case 0: "no_error"
        case 1: "protocol_error"
        case 2: "internal_error"
        case 3: "flow_control_error"
        case 4: "settings_timeout"
        case 5: "stream_closed"
        case 6: "frame_size_error"
        case 7: "refused_stream"
        case 8: "cancel"
        case 9: "compression_error"
        case 10: "connect_error"
        case 11: "enhance_your_calm"
        case 12: "inadequate_security"
        case 13: "http_1_1_required"
        default: "other"
        }
    }
}
