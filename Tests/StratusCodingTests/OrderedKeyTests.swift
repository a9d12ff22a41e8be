import StratusCoding
import StratusModel
import Testing

/// Bytes compare as values do: what every index range stands on.
@Suite struct OrderedKeyTests {
    static func key<Value>(_ value: Value, _ append: (Value, inout Bytes) -> Void) -> Bytes {
        var key = Bytes()
        append(value, &key)
        return key
    }

    static func ordered(_ one: Bytes, _ two: Bytes) -> Int {
        Bytes.isOrdered(one, before: two) ? -1 : one == two ? 0 : 1
    }

    @Test(arguments: 1...4 as ClosedRange<UInt64>)
    func `integers and doubles order as their bytes`(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        let edges: [Int64] = [.min, .min + 1, -256, -1, 0, 1, 255, 256, .max - 1, .max]
        let integers =
            edges + (0..<200).map { _ in Int64.random(in: .min ... .max, using: &generator) }
        let doubles: [Double] =
            [
                -.greatestFiniteMagnitude, -1e300, -1.5, -.leastNonzeroMagnitude, -0.0, 0,
                .leastNonzeroMagnitude, 1, 1.5, 1e300, .greatestFiniteMagnitude,
            ]
            + (0..<200).map { _ in
                let drawn = Double(bitPattern: UInt64.random(in: 0 ... .max, using: &generator))
                return drawn.isFinite ? drawn : 0
            }
        for one in integers {
            for two in integers {
                let bytes = Self.ordered(
                    Self.key(one) { OrderedKey.append($0, to: &$1) },
                    Self.key(two) { OrderedKey.append($0, to: &$1) })
                #expect(
                    bytes == (one < two ? -1 : one == two ? 0 : 1), "\(one) \(two), seed \(seed)")
            }
        }
        for one in doubles {
            for two in doubles {
                let bytes = Self.ordered(
                    Self.key(one) { OrderedKey.append($0, to: &$1) },
                    Self.key(two) { OrderedKey.append($0, to: &$1) })
                #expect(
                    bytes == (one < two ? -1 : one == two ? 0 : 1), "\(one) \(two), seed \(seed)")
            }
        }
    }

    @Test(arguments: 1...4 as ClosedRange<UInt64>)
    func `texts of any bytes order as their keys, and what follows decides only ties`(seed: UInt64)
    {
        var generator = SeededGenerator(seed: seed)
        let texts: [Bytes] =
            [[], [0], [0, 0], [0, 1], [0, 0xFF], [1], [0xFF], [0xFF, 0], [0x61], [0x61, 0]]
            + (0..<150).map { _ in
                (0..<Int.random(in: 0..<6, using: &generator)).map { _ in
                    [0, 1, 2, 0x61, 0xFE, 0xFF].randomElement(using: &generator)!
                }
            }
        for one in texts {
            for two in texts {
                var first = Self.key(one) { OrderedKey.append(text: $0, to: &$1) }
                var second = Self.key(two) { OrderedKey.append(text: $0, to: &$1) }
                #expect(OrderedKey.textEnd(in: first + [0xFF], from: 0) == first.count)
                first.append(0xFF)
                second.append(0x00)
                #expect(
                    Bytes.isOrdered(first, before: second) == Bytes.isOrdered(one, before: two),
                    "\(one) \(two), seed \(seed)")
            }
        }
    }

    @Test func `long text is cut to 256 bytes at most and stays after what it begins with`() {
        let long = Bytes(repeating: 0x61, count: 1_000)
        var key = Bytes()
        #expect(OrderedKey.append(text: long, to: &key))
        #expect(key.count <= 256)
        var exact = Bytes()
        #expect(!OrderedKey.append(text: Bytes(long.prefix(OrderedKey.textLengthMax)), to: &exact))
        #expect(Bytes.isOrdered(exact, before: key))
        var zeros = Bytes()
        #expect(OrderedKey.append(text: Bytes(repeating: 0, count: 500), to: &zeros))
        #expect(zeros.count <= 256)
        #expect(OrderedKey.textEnd(in: zeros, from: 0) == zeros.count)
    }

    @Test func `numbers order as their bytes and none begins another`() {
        let numbers: [UInt32] = [0, 1, 127, 128, 129, 65_535, 1 << 24, (1 << 31) - 1]
        let keys = numbers.map { Self.key($0) { OrderedKey.append(number: $0, to: &$1) } }
        for (one, two) in zip(keys, keys.dropFirst()) {
            #expect(Bytes.isOrdered(one, before: two))
            #expect(!two.starts(with: one))
        }
    }

    @Test func `the keys of version 1 are these bytes for ever`() {
        var key = Bytes()
        OrderedKey.append(Int64(-2), to: &key)
        OrderedKey.append(1.5, to: &key)
        OrderedKey.append(-1.5, to: &key)
        OrderedKey.append(text: [0x61, 0, 0x62], to: &key)
        OrderedKey.append(number: 5, to: &key)
        OrderedKey.append(number: 300, to: &key)
        let digits =
            "7ffffffffffffffe" + "bff8000000000000" + "4007ffffffffffff" + "6100ff620001" + "05"
            + "8000012c"
        #expect(key.map { String(Int($0) + 0x100, radix: 16).suffix(2) }.joined() == digits)
    }

    @Test func `the successor of a prefix is above all it begins`() {
        #expect(OrderedKey.successor(ofPrefix: [1, 2]) == [1, 3])
        #expect(OrderedKey.successor(ofPrefix: [1, 0xFF]) == [2])
        #expect(OrderedKey.successor(ofPrefix: [0xFF, 0xFF]) == [])
    }
}
