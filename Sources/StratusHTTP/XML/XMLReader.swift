package import StratusModel

/// Reads documents of XML 1.0 with namespaces, as WebDAV clients send them.
///
/// It takes less than XML allows. There are no document types and so no entities but the five: no
/// document can grow while it is read, and none can name a file or a host. The encoding is UTF-8.
/// Every part is bounded by ``XMLLimits``, and nesting costs no stack.
package struct XMLReader {
    private let bytes: Bytes
    private let limits: XMLLimits
    private var offset = 0
    private var elementCount = 0
    private var open: [Open] = []
    private var root: XMLElement?

    /// An element whose end has not come yet.
    private struct Open {
        /// The name as it is written, which its end must repeat.
        var tag: Bytes
        var element: XMLElement
        /// Text that has no end yet.
        var text: Bytes = []
        /// The namespaces by prefix that are in force inside it.
        var namespaces: [Bytes: String]
    }

    static let xmlNamespace = "http://www.w3.org/XML/1998/namespace"
    private static let declarations = "http://www.w3.org/2000/xmlns/"

    /// Reads a whole document.
    package static func read(
        _ bytes: Bytes, limits: XMLLimits = XMLLimits()
    ) throws(XMLError) -> XMLElement {
        guard bytes.count <= limits.sizeMax else { throw XMLError(.tooLarge, at: limits.sizeMax) }
        guard String(validating: bytes, as: UTF8.self) != nil else {
            throw XMLError(.encoding, at: 0)
        }
        var reader = XMLReader(bytes: bytes, limits: limits)
        return try reader.document()
    }

    private init(bytes: Bytes, limits: XMLLimits) {
        self.bytes = bytes
        self.limits = limits
    }

    // MARK: The document

    private mutating func document() throws(XMLError) -> XMLElement {
        if self.bytes.starts(with: [0xEF, 0xBB, 0xBF]) { self.offset = 3 }
        if self.bytes[self.offset...].starts(with: Bytes("<?xml".utf8)),
            self.bytes.count > self.offset + 5, self.isSpace(self.bytes[self.offset + 5])
        {
            self.offset += 5
            try self.declaration()
        }
        while self.offset < self.bytes.count {
            if self.peek == UInt8(ascii: "<") {
                try self.markup()
            } else {
                try self.text()
            }
        }
        guard self.open.isEmpty, let root = self.root else { throw self.error(.truncated) }
        return root
    }

    /// What stands between `<?xml` and `?>`: only an encoding can matter.
    private mutating func declaration() throws(XMLError) {
        let start = self.offset
        try self.skip(past: "?>")
        let text = String(decoding: self.bytes[start..<(self.offset - 2)], as: UTF8.self)
            .lowercased()
        guard let found = text.split(separator: "encoding").dropFirst().first else { return }
        let named = found.drop { $0 == " " || $0 == "=" || $0 == "\t" || $0 == "\n" || $0 == "\r" }
        guard
            named.hasPrefix("\"utf-8\"") || named.hasPrefix("'utf-8'")
                || named.hasPrefix("\"us-ascii\"") || named.hasPrefix("'us-ascii'")
        else { throw XMLError(.encoding, at: start) }
    }

    private mutating func markup() throws(XMLError) {
        if self.takes("<!--") {
            // Two hyphens end a comment, and must end it.
            try self.skip(past: "--")
            guard self.takes(">") else { throw self.error(.syntax) }
        } else if self.takes("<![CDATA[") {
            let start = self.offset
            try self.skip(past: "]]>")
            try self.append(self.bytes[start..<(self.offset - 3)])
        } else if self.takes("<?") {
            let name = try self.name()
            guard name.map({ $0 | 0x20 }) != Bytes("xml".utf8) else { throw self.error(.syntax) }
            try self.skip(past: "?>")
        } else if self.takes("<!") {
            throw self.error(.documentType)
        } else if self.takes("</") {
            try self.end()
        } else {
            self.offset += 1
            try self.start()
        }
    }

    // MARK: Elements

    private mutating func start() throws(XMLError) {
        guard self.root == nil || !self.open.isEmpty else { throw self.error(.content) }
        self.elementCount += 1
        guard self.elementCount <= self.limits.elementCountMax else {
            throw self.error(.tooManyElements)
        }
        guard self.open.count < self.limits.depthMax else { throw self.error(.tooDeep) }
        let tag = try self.name()
        var written: [(name: Bytes, value: String)] = []
        var isEmpty = false
        while true {
            let hadSpace = self.skipSpace()
            if self.takes("/>") {
                isEmpty = true
                break
            }
            if self.takes(">") { break }
            if self.peek == nil { throw self.error(.truncated) }
            guard hadSpace else { throw self.error(.syntax) }
            guard written.count < self.limits.attributeCountMax else {
                throw self.error(.tooManyAttributes)
            }
            let name = try self.name()
            guard !written.contains(where: { $0.name == name }) else {
                throw self.error(.attribute)
            }
            self.skipSpace()
            guard self.takes("=") else { throw self.error(.attribute) }
            self.skipSpace()
            written.append((name, try self.attributeValue()))
        }
        let namespaces = try self.namespaces(with: written)
        var element = XMLElement(try self.resolved(tag, namespaces, isAttribute: false))
        for (name, value) in written where !Self.isDeclaration(name) {
            let resolved = try self.resolved(name, namespaces, isAttribute: true)
            guard !element.attributes.contains(where: { $0.name == resolved }) else {
                throw self.error(.attribute)
            }
            element.attributes.append(XMLElement.Attribute(resolved, value))
        }
        self.open.append(Open(tag: tag, element: element, namespaces: namespaces))
        if isEmpty { self.close() }
    }

    private mutating func end() throws(XMLError) {
        let tag = try self.name()
        self.skipSpace()
        guard self.takes(">") else { throw self.error(.syntax) }
        guard self.open.last?.tag == tag else { throw self.error(.unclosed) }
        self.close()
    }

    private mutating func close() {
        var last = self.open.removeLast()
        Self.settle(&last)
        if self.open.isEmpty {
            self.root = last.element
        } else {
            let parent = self.open.count - 1
            Self.settle(&self.open[parent])
            self.open[parent].element.children.append(.element(last.element))
        }
    }

    /// Makes a node of the text that has come so far.
    private static func settle(_ open: inout Open) {
        if open.text.isEmpty { return }
        open.element.children.append(.text(String(decoding: open.text, as: UTF8.self)))
        open.text = []
    }

    // MARK: Names

    private static let prefix = Bytes("xmlns".utf8)

    private static func isDeclaration(_ name: Bytes) -> Bool {
        name == Self.prefix || name.starts(with: Self.prefix + [UInt8(ascii: ":")])
    }

    private func namespaces(
        with written: [(name: Bytes, value: String)]
    ) throws(XMLError) -> [Bytes: String] {
        var namespaces = self.open.last?.namespaces ?? [Bytes("xml".utf8): Self.xmlNamespace]
        for (name, value) in written where Self.isDeclaration(name) {
            guard name != Self.prefix else {
                guard value != Self.xmlNamespace, value != Self.declarations else {
                    throw self.error(.namespace)
                }
                namespaces[[]] = value
                continue
            }
            let prefix = Bytes(name.dropFirst(Self.prefix.count + 1))
            // A prefix cannot be taken back, and neither of the two that are fixed can be given.
            guard !prefix.isEmpty, !prefix.contains(UInt8(ascii: ":")), !value.isEmpty,
                prefix != Self.prefix, value != Self.declarations,
                (prefix == Bytes("xml".utf8)) == (value == Self.xmlNamespace)
            else { throw self.error(.namespace) }
            namespaces[prefix] = value
        }
        guard namespaces.count <= self.limits.namespaceCountMax else {
            throw self.error(.tooManyNamespaces)
        }
        return namespaces
    }

    private func resolved(
        _ name: Bytes, _ namespaces: [Bytes: String], isAttribute: Bool
    ) throws(XMLError) -> XMLName {
        let parts = name.split(
            separator: UInt8(ascii: ":"), omittingEmptySubsequences: false
        ).map { Bytes($0) }
        switch parts.count {
        case 1:
            // An attribute without a prefix is in no namespace.
            let namespace = isAttribute ? "" : namespaces[[]] ?? ""
            return XMLName(namespace, String(decoding: name, as: UTF8.self))
        case 2:
            guard let first = parts[1].first, Self.mayStart(first), !parts[0].isEmpty else {
                throw self.error(.name)
            }
            guard let namespace = namespaces[parts[0]] else { throw self.error(.namespace) }
            return XMLName(namespace, String(decoding: parts[1], as: UTF8.self))
        default: throw self.error(.name)
        }
    }

    /// Beyond ASCII every character may stand in a name: nobody's names are judged by them.
    private static func mayStart(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "_"), 0x80...:
            true
        default: false
        }
    }

    private static func mayContinue(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."),
            UInt8(ascii: ":"):
            true
        default: Self.mayStart(byte)
        }
    }

    private mutating func name() throws(XMLError) -> Bytes {
        let start = self.offset
        guard let first = self.peek else { throw self.error(.truncated) }
        guard Self.mayStart(first) else { throw self.error(.name) }
        while let byte = self.peek, Self.mayContinue(byte) { self.offset += 1 }
        guard self.offset - start <= self.limits.nameSizeMax else { throw self.error(.tooLong) }
        return Bytes(self.bytes[start..<self.offset])
    }

    // MARK: Text

    /// Text up to the next markup.
    private mutating func text() throws(XMLError) {
        let start = self.offset
        while let byte = self.peek, byte != UInt8(ascii: "<"), byte != UInt8(ascii: "&") {
            self.offset += 1
        }
        if self.offset > start {
            let part = self.bytes[start..<self.offset]
            // The end of a CDATA section where none began.
            guard !Self.contains(part, "]]>") else { throw XMLError(.syntax, at: start) }
            try self.append(part)
        } else if self.peek == UInt8(ascii: "&") {
            guard !self.open.isEmpty else { throw self.error(.content) }
            let scalar = try self.reference()
            self.open[self.open.count - 1].text += Bytes(String(scalar).utf8)
        }
    }

    private mutating func append(_ part: ArraySlice<UInt8>) throws(XMLError) {
        guard !self.open.isEmpty else {
            guard part.allSatisfy({ self.isSpace($0) }), !part.isEmpty else {
                throw self.error(.content)
            }
            return
        }
        let last = self.open.count - 1
        var previous: UInt8 = 0
        for byte in part {
            try self.check(byte)
            // Every end of a line is one line feed.
            if byte == 0x0A, previous == 0x0D {
                previous = byte
                continue
            }
            self.open[last].text.append(byte == 0x0D ? 0x0A : byte)
            previous = byte
        }
    }

    private mutating func attributeValue() throws(XMLError) -> String {
        guard let quote = self.peek, quote == UInt8(ascii: "\"") || quote == UInt8(ascii: "'")
        else { throw self.error(.attribute) }
        self.offset += 1
        var value: Bytes = []
        while let byte = self.peek {
            guard value.count <= self.limits.valueSizeMax else { throw self.error(.tooLong) }
            switch byte {
            case quote:
                self.offset += 1
                return String(decoding: value, as: UTF8.self)
            case UInt8(ascii: "<"): throw self.error(.attribute)
            case UInt8(ascii: "&"):
                let scalar = try self.reference()
                value += Bytes(String(scalar).utf8)
            default:
                try self.check(byte)
                self.offset += 1
                if byte == 0x0D, self.peek == 0x0A { continue }
                value.append(byte < 0x20 ? 0x20 : byte)
            }
        }
        throw self.error(.truncated)
    }

    /// Control characters are in no document. The two characters that UTF-8 has and XML has not,
    /// U+FFFE and U+FFFF, are let through.
    private func check(_ byte: UInt8) throws(XMLError) {
        guard byte >= 0x20 || byte == 0x09 || byte == 0x0A || byte == 0x0D else {
            throw self.error(.character)
        }
    }

    /// `&amp;`, `&#38;` or `&#x26;`.
    private mutating func reference() throws(XMLError) -> Unicode.Scalar {
        let start = self.offset
        self.offset += 1
        let nameStart = self.offset
        while let byte = self.peek, byte != UInt8(ascii: ";"), self.offset - nameStart < 12 {
            self.offset += 1
        }
        guard self.peek == UInt8(ascii: ";") else { throw XMLError(.entity, at: start) }
        let name = String(decoding: self.bytes[nameStart..<self.offset], as: UTF8.self)
        self.offset += 1
        switch name {
        case "amp": return "&"
        case "lt": return "<"
        case "gt": return ">"
        case "quot": return "\""
        case "apos": return "'"
        default: break
        }
        guard name.hasPrefix("#") else { throw XMLError(.entity, at: start) }
        let digits = name.dropFirst(name.hasPrefix("#x") ? 2 : 1)
        guard digits.first?.isHexDigit == true,
            let value = UInt32(digits, radix: name.hasPrefix("#x") ? 16 : 10),
            value >= 0x20 || value == 0x09 || value == 0x0A || value == 0x0D,
            value != 0xFFFE, value != 0xFFFF, let scalar = Unicode.Scalar(value)
        else { throw XMLError(.character, at: start) }
        return scalar
    }

    // MARK: Bytes

    private var peek: UInt8? {
        self.offset < self.bytes.count ? self.bytes[self.offset] : nil
    }

    private func isSpace(_ byte: UInt8?) -> Bool {
        byte == 0x20 || byte == 0x09 || byte == 0x0A || byte == 0x0D
    }

    @discardableResult
    private mutating func skipSpace() -> Bool {
        let start = self.offset
        while self.isSpace(self.peek) { self.offset += 1 }
        return self.offset > start
    }

    private mutating func takes(_ text: StaticString) -> Bool {
        let wanted = Bytes(text.description.utf8)
        guard self.bytes[self.offset...].starts(with: wanted) else { return false }
        self.offset += wanted.count
        return true
    }

    private mutating func skip(past text: StaticString) throws(XMLError) {
        let wanted = Bytes(text.description.utf8)
        while self.offset < self.bytes.count {
            if self.bytes[self.offset] == wanted[0],
                self.bytes[self.offset...].starts(with: wanted)
            {
                self.offset += wanted.count
                return
            }
            self.offset += 1
        }
        throw self.error(.truncated)
    }

    private static func contains(_ part: ArraySlice<UInt8>, _ text: StaticString) -> Bool {
        let wanted = Bytes(text.description.utf8)
        return part.indices.contains {
            part[$0] == wanted[0] && part[$0...].starts(with: wanted)
        }
    }

    private func error(_ reason: XMLError.Reason) -> XMLError {
        XMLError(reason, at: self.offset)
    }
}
