/// Why bytes are not a JSON document we take, and where that shows.
package struct JSONError: Error, Sendable, Equatable, CustomStringConvertible {
    package enum Kind: String, Sendable, CaseIterable {
        case truncated = "the document ends too early"
        case unexpectedByte = "a byte that cannot stand here"
        case badNumber = "not a number as JSON writes them"
        case numberOutOfRange = "a number no Double can hold"
        case badEscape = "an escape JSON does not have"
        case loneSurrogate = "half of a surrogate pair"
        case controlCharacter = "a control character inside a string"
        case badUTF8 = "bytes that are not UTF-8"
        case byteOrderMark = "a byte order mark"
        case trailingBytes = "something after the document"
        case tooDeep = "more nesting than allowed"
        case tooLarge = "more bytes than allowed"
        case tooManyValues = "more values than allowed"
    }
    package let kind: Kind
    /// The offset of the first offending byte.
    package let offset: Int

    package init(_ kind: Kind, at offset: Int) {
        self.kind = kind
        self.offset = offset
    }

    package var description: String { "\(self.kind.rawValue), at byte \(self.offset)" }
}
