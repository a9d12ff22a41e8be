import StratusCoding
import StratusModel

/// A form that fills values with what is drawn: so every type that lays its fields has values to
/// test with, and nobody writes them.
struct Drawing: Form {
    typealias Problem = Never

    private var random: SeededGenerator
    private var isWellFormed = true

    /// A value that its own layout takes.
    static func value<Value: FormValue>(
        _ type: Value.Type, from random: inout SeededGenerator
    ) -> Value {
        for _ in 0..<100_000 {
            var form = Drawing(random: random)
            var value = Value()
            value.lay(in: &form)
            random = form.random
            if form.isWellFormed { return value }
        }
        preconditionFailure("\(type) takes nothing that is drawn")
    }

    private init(random: SeededGenerator) { self.random = random }

    private mutating func draw(_ count: Int) -> Int {
        Int.random(in: 0..<count, using: &self.random)
    }
    /// Zero is no rare value.
    private mutating func draw() -> UInt64 {
        self.draw(8) == 0 ? 0 : self.random.next() >> UInt64(self.draw(64))
    }

    mutating func lay(byte value: inout UInt8) { value = UInt8(self.draw(4)) }
    mutating func lay(_ value: inout Bool) { value = self.draw(2) == 0 }
    mutating func lay(_ value: inout UInt32) { value = UInt32(truncatingIfNeeded: self.draw()) }
    mutating func lay(_ value: inout UInt64) { value = self.draw() }
    mutating func lay(_ value: inout Int64) { value = Int64(bitPattern: self.draw()) }
    mutating func lay(fixed value: inout UInt32) { self.lay(&value) }
    mutating func lay(fixed value: inout UInt64) { self.lay(&value) }

    mutating func lay(name value: inout UInt128) {
        value = UInt128(self.draw()) << 64 | UInt128(self.draw())
    }

    mutating func lay(_ value: inout String) {
        value = String(["a", "ß", "Shelves", "", "0"][self.draw(5)])
    }

    mutating func lay(_ value: inout Bytes) {
        value = (0..<self.draw(40)).map { _ in UInt8.random(in: 0...255, using: &self.random) }
    }

    mutating func lay<Value: FormValue>(_ list: inout [Value], atMost max: Int) {
        list = []
        for _ in 0..<self.draw(min(max, 4) + 1) {
            var value = Value()
            value.lay(in: &self)
            list.append(value)
        }
    }

    mutating func lay<Value>(
        _ value: inout Value, by write: (inout ByteWriter, Value) -> Void,
        _ read: (inout ByteReader) throws(DecodingError) -> Value
    ) {
        let databases = [
            Bench.privateDatabase, Bench.publicDatabase,
            DatabaseID(
                container: Bench.container, scope: .public, owner: "", bucket: Bucket(3, of: 64)),
            DatabaseID(
                container: Bench.container, scope: .private, owner: "u", bucket: Bucket(1, of: 8)),
        ]
        let drawn: [Any] = [
            databases[self.draw(4)], [GoldenTests.record], [ResealGoldens.secret(7)],
            GoldenTests.subscription,
        ]
        value = drawn.lazy.compactMap { $0 as? Value }.first ?? value
    }

    mutating func require(_ holds: @autoclosure () -> Bool) {
        if !holds() { self.isWellFormed = false }
    }
}
