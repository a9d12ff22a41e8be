/// The rule for where a message's body ends, decided strictly from its head (RFC 9112 §6): anything
/// that two readers might understand differently is refused.
enum HTTPMessageFraming: Sendable, Equatable {
    case none
    case length(Int)
    case chunked

    /// - Returns: nil where the head says nothing about a body.
    static func read(_ headers: HeaderFields, minorVersion: Int) throws(HTTPRefusal) -> Self? {
        var length: Int?
        var isChunked = false
        for field in headers.fields {
            switch field.nameCount {
            case 14 where Self.isNamed(headers, field, "content-length"):
                guard length == nil else { throw .contentLength }
                length = try Self.length(headers.text.span.extracting(field.value))
            case 17 where Self.isNamed(headers, field, "transfer-encoding"):
                guard !isChunked, minorVersion == 1 else { throw .transferEncoding }
                try Self.checkCoding(headers, field)
                isChunked = true
            default: break
            }
        }
        if isChunked {
            guard length == nil else { throw .bothLengths }
            return .chunked
        }
        return length.map { .length($0) }
    }

    /// One to eighteen digits: no sign, no list, no space, no overflow.
    static func length(_ text: Span<UInt8>) throws(HTTPRefusal) -> Int {
        guard !text.isEmpty, text.count <= 18 else { throw .contentLength }
        var length = 0
        for at in 0..<text.count {
            guard ASCII.isDigit(text[at]) else { throw .contentLength }
            length = length * 10 + Int(text[at] - 0x30)
        }
        return length
    }

    /// Exactly `chunked`, in lower case: other spellings are how two readers come to disagree.
    private static func checkCoding(_ headers: HeaderFields, _ field: HeaderFields.Field)
        throws(HTTPRefusal)
    {
        let value = headers.text[field.value]
        guard !value.elementsEqual("chunked".utf8) else {
            // A tab counts as white space to some and as part of the value to others.
            let gap = headers.text[field.name.upperBound..<field.value.lowerBound]
            let after = headers.text[field.value.upperBound...].prefix { $0 != 0x0D }
            guard !gap.contains(0x09), !after.contains(0x09) else { throw .transferEncoding }
            return
        }
        let codings = value.split(separator: 0x2C, omittingEmptySubsequences: false)
        let isList = codings.allSatisfy { coding in
            let name = coding.drop { $0 == 0x20 }
            return !name.isEmpty && name.allSatisfy(HTTPCharacters.token.contains)
        }
        let namesChunked = codings.contains { coding in
            coding.drop { $0 == 0x20 }.map(ASCII.lowered).elementsEqual("chunked".utf8)
        }
        // A coding we do not know is honest ignorance; `chunked` in an odd place is an attack.
        throw !isList || namesChunked && !Self.endsInChunkedOnly(codings)
            ? .transferEncoding : .transferCoding
    }

    private static func endsInChunkedOnly(_ codings: [ArraySlice<UInt8>]) -> Bool {
        codings.count > 1
            && codings.last!.drop { $0 == 0x20 }.elementsEqual("chunked".utf8)
            && !codings.dropLast().contains { coding in
                coding.drop { $0 == 0x20 }.map(ASCII.lowered).elementsEqual("chunked".utf8)
            }
    }

    static func isNamed(_ headers: HeaderFields, _ field: HeaderFields.Field, _ name: StaticString)
        -> Bool
    {
        Self.isNamed(headers.text.span, field, name)
    }

    static func isNamed(_ text: Span<UInt8>, _ field: HeaderFields.Field, _ name: StaticString)
        -> Bool
    {
        guard Int(field.nameCount) == name.utf8CodeUnitCount else { return false }
        for position in 0..<name.utf8CodeUnitCount
        // Reads within a literal's own length.
        where unsafe ASCII.lowered(text[Int(field.nameStart) + position])
            != name.utf8Start[position]
        {
            return false
        }
        return true
    }
}
