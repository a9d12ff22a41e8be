package import StratusModel

/// Writes elements as a document that ``XMLReader`` reads as the same elements.
package struct XMLWriter {
    private var bytes: Bytes
    /// The prefixes of namespaces, declared at the root.
    private var prefixes: [String: String] = [:]
    private var order: [String] = []

    /// - Parameter prefixes: those that the writer should use; all others it makes.
    package static func write(
        _ root: XMLElement, prefixes: [(namespace: String, prefix: String)] = []
    ) -> Bytes {
        var writer = XMLWriter(bytes: Bytes("<?xml version=\"1.0\" encoding=\"utf-8\"?>\n".utf8))
        writer.prefixes[XMLReader.xmlNamespace] = "xml"
        for (namespace, prefix) in prefixes { writer.declare(namespace, as: prefix) }
        writer.collect(root)
        writer.write(root, isRoot: true)
        writer.append("\n")
        return writer.bytes
    }

    private init(bytes: Bytes) { self.bytes = bytes }

    private mutating func declare(_ namespace: String, as prefix: String? = nil) {
        guard !namespace.isEmpty, self.prefixes[namespace] == nil else { return }
        self.prefixes[namespace] = prefix ?? "n\(self.order.count)"
        self.order.append(namespace)
    }

    private mutating func collect(_ element: XMLElement) {
        self.declare(element.name.namespace)
        for attribute in element.attributes { self.declare(attribute.name.namespace) }
        for inner in element.elements { self.collect(inner) }
    }

    private func text(_ name: XMLName) -> String {
        guard let prefix = self.prefixes[name.namespace] else { return name.local }
        return "\(prefix):\(name.local)"
    }

    private mutating func write(_ element: XMLElement, isRoot: Bool = false) {
        let tag = self.text(element.name)
        self.append("<\(tag)")
        if isRoot {
            for namespace in self.order {
                self.append(" xmlns:\(self.prefixes[namespace] ?? "")=\"")
                self.append(escaping: namespace, inAttribute: true)
                self.append("\"")
            }
        }
        for attribute in element.attributes {
            self.append(" \(self.text(attribute.name))=\"")
            self.append(escaping: attribute.value, inAttribute: true)
            self.append("\"")
        }
        if element.children.isEmpty {
            self.append("/>")
            return
        }
        self.append(">")
        for child in element.children {
            switch child {
            case .element(let inner): self.write(inner)
            case .text(let text): self.append(escaping: text, inAttribute: false)
            }
        }
        self.append("</\(tag)>")
    }

    private mutating func append(_ text: String) { self.bytes += text.utf8 }

    private mutating func append(escaping text: String, inAttribute: Bool) {
        Self.append(text, inAttribute: inAttribute, to: &self.bytes)
    }

    /// Appends text as a document may have it between its tags, or in an attribute.
    package static func append(_ text: String, inAttribute: Bool = false, to bytes: inout Bytes) {
        for byte in text.utf8 {
            switch byte {
            // U+FFFE and U+FFFF, which no document may have: the replacement character.
            case 0xBE...0xBF where bytes.suffix(2) == [0xEF, 0xBF]: bytes.append(0xBD)
            case UInt8(ascii: "&"): bytes += "&amp;".utf8
            case UInt8(ascii: "<"): bytes += "&lt;".utf8
            case UInt8(ascii: ">"): bytes += "&gt;".utf8
            case UInt8(ascii: "\"") where inAttribute: bytes += "&quot;".utf8
            // A reader would make spaces or line feeds of these.
            case 0x0D: bytes += "&#13;".utf8
            case 0x09 where inAttribute: bytes += "&#9;".utf8
            case 0x0A where inAttribute: bytes += "&#10;".utf8
            default: bytes.append(byte)
            }
        }
    }
}
