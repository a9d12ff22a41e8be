import StratusModel

/// Writes HTTP/2 frames byte for byte, right and wrong ones (RFC 9113 §6), without the library
/// under test.
enum Frames {
    static let preface = Bytes("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8)
    static let endStream: UInt8 = 1
    static let endHeaders: UInt8 = 4

    static func frame(
        _ type: UInt8, flags: UInt8 = 0, stream: Int32 = 0, _ payload: Bytes = []
    ) -> Bytes {
        let id = UInt32(bitPattern: stream)
        return [
            UInt8(payload.count >> 16 & 0xFF), UInt8(payload.count >> 8 & 0xFF),
            UInt8(payload.count & 0xFF), type, flags, UInt8(id >> 24 & 0xFF),
            UInt8(id >> 16 & 0xFF), UInt8(id >> 8 & 0xFF), UInt8(id & 0xFF),
        ] + payload
    }

    static func settings(_ pairs: [(UInt16, UInt32)] = []) -> Bytes {
        Self.frame(4, pairs.flatMap { [UInt8($0.0 >> 8), UInt8($0.0 & 0xFF)] + Self.word($0.1) })
    }

    static func data(_ stream: Int32, _ payload: Bytes, ends: Bool = false) -> Bytes {
        Self.frame(0, flags: ends ? Self.endStream : 0, stream: stream, payload)
    }

    static func headers(
        _ stream: Int32, _ fields: [(String, String)], ends: Bool = true
    ) -> Bytes {
        Self.frame(
            1, flags: Self.endHeaders | (ends ? Self.endStream : 0), stream: stream,
            Self.block(fields))
    }

    static func reset(_ stream: Int32, code: UInt32 = 8) -> Bytes {
        Self.frame(3, stream: stream, Self.word(code))
    }

    static func ping() -> Bytes { Self.frame(6, Bytes(repeating: 7, count: 8)) }

    static func windowUpdate(_ stream: Int32, _ increment: UInt32) -> Bytes {
        Self.frame(8, stream: stream, Self.word(increment))
    }

    /// Literal fields without indexing or Huffman's code (RFC 7541 §6.2.2).
    static func block(_ fields: [(String, String)]) -> Bytes {
        fields.flatMap { [0] + Self.text($0.0) + Self.text($0.1) }
    }

    static func request(
        method: String = "GET", path: String = "/", _ more: [(String, String)] = []
    ) -> [(String, String)] {
        [(":method", method), (":scheme", "https"), (":authority", "x"), (":path", path)] + more
    }

    static func word(_ value: UInt32) -> Bytes {
        [24, 16, 8, 0].map { UInt8(value >> $0 & 0xFF) }
    }

    private static func text(_ text: String) -> Bytes {
        let bytes = Bytes(text.utf8)
        if bytes.count < 127 { return [UInt8(bytes.count)] + bytes }
        var length = Bytes([127])
        var rest = bytes.count - 127
        while rest >= 128 {
            length.append(UInt8(rest % 128 + 128))
            rest /= 128
        }
        return length + [UInt8(rest)] + bytes
    }
}

/// One frame as it went out.
struct SentFrame: Equatable {
    var type: UInt8
    var flags: UInt8
    var stream: Int32
    var payload: Bytes

    static func all(in bytes: Bytes) -> [SentFrame] {
        var frames: [SentFrame] = []
        var at = 0
        while at + 9 <= bytes.count {
            let length = Int(bytes[at]) << 16 | Int(bytes[at + 1]) << 8 | Int(bytes[at + 2])
            let stream = bytes[(at + 5)..<(at + 9)].reduce(Int32(0)) { $0 << 8 | Int32($1) }
            frames.append(
                SentFrame(
                    type: bytes[at + 3], flags: bytes[at + 4], stream: stream,
                    payload: Bytes(bytes[(at + 9)..<min(bytes.count, at + 9 + length)])))
            at += 9 + length
        }
        return frames
    }

    /// The code of GOAWAY, after the last stream, or of RST_STREAM.
    var code: UInt32 {
        let word = self.type == 7 ? self.payload.dropFirst(4).prefix(4) : self.payload.prefix(4)
        return word.reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
    }
}
