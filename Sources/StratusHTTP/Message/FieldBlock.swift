package import StratusModel

/// The fields of an HTTP/2 message in their order, pseudo-fields first, as they go to the encoder.
///
/// Nothing written through here can break HTTP/2's rules: names go out in lower case, characters
/// that HTTP forbids in a value go out percent-encoded, and fields about connections are dropped.
package struct FieldBlock: Sendable, Equatable {
    /// The place of one field in ``text``.
    package struct Field: Sendable, Equatable {
        package var name: Range<Int>
        package var value: Range<Int>
    }

    package private(set) var text: Bytes = []
    package private(set) var fields: [Field] = []

    /// An interim answer.
    package static let goOn = FieldBlock(status: 100)

    private init(status: Int) {
        self.add(Array(":status".utf8), Self.decimal(status))
    }

    /// An answer's head.
    ///
    /// - Parameters:
    ///   - bodyLength: nil when it is not known.
    ///   - date: the value of the `date` field; empty for none.
    package init(
        status: Int, headers: HeaderFields, bodyLength: Int?, date: ArraySlice<UInt8> = []
    ) {
        precondition((200...599).contains(status), "not a final status: \(status)")
        self.text.reserveCapacity(headers.text.count + 64)
        self.fields.reserveCapacity(headers.fields.count + 3)
        self.add(Array(":status".utf8), Self.decimal(status))
        self.add(headers)
        if !date.isEmpty { self.add(Array("date".utf8), Bytes(date)) }
        if let bodyLength, !HTTPStatus.hasNoBody(status) {
            self.add(Array("content-length".utf8), Self.decimal(bodyLength))
        }
    }

    /// A request's head.
    package init(
        method: String, scheme: String, authority: String, target: String, headers: HeaderFields,
        bodyLength: Int?
    ) {
        self.add(Array(":method".utf8), Array(method.utf8))
        self.add(Array(":scheme".utf8), Array(scheme.utf8))
        self.add(Array(":authority".utf8), Array(authority.utf8))
        self.add(Array(":path".utf8), Array(target.utf8))
        self.add(headers)
        if let bodyLength { self.add(Array("content-length".utf8), Self.decimal(bodyLength)) }
    }

    private mutating func add(_ headers: HeaderFields) {
        for field in headers.fields {
            let name = headers.text[field.name]
            precondition(
                !name.isEmpty && name.allSatisfy(HTTPCharacters.token.contains),
                "not a header's name: \(headers.string(field.name))")
            let lowered = name.map(ASCII.lowered)
            guard !Self.isOurs(lowered) else { continue }
            self.add(lowered, Self.encoded(headers.text[field.value]))
        }
    }

    private mutating func add(_ name: Bytes, _ value: Bytes) {
        let start = self.text.count
        self.text += name
        let middle = self.text.count
        self.text += value
        self.fields.append(Field(name: start..<middle, value: middle..<self.text.count))
    }

    private static func isOurs(_ name: Bytes) -> Bool {
        switch name.count {
        case 4: name.elementsEqual("host".utf8)
        case 7: name.elementsEqual("upgrade".utf8)
        case 10: name.elementsEqual("connection".utf8) || name.elementsEqual("keep-alive".utf8)
        case 14: name.elementsEqual("content-length".utf8)
        case 16: name.elementsEqual("proxy-connection".utf8)
        case 17: name.elementsEqual("transfer-encoding".utf8)
        default: false
        }
    }

    private static func encoded(_ value: ArraySlice<UInt8>) -> Bytes {
        var trimmed = value.drop { $0 == 0x20 || $0 == 0x09 }
        while let last = trimmed.last, last == 0x20 || last == 0x09 { trimmed.removeLast() }
        guard !trimmed.allSatisfy({ $0 >= 0x20 && $0 < 0x7F }) else { return Bytes(trimmed) }
        var bytes = Bytes()
        for byte in trimmed {
            if byte >= 0x20 && byte < 0x7F || byte == 0x09 {
                bytes.append(byte)
            } else {
                bytes += [0x25, ASCII.hexDigit(byte >> 4), ASCII.hexDigit(byte)]
            }
        }
        return bytes
    }

    private static func decimal(_ value: Int) -> Bytes {
        var bytes = Bytes()
        bytes.append(decimal: Int64(value))
        return bytes
    }
}
