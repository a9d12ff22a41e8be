package import StratusModel

/// A request where it lies in the input of its loop: places, and no bytes of its own.
///
/// Places count from the first byte of the head. They are good while the bytes lie there, which is
/// during the call that is given the view and the bytes: nobody keeps a view. What goes on later
/// owns a ``RequestHead`` and a body.
package struct RequestView: Sendable {
    package let method: Range<Int>
    /// The path and the query, as sent.
    package let target: Range<Int>
    package let path: Range<Int>
    package let query: Range<Int>?
    /// The value of the first such field.
    package let origin: Range<Int>?
    package let authorization: Range<Int>?
    /// All of the head, with its empty line.
    package let head: Range<Int>
    /// Where the declared body lies. It need not all have come.
    package let body: Range<Int>
    /// Whether the body's length is declared, and the client sends it unasked.
    let isPlain: Bool
    let fields: [HeaderFields.Field]

    /// Whether all of the request lies in the bytes that begin with its head.
    package func isWhole(in bytes: Span<UInt8>) -> Bool {
        self.isPlain && self.body.upperBound <= bytes.count
    }

    /// Whether a place holds this text.
    package func names(
        _ text: StaticString, at place: Range<Int>, in bytes: Span<UInt8>
    ) -> Bool {
        guard place.count == text.utf8CodeUnitCount else { return false }
        // Reads within a literal's own length.
        for at in 0..<place.count
        where unsafe bytes[place.lowerBound + at] != text.utf8Start[at] {
            return false
        }
        return true
    }

    package func text(_ place: Range<Int>, in bytes: Span<UInt8>) -> String {
        String(decoding: Bytes(copying: bytes.extracting(place)), as: UTF8.self)
    }

    /// Whether the head has a field of that name.
    package func has(_ name: StaticString, in bytes: Span<UInt8>) -> Bool {
        for field in self.fields where HTTPMessageFraming.isNamed(bytes, field, name) {
            return true
        }
        return false
    }
}

extension RequestView {
    /// The same view of a request that came in another form: its parts are laid one after the other
    /// into `bytes`.
    ///
    /// - Returns: nil where it has no path.
    package init?(laying head: RequestHead, body: Bytes, into bytes: inout Bytes) {
        guard head.path.utf8.first == UInt8(ascii: "/") else { return nil }
        bytes.removeAll(keepingCapacity: true)
        bytes += head.method.utf8
        let method = 0..<bytes.count
        bytes.append(0x20)
        let start = bytes.count
        bytes += head.path.utf8
        let path = start..<bytes.count
        var query: Range<Int>?
        if let text = head.query {
            bytes.append(UInt8(ascii: "?"))
            let start = bytes.count
            bytes += text.utf8
            query = start..<bytes.count
        }
        let target = start..<bytes.count
        bytes.append(literal: "\r\n")
        let shift = bytes.count
        bytes += head.headers.text
        let fields = head.headers.fields.map { $0.moved(by: shift) }
        let end = bytes.count
        bytes += body
        func first(_ name: StaticString) -> Range<Int>? {
            fields.first { HTTPMessageFraming.isNamed(bytes.span, $0, name) }?.value
        }
        self.init(
            method: method, target: target, path: path, query: query, origin: first("origin"),
            authorization: first("authorization"), head: 0..<end, body: end..<bytes.count,
            isPlain: true, fields: fields)
    }
}

extension HeaderFields.Field {
    func moved(by count: Int) -> Self {
        Self(
            name: (self.name.lowerBound + count)..<(self.name.upperBound + count),
            value: (self.value.lowerBound + count)..<(self.value.upperBound + count))
    }
}
