/// A complete head, and everything that was decided of it.
struct JudgedHead: Sendable {
    let view: RequestView
    let line: HTTPRequestLine
    let framing: HTTPMessageFraming?
    let keepsAlive: Bool
    let expectsContinue: Bool

    /// - Parameter text: the whole head.
    init(
        _ text: Span<UInt8>, _ line: HTTPRequestLine, _ fields: [HeaderFields.Field]
    ) throws(HTTPRefusal) {
        // Nearly every head has one host, and nothing that can be read in two ways. The others are
        // looked at again, rule by rule.
        var places = Places()
        for index in fields.indices { places.note(text, fields[index], index) }
        let host = places.host.map { fields[$0].value }
        if line.authority != nil || places.isOdd {
            let headers = HeaderFields(text: Array(copying: text), fields: fields)
            try HTTPHost.check(headers, line, in: text)
            self.framing = try HTTPMessageFraming.read(headers, minorVersion: line.minorVersion)
            let connection = try HTTPConnectionFields(headers, minorVersion: line.minorVersion)
            self.keepsAlive = connection.keepsAlive
            self.expectsContinue = connection.expectsContinue
        } else {
            if let host {
                guard HTTPHost.isValid(text.extracting(host)) else { throw .host }
            } else if line.minorVersion != 0 {
                throw .host
            }
            var length: Int?
            if let place = places.length {
                length = try HTTPMessageFraming.length(text.extracting(fields[place].value))
            }
            self.framing = length.map { .length($0) }
            self.keepsAlive = line.minorVersion == 1
            self.expectsContinue = false
        }
        var length = 0
        if case .length(let declared) = self.framing { length = declared }
        let isPlain = self.framing != .chunked && !self.expectsContinue
        self.line = line
        self.view = RequestView(
            method: line.method, target: line.target, path: line.path, query: line.query,
            origin: places.origin.map { fields[$0].value },
            authorization: places.authorization.map { fields[$0].value },
            head: 0..<text.count, body: text.count..<(text.count + length), isPlain: isPlain,
            fields: fields)
    }

    /// The fields that anybody asks for, found in one pass.
    private struct Places {
        var host: Int?
        var length: Int?
        var origin: Int?
        var authorization: Int?
        /// A rule has to be looked up: a field twice, a coding, an expectation, a connection.
        var isOdd = false

        mutating func note(_ text: Span<UInt8>, _ field: HeaderFields.Field, _ index: Int) {
            func isNamed(_ name: StaticString) -> Bool {
                HTTPMessageFraming.isNamed(text, field, name)
            }
            switch field.nameCount {
            case 4 where isNamed("host"):
                if self.host != nil { self.isOdd = true }
                self.host = index
            case 6:
                if isNamed("expect") { self.isOdd = true }
                if self.origin == nil, isNamed("origin") { self.origin = index }
            case 10 where isNamed("connection"): self.isOdd = true
            case 13 where self.authorization == nil && isNamed("authorization"):
                self.authorization = index
            case 14 where isNamed("content-length"):
                if self.length != nil { self.isOdd = true }
                self.length = index
            case 16 where isNamed("content-encoding"): self.isOdd = true
            case 17 where isNamed("transfer-encoding"): self.isOdd = true
            default: break
            }
        }
    }
}
