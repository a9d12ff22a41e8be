/// One entry of a document's tape: eight bytes that say what a value is and where its text lies.
///
/// | Bits | Meaning |
/// | --- | --- |
/// | 0–28 | where the value starts in the source; for a string, after its quote |
/// | 29–57 | string or number: length of its text. Array or object: index after its last node |
/// | 58–60 | ``Kind`` |
/// | 61–62 | number: ``NumberForm``. string: 1 with an escape, 2 with half of a pair |
///
/// An object's children are key, value, key, value …; a key is a string node.
struct JSONNode: Sendable {
    enum Kind: UInt8 { case null, no, yes, number, string, array, object }
    /// `integer` fits Int64; `largeInteger` does not; `fraction` has a point or an exponent.
    enum NumberForm: UInt8 { case integer, largeInteger, fraction }

    static let hasEscape: UInt8 = 1
    static let isUnreadable: UInt8 = 2

    /// Source offsets and tape indices are below this.
    static let reach = 1 << 29

    private(set) var word: UInt64

    init(_ kind: Kind, offset: Int, extent: Int, flag: UInt8 = 0) {
        self.word =
            UInt64(truncatingIfNeeded: offset) | UInt64(truncatingIfNeeded: extent) << 29
            | UInt64(kind.rawValue) << 58 | UInt64(flag) << 61
    }

    var kind: Kind {
        switch (self.word >> 58) & 7 {
        case 0: .null
        case 1: .no
        case 2: .yes
        case 3: .number
        case 4: .string
        case 5: .array
        default: .object
        }
    }
    var isContainer: Bool { (self.word >> 58) & 7 >= 5 }
    var offset: Int { Int(self.word & 0x1FFF_FFFF) }
    var extent: Int { Int((self.word >> 29) & 0x1FFF_FFFF) }
    var end: Int { self.offset + self.extent }
    var flag: UInt8 { UInt8(truncatingIfNeeded: (self.word >> 61) & 3) }

    /// The index of the node after this value, whole.
    func successor(of index: Int) -> Int { self.isContainer ? self.extent : index + 1 }
}
