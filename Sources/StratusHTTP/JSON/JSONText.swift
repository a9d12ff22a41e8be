import StratusModel

/// Reads string nodes. The tape builder has already checked UTF-8 and escapes.
enum JSONText {
    static func string(_ source: Span<UInt8>, _ node: JSONNode) -> String {
        if node.flag == 0 {
            // The builder accepted these very bytes as UTF-8; checking again would double the cost.
            let text = unsafe UTF8Span(unchecked: source.extracting(node.offset..<node.end))
            return String(copying: text)
        }
        let bytes = Self.utf8(source, node)
        // Well-formed text in which well-formed scalars replaced the escapes.
        return unsafe String(copying: UTF8Span(unchecked: bytes.span))
    }

    static func utf8(_ source: Span<UInt8>, _ node: JSONNode) -> Bytes {
        var bytes = Bytes()
        bytes.reserveCapacity(node.extent)
        var at = node.offset
        while at < node.end {
            let run = at
            while at < node.end, source[at] != 0x5C { at += 1 }
            bytes.append(copying: source.extracting(run..<at))
            if at < node.end { at = Self.decode(source, at) { bytes.append($0) } }
        }
        return bytes
    }

    @inline(__always)
    static func isEqual(_ source: Span<UInt8>, _ node: JSONNode, _ text: Span<UInt8>) -> Bool {
        if node.flag == 0 {
            // Lengths settle it nearly always.
            return node.extent == text.count && Self.isSame(source, node.offset, text)
        }
        return Self.isEqualDecoded(source, node, text)
    }

    /// Whether `text` stands in `source` at `start`.
    private static func isSame(_ source: Span<UInt8>, _ start: Int, _ text: Span<UInt8>) -> Bool {
        var at = 0
        if text.count >= 8 {
            // A UInt8 has no padding that could be read.
            let raw = unsafe source.bytes
            let wanted = unsafe text.bytes
            while at + 8 <= text.count {
                guard raw.word(at: start + at) == wanted.word(at: at) else { return false }
                at += 8
            }
        }
        while at < text.count {
            guard source[start + at] == text[at] else { return false }
            at += 1
        }
        return true
    }

    private static func isEqualDecoded(
        _ source: Span<UInt8>, _ node: JSONNode, _ text: Span<UInt8>
    ) -> Bool {
        var matched = 0
        var at = node.offset
        while at < node.end {
            var isEqual = true
            at = Self.decode(source, at) { byte in
                if matched >= text.count || text[matched] != byte { isEqual = false }
                matched += 1
            }
            if !isEqual { return false }
        }
        return matched == text.count
    }

    /// Emits one byte, or the one to four bytes that an escape stands for.
    /// - Returns: the offset where the next one begins.
    private static func decode(_ source: Span<UInt8>, _ start: Int, _ emit: (UInt8) -> Void) -> Int
    {
        guard source[start] == 0x5C else {
            emit(source[start])
            return start + 1
        }
        switch source[start + 1] {
        case 0x62: emit(0x08)
        case 0x66: emit(0x0C)
        case 0x6E: emit(0x0A)
        case 0x72: emit(0x0D)
        case 0x74: emit(0x09)
        case 0x75:
            var scalar = Self.unit(source, start + 2)
            var end = start + 6
            if scalar & 0xF800 == 0xD800 {
                // Behind a string's text stands its quote, behind a backslash another byte.
                var low: UInt32 = 0
                if scalar < 0xDC00, source[start + 6] == 0x5C, source[start + 7] == 0x75 {
                    low = Self.unit(source, start + 8)
                }
                if low & 0xFC00 == 0xDC00 {
                    scalar = 0x10000 + (scalar & 0x3FF) << 10 + low & 0x3FF
                    end = start + 12
                } else {
                    // Kept only where the document's reader asked for it.
                    scalar = 0xFFFD
                }
            }
            Self.encode(scalar, emit)
            return end
        case let plain: emit(plain)
        }
        return start + 2
    }

    private static func unit(_ source: Span<UInt8>, _ start: Int) -> UInt32 {
        var unit: UInt32 = 0
        for at in start..<(start + 4) { unit = unit << 4 | UInt32(ASCII.hexValue(source[at]) ?? 0) }
        return unit
    }

    private static func encode(_ scalar: UInt32, _ emit: (UInt8) -> Void) {
        func tail(_ shift: UInt32) -> UInt8 { 0x80 | UInt8((scalar >> shift) & 0x3F) }
        switch scalar {
        case 0..<0x80:
            emit(UInt8(scalar))
        case 0x80..<0x800:
            emit(0xC0 | UInt8(scalar >> 6))
            emit(tail(0))
        case 0x800..<0x10000:
            emit(0xE0 | UInt8(scalar >> 12))
            emit(tail(6))
            emit(tail(0))
        default:
            emit(0xF0 | UInt8(scalar >> 18))
            emit(tail(12))
            emit(tail(6))
            emit(tail(0))
        }
    }
}
