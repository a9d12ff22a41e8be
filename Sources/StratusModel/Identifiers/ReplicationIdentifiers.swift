/// One Raft group: the replicas of one partition. Group 0 is the system partition.
package struct GroupID: Sendable, Hashable, Comparable, CustomStringConvertible {
    package var raw: UInt16
    package init(_ raw: UInt16) { self.raw = raw }
    package static let system = GroupID(0)
    package static func < (one: Self, other: Self) -> Bool { one.raw < other.raw }
    package var description: String { "g\(self.raw)" }
    package func _rawHashValue(seed: Int) -> Int { mixed(UInt64(self.raw), seed) }
}

/// A node of the cluster, for its whole life. Never reused for another machine.
package struct NodeID: Sendable, Hashable, Comparable, CustomStringConvertible {
    package var raw: UInt32
    package init(_ raw: UInt32) { self.raw = raw }
    package static func < (one: Self, other: Self) -> Bool { one.raw < other.raw }
    package var description: String { "n\(self.raw)" }
    package func _rawHashValue(seed: Int) -> Int { mixed(UInt64(self.raw), seed) }
}

/// One run of a node's process over one data directory. A restart draws a new one.
package struct NodeIncarnation: Sendable, Hashable {
    package var raw: UInt64
    package init(_ raw: UInt64) { self.raw = raw }
}

/// A position in one group's log. The first entry has index 1; 0 is "before everything".
package struct LogIndex: Sendable, Hashable, Comparable, CustomStringConvertible {
    package var raw: UInt64
    package init(_ raw: UInt64) { self.raw = raw }
    package static let zero = LogIndex(0)
    package static func < (one: Self, other: Self) -> Bool { one.raw < other.raw }
    package var next: LogIndex { LogIndex(self.raw + 1) }
    /// The index before this one. Index zero has none: asking for it is a bug.
    package var previous: LogIndex { LogIndex(self.raw - 1) }
    package var description: String { "\(self.raw)" }
}

/// A leader's reign in one group. Term 0 is "before any election".
package struct Term: Sendable, Hashable, Comparable, CustomStringConvertible {
    package var raw: UInt64
    package init(_ raw: UInt64) { self.raw = raw }
    package static let zero = Term(0)
    package static func < (one: Self, other: Self) -> Bool { one.raw < other.raw }
    package var next: Term { Term(self.raw + 1) }
    package var description: String { "\(self.raw)" }
}

/// Names one command, drawn once per request. A command with a known identity is not applied again.
package struct RequestIdentity: Sendable, Hashable, CustomStringConvertible {
    package var high: UInt64
    package var low: UInt64

    package init(high: UInt64, low: UInt64) {
        self.high = high
        self.low = low
    }

    /// 32 lower-case hexadecimal digits.
    package var description: String { self.hexadecimal(isGrouped: false) }

    /// The same digits, in the five groups of a UUID if asked. Eight digits are made at once: every
    /// request uses it.
    package func hexadecimal(isGrouped: Bool) -> String {
        let (text, count) = self.digits(isGrouped: isGrouped)
        return String(utf8: text.span.extracting(0..<count)) ?? ""
    }

    /// Appends the digits in the five groups of a UUID.
    package func appendUUID(to bytes: inout Bytes) {
        let (text, count) = self.digits(isGrouped: true)
        // An array cannot take a span yet; the pointer lives no longer than this line.
        unsafe text.span.extracting(0..<count).withUnsafeBufferPointer {
            unsafe bytes.append(contentsOf: $0)
        }
    }

    private func digits(isGrouped: Bool) -> (text: InlineArray<36, UInt8>, count: Int) {
        var text = InlineArray<36, UInt8>(repeating: UInt8(ascii: "-"))
        var place = 0
        for quarter in 0..<4 {
            let half = quarter < 2 ? self.high : self.low
            let word = UInt32(truncatingIfNeeded: quarter & 1 == 0 ? half >> 32 : half)
            var digits = Self.digits(of: word)
            for digit in 0..<8 {
                // 8-4-4-4-12.
                if isGrouped, digit & 3 == 0, 8...20 ~= quarter * 8 + digit { place += 1 }
                text[place] = UInt8(truncatingIfNeeded: digits)
                digits >>= 8
                place += 1
            }
        }
        return (text, place)
    }

    /// Eight lower-case hexadecimal digits, the highest in the lowest byte.
    private static func digits(of word: UInt32) -> UInt64 {
        // Each four bits into a byte of their own.
        var spread = UInt64(word)
        spread = (spread << 16 | spread) & 0x0000_FFFF_0000_FFFF
        spread = (spread << 8 | spread) & 0x00FF_00FF_00FF_00FF
        spread = (spread << 4 | spread) & 0x0F0F_0F0F_0F0F_0F0F
        // One in each byte above nine.
        let letters = ((spread &+ 0x0606_0606_0606_0606) >> 4) & 0x0101_0101_0101_0101
        return (spread &+ 0x3030_3030_3030_3030 &+ letters &* 39).byteSwapped
    }
}

/// A hash of a number that the cluster has given out itself, in order, to its partitions and nodes.
///
/// A save on three nodes looks groups up 132 times, and the standard library's hash costs 150
/// instructions each time. That hash makes it hard to choose keys that collide. Nobody outside the
/// cluster chooses these numbers, and there are at most 65,536 partitions.
private func mixed(_ number: UInt64, _ seed: Int) -> Int {
    let product = (number ^ UInt64(truncatingIfNeeded: seed)) &* 0x9E37_79B9_7F4A_7C15
    return Int(truncatingIfNeeded: product >> 32)
}
