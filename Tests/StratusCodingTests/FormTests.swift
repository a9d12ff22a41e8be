import StratusModel
import Testing

@testable import StratusCoding

/// Fields that are laid once, for both directions.
@Suite struct FormTests {
    private enum Colour: UInt8 { case red = 1, blue = 2 }

    private enum Shape: FormChoice, Equatable {
        case point
        case circle(UInt32)
        case text(String?, [Part])

        init() { self = .point }
        var number: UInt8 {
            switch self {
            case .point: 1
            case .circle: 2
            case .text: 3
            }
        }
        init?(number: UInt8) {
            switch number {
            case 1: self = .point
            case 2: self = .circle(0)
            case 3: self = .text(nil, [])
            default: return nil
            }
        }
        mutating func layFields<F: Form>(in form: inout F) throws(F.Problem) {
            switch self {
            case .point: break
            case .circle(var radius):
                try form.lay(&radius)
                self = .circle(radius)
            case .text(var text, var parts):
                try form.lay(&text)
                try form.lay(&parts, atMost: 3)
                self = .text(text, parts)
            }
        }
    }

    private struct Part: FormValue, Equatable {
        var size: UInt64 = 0
        init() {}
        init(_ size: UInt64) { self.size = size }
        mutating func lay<F: Form>(in form: inout F) throws(F.Problem) {
            try form.lay(&self.size)
            try form.require(self.size != 13)
        }
    }

    /// A value of everything that can be laid.
    private struct Whole: FormValue, Equatable {
        var byte: UInt8 = 0
        var isOn = false
        var small: UInt32 = 0
        var large: UInt64 = 0
        var signed: Int64 = 0
        var fixed32: UInt32 = 0
        var fixed64: UInt64 = 0
        var name: UInt128 = 0
        var text = ""
        var bytes: Bytes = []
        var parts: [Part] = []
        var colour = Colour.red
        var shape = Shape.point
        var other: Part?
        var asset: AssetID?
        var tag = ChangeTag()
        var database = DatabaseID()
        init() {}
        mutating func lay<F: Form>(in form: inout F) throws(F.Problem) {
            try form.lay(byte: &self.byte)
            try form.lay(&self.isOn)
            try form.lay(&self.small)
            try form.lay(&self.large)
            try form.lay(&self.signed)
            try form.lay(fixed: &self.fixed32)
            try form.lay(fixed: &self.fixed64)
            try form.lay(name: &self.name)
            try form.lay(&self.text)
            try form.lay(&self.bytes)
            try form.lay(&self.parts, atMost: 2)
            try form.lay(&self.colour)
            try form.lay(&self.shape)
            try form.lay(&self.other)
            try form.lay(&self.asset)
            try form.lay(&self.tag)
            try form.lay(&self.database)
        }
    }

    private static func write(_ value: some FormValue) -> Bytes {
        var writer = ByteWriter()
        writer.write(form: value)
        return writer.bytes
    }

    private static func read<Value: FormValue>(_ type: Value.Type, _ bytes: Bytes)
        throws(DecodingError) -> Value
    {
        var reader = ByteReader(bytes)
        let value = try reader.form(type)
        try reader.finish()
        return value
    }

    private static let whole = Whole {
        $0.byte = 200
        $0.isOn = true
        $0.small = .max
        $0.large = .max
        $0.signed = .min
        $0.fixed32 = 7
        $0.fixed64 = .max - 1
        $0.name = .max - 2
        $0.text = "naïve"
        $0.bytes = [0, 255]
        $0.parts = [Part(1), Part(2)]
        $0.colour = .blue
        $0.shape = .text("x", [Part(3)])
        $0.other = Part(4)
        $0.asset = AssetID(5)
        $0.tag = ChangeTag(6)
        $0.database = DatabaseID(
            container: ContainerReference(container: "c", environment: .production),
            scope: .private, owner: "o", bucket: Bucket(1, of: 4))
    }

    @Test func `a value is read as it was written`() throws {
        for value in [Self.whole, Whole()] {
            let bytes = Self.write(value)
            #expect(try Self.read(Whole.self, bytes) == value)
            for count in bytes.indices {
                #expect(throws: DecodingError.self) {
                    try Self.read(Whole.self, Bytes(bytes[..<count]))
                }
            }
        }
        for shape in [Shape.point, .circle(9), .text(nil, []), .text("", [Part(1)])] {
            #expect(try Self.read(Shape.self, Self.write(shape)) == shape)
        }
    }

    @Test func `bytes are those of a writer by hand`() {
        var writer = ByteWriter()
        writer.write(flag: true)
        writer.write(text: "x")
        writer.write(count: 1)
        writer.write(varint: 300)
        #expect(Self.write(Shape.text("x", [Part(300)])) == [3] + writer.bytes)
        #expect(Self.write(nil as UInt32?) == [0] && Self.write(UInt32?.some(2)) == [1, 2])
    }

    @Test func `an unknown number, a list that is too long and a broken rule are malformed`() {
        for bytes: Bytes in [[0], [4], [255]] {
            #expect(throws: DecodingError(.malformed, at: 1)) { try Self.read(Shape.self, bytes) }
        }
        let long = Shape.text(nil, [Part(1), Part(2), Part(3), Part(4)])
        #expect(throws: DecodingError(.malformed, at: 2)) {
            try Self.read(Shape.self, Self.write(long))
        }
        #expect(throws: DecodingError(.malformed, at: 1)) { try Self.read(Part.self, [13]) }
        // A varint that is no number of 32 bits.
        #expect(throws: DecodingError(.malformed, at: 0)) {
            try Self.read(UInt32.self, Self.write(UInt64(UInt32.max) + 1))
        }
        // A count of more than the bytes can hold.
        #expect(throws: DecodingError.self) { try Self.read(Shape.self, [3, 0, 3, 1]) }
        #expect(throws: DecodingError.self) { try Self.read(Bool.self, [2]) }
    }
}
