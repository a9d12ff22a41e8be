import StratusModel
import StratusSealing
import Testing

/// Values of encrypted fields: sealed for one place, and equal only there.
@Suite struct FieldSealerTests {
    static let place = FieldPlace(zone: "Shelves", record: "book-1", field: "secret")
    static let value = FieldValue.scalar(.string("golden field"))

    static func sealer(
        key: Bytes = BodySealerTests.key, version: UInt32 = 3,
        database: DatabaseID = BodySealerTests.database
    ) -> FieldSealer {
        FieldSealer(
            databaseKey: SecretBytes(copying: key), version: version, database: database)
    }

    static func seal(
        _ value: FieldValue = value, at place: FieldPlace = place, by sealer: FieldSealer = sealer()
    ) -> (type: FieldType, bytes: Bytes) {
        guard case .sealed(let type, let bytes) = sealer.seal(value, at: place) else {
            preconditionFailure("a sealer seals")
        }
        return (type, bytes)
    }

    /// The expected bytes come from another implementation (Python's `hmac` and OpenSSL's program),
    /// written from the table of the format.
    @Test func `a sealed field of format 1 is sealed as ever`() {
        let sealed = Self.seal()
        #expect(sealed.type == FieldType(.string, isEncrypted: true))
        #expect(
            Vectors.digits(sealed.bytes)
                == "010300000082c4935d4e37d7054ee891099892d60dc75806893544f2594f977b38110d")
        #expect(Self.sealer().open(sealed.bytes, as: sealed.type, at: Self.place) == Self.value)
    }

    @Test func `values of every type come back`() {
        var place = Location(latitude: 1.5, longitude: -2)
        place.course = 7
        let values: [FieldValue] = [
            .scalar(.string("")), .scalar(.int64(.min)), .scalar(.double(-0.0)),
            .scalar(.timestamp(1)), .scalar(.bytes([0, 1])), .scalar(.location(place)),
            .list(.string, []), .list(.string, [.string("a"), .string("b")]),
            .list(.bytes, [.bytes(Bytes(repeating: 7, count: 100_000))]),
        ]
        for value in values {
            let sealed = Self.seal(value)
            #expect(sealed.type.isEncrypted && sealed.type.scalar == value.type.scalar)
            #expect(sealed.type.isList == value.type.isList)
            #expect(Self.sealer().open(sealed.bytes, as: sealed.type, at: Self.place) == value)
        }
    }

    @Test func `equal only for the same value of the same field of the same record`() {
        let one = Self.seal().bytes
        #expect(Self.seal().bytes == one)
        let other = DatabaseID(
            container: BodySealerTests.database.container, scope: .private, owner: "_other")
        let others: [(String, Bytes)] = [
            ("value", Self.seal(.scalar(.string("golden fielD"))).bytes),
            ("type", Self.seal(.scalar(.bytes(Bytes("golden field".utf8)))).bytes),
            ("zone", Self.seal(at: FieldPlace(zone: "S", record: "book-1", field: "secret")).bytes),
            (
                "record",
                Self.seal(at: FieldPlace(zone: "Shelves", record: "b", field: "secret")).bytes
            ),
            (
                "field",
                Self.seal(at: FieldPlace(zone: "Shelves", record: "book-1", field: "s")).bytes
            ),
            ("key", Self.seal(by: Self.sealer(key: Bytes(1..<33))).bytes),
            ("version", Self.seal(by: Self.sealer(version: 4)).bytes),
            ("database", Self.seal(by: Self.sealer(database: other)).bytes),
        ]
        for (what, bytes) in others {
            // Neither the IV nor the text behind it.
            #expect(bytes[5..<21] != one[5..<21], "another \(what)")
            #expect(bytes.suffix(12) != one.suffix(12), "another \(what)")
            #expect(
                Self.sealer().open(
                    bytes, as: FieldType(.string, isEncrypted: true), at: Self.place)
                    != Self.value, "another \(what)")
        }
    }

    @Test func `A-14 a flipped bit, a cut end and another type do not open`() {
        let (type, sealed) = Self.seal()
        for position in sealed.indices {
            var altered = sealed
            altered[position] ^= 0x10
            #expect(Self.sealer().open(altered, as: type, at: Self.place) == nil)
            #expect(
                Self.sealer().open(Bytes(sealed.prefix(position)), as: type, at: Self.place) == nil)
        }
        let list = FieldType(.string, isList: true, isEncrypted: true)
        #expect(Self.sealer().open(sealed, as: list, at: Self.place) == nil)
    }
}
