import StratusModel

/// Assembles the head of an HTTP/2 answer from its decoded fields (RFC 9113 §8.3.2), within the
/// limits of an HTTP/1.1 answer here.
package struct ResponseHeadAssembly: Sendable {
    private let limits: HTTPLimits
    private var status: Int?
    private var text: Bytes = []
    private var fields: [HeaderFields.Field] = []
    private var refusal: HTTPRefusal?

    package init(_ limits: HTTPLimits) { self.limits = limits }

    package mutating func add(name: Span<UInt8>, value: Span<UInt8>) {
        guard self.refusal == nil else { return }
        do throws(HTTPRefusal) {
            try self.take(Bytes(copying: name), Bytes(copying: value))
        } catch {
            self.refusal = error
        }
    }

    package func finish() throws(HTTPRefusal) -> ResponseHead {
        if let refusal = self.refusal { throw refusal }
        guard let status = self.status else { throw .requestLine }
        return ResponseHead(
            status: status, headers: HeaderFields(text: self.text, fields: self.fields))
    }

    private mutating func take(_ name: Bytes, _ value: Bytes) throws(HTTPRefusal) {
        guard self.text.count + name.count + value.count <= self.limits.headerSizeMax.raw else {
            throw .headersTooLarge
        }
        guard self.fields.count < self.limits.headerCountMax else { throw .tooManyHeaders }
        if name.first == 0x3A {
            guard name.elementsEqual(":status".utf8), self.status == nil, self.fields.isEmpty,
                value.count == 3, value.allSatisfy(ASCII.isDigit), value[0] != 0x30
            else { throw .headerLine }
            self.status = value.reduce(0) { $0 * 10 + Int($1 - 0x30) }
            return
        }
        guard !name.isEmpty, name.allSatisfy(HTTPCharacters.token.contains),
            value.allSatisfy({ $0 >= 0x20 && $0 != 0x7F || $0 == 0x09 })
        else { throw .headerLine }
        let start = self.text.count
        self.text += name
        let middle = self.text.count
        self.text += value
        self.fields.append(
            HeaderFields.Field(name: start..<middle, value: middle..<self.text.count))
    }
}
