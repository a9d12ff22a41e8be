import StratusModel

/// A header field of the form `value; name=value; name="value"` (RFC 9110 §5.6.6), read strictly.
struct HeaderParameters: Sendable, Equatable {
    /// The text before the first semicolon, in lower case.
    let value: String
    /// In their order; names in lower case.
    let parameters: [(name: String, value: String)]

    static let countMax = 16

    /// Nil: a name that is no token, a value that is neither token nor quoted text, a name twice,
    /// or too many.
    init?(_ text: String) {
        var rest = Array(text.utf8)[...]
        let value = Self.take(&rest) { $0 != 0x3B }
        self.value = String(
            decoding: Self.trimmed(value).map(ASCII.lowered), as: UTF8.self)
        var parameters: [(name: String, value: String)] = []
        while rest.first == 0x3B {
            rest = rest.dropFirst()
            Self.skipSpace(&rest)
            if rest.isEmpty { break }
            let name = String(
                decoding: Self.take(&rest, while: HTTPCharacters.token.contains).map(ASCII.lowered),
                as: UTF8.self)
            guard !name.isEmpty, rest.first == 0x3D, parameters.count < Self.countMax,
                !parameters.contains(where: { $0.name == name })
            else { return nil }
            rest = rest.dropFirst()
            guard let value = Self.value(&rest),
                let text = String(validating: value, as: UTF8.self)
            else { return nil }
            parameters.append((name, text))
            Self.skipSpace(&rest)
        }
        guard rest.isEmpty else { return nil }
        self.parameters = parameters
    }

    subscript(name: String) -> String? { self.parameters.first { $0.name == name }?.value }

    static func == (one: Self, other: Self) -> Bool {
        one.value == other.value
            && one.parameters.map { [$0.name, $0.value] }
                == other.parameters.map { [$0.name, $0.value] }
    }

    private static func value(_ rest: inout ArraySlice<UInt8>) -> Bytes? {
        guard rest.first == 0x22 else {
            let token = Self.take(&rest, while: HTTPCharacters.token.contains)
            return token.isEmpty ? nil : Bytes(token)
        }
        rest = rest.dropFirst()
        var value = Bytes()
        while let byte = rest.first {
            rest = rest.dropFirst()
            switch byte {
            case 0x22: return value
            case 0x5C:
                guard let escaped = rest.first else { return nil }
                rest = rest.dropFirst()
                value.append(escaped)
            default: value.append(byte)
            }
        }
        return nil
    }

    private static func take(_ rest: inout ArraySlice<UInt8>, while holds: (UInt8) -> Bool)
        -> ArraySlice<UInt8>
    {
        let taken = rest.prefix(while: holds)
        rest = rest.dropFirst(taken.count)
        return taken
    }

    private static func skipSpace(_ rest: inout ArraySlice<UInt8>) {
        rest = rest.drop { $0 == 0x20 || $0 == 0x09 }
    }

    private static func trimmed(_ bytes: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
        var bytes = bytes.drop { $0 == 0x20 || $0 == 0x09 }
        while let last = bytes.last, last == 0x20 || last == 0x09 { bytes = bytes.dropLast() }
        return bytes
    }
}
