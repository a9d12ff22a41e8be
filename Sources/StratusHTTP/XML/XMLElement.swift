/// A name with its namespace, as the declarations around it resolve it.
package struct XMLName: Sendable, Hashable {
    /// Empty: in no namespace.
    package var namespace: String
    package var local: String

    package init(_ namespace: String, _ local: String) {
        self.namespace = namespace
        self.local = local
    }
}

/// An element of a document, with everything in it.
package struct XMLElement: Sendable, Hashable {
    package struct Attribute: Sendable, Hashable {
        package var name: XMLName
        package var value: String

        package init(_ name: XMLName, _ value: String) {
            self.name = name
            self.value = value
        }
    }

    package enum Node: Sendable, Hashable {
        case element(XMLElement)
        case text(String)
    }

    package var name: XMLName
    /// In the order written, no name twice. Declarations of namespaces are not among them.
    package var attributes: [Attribute]
    /// No two texts stand beside each other, and none is empty.
    package var children: [Node]

    package init(_ name: XMLName, attributes: [Attribute] = [], children: [Node] = []) {
        self.name = name
        self.attributes = attributes
        self.children = children
    }

    package var elements: [XMLElement] {
        self.children.compactMap { if case .element(let element) = $0 { element } else { nil } }
    }

    /// The first element in it that has the name.
    package func element(_ name: XMLName) -> XMLElement? {
        for case .element(let element) in self.children where element.name == name {
            return element
        }
        return nil
    }

    /// Its own text, without that of the elements in it.
    package var text: String {
        self.children.reduce(into: "") { if case .text(let text) = $1 { $0 += text } }
    }
}

/// The limits of one document.
package struct XMLLimits: Sendable, Equatable {
    /// Bytes.
    package var sizeMax = 256 << 10
    /// Elements within each other.
    package var depthMax = 32
    package var elementCountMax = 10_000
    /// Attributes of one element, declarations of namespaces included.
    package var attributeCountMax = 64
    /// Bytes of one name, prefix included, and of one attribute's value, be it a namespace.
    package var nameSizeMax = 256
    package var valueSizeMax = 1_024
    /// Prefixes that have a namespace at one place.
    package var namespaceCountMax = 128

    package init() {}
}

/// Why bytes are no document that this reader takes.
package struct XMLError: Error, Sendable, Hashable {
    package enum Reason: String, Sendable, Hashable, CaseIterable {
        case tooLarge = "the document is too large"
        case tooDeep = "elements are nested too deep"
        case tooManyElements = "too many elements"
        case tooManyAttributes = "an element has too many attributes"
        case tooLong = "a name or an attribute is too long"
        case tooManyNamespaces = "too many namespaces"
        case encoding = "the document is not UTF-8"
        case documentType = "document types are not allowed"
        case entity = "an entity other than the five of XML"
        case character = "a character that XML does not allow"
        case name = "a name that XML does not allow"
        case namespace = "a prefix without a namespace"
        case attribute = "an attribute that is malformed or stands twice"
        case unclosed = "an element is not closed by its own name"
        case content = "content outside the root element"
        case syntax = "malformed markup"
        case truncated = "the document ends too early"
    }

    package var reason: Reason
    /// Where the reader stopped.
    package var offset: Int

    package init(_ reason: Reason, at offset: Int) {
        self.reason = reason
        self.offset = offset
    }
}
