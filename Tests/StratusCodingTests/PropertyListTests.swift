import StratusModel
import Testing

@testable import StratusCoding

/// Property lists, as they are stored.
@Suite struct PropertyListTests {
    static let value = PropertyListValue.dictionary([
        .init(
            key: "a",
            value: .array([
                .string("text"), .integer(-300), .real(0.5), .boolean(false), .date(-1),
                .data([0, 255]), .array([]), .dictionary([]),
            ])), .init(key: "e\u{301}", value: .boolean(true)),
        .init(key: "\u{E9}", value: .integer(.max)),
    ])

    @Test func `every type reads and writes as ever`() throws {
        let bytes = Self.value.encoded()
        #expect(
            bytes == (try GoldenTests.golden("property-list-1", now: bytes)),
            "now \(GoldenTests.hexadecimal(bytes))")
        #expect(try PropertyListValue(decoding: Self.value.encoded()) == Self.value)
    }

    @Test func `what no encoder writes is refused`() {
        func isRefused(_ bytes: Bytes) -> Bool {
            (try? PropertyListValue(decoding: bytes)) == nil
        }
        #expect(
            isRefused([]) && isRefused([2, 4, 0]) && isRefused([1, 9]) && isRefused([1, 4, 2]))
        // Bytes after the end, and counts that no bytes follow.
        #expect(isRefused([1, 4, 0, 0]) && isRefused([1, 7, 200]) && isRefused([1, 8, 200]))
        // Members out of order, and one twice.
        #expect(isRefused([1, 8, 2, 1, 98, 4, 0, 1, 97, 4, 0]))
        #expect(isRefused([1, 8, 2, 1, 97, 4, 0, 1, 97, 4, 0]))
        // Not a number.
        let nan = Double.nan.bitPattern
        #expect(isRefused([1, 3] + (0..<8).map { UInt8(truncatingIfNeeded: nan >> ($0 * 8)) }))
    }

    @Test func `thirty-two levels are read and one more is not`() throws {
        var value = PropertyListValue.integer(1)
        for _ in 1..<PropertyListValue.depthMax { value = .array([value]) }
        #expect(try PropertyListValue(decoding: value.encoded()) == value)
        #expect(
            (try? PropertyListValue(decoding: PropertyListValue.array([value]).encoded())) == nil)
    }
}
