import StratusModel

/// Assembles the head of an HTTP/2 request from its decoded fields (RFC 9113 §8), and checks it
/// against the rules that an HTTP/1.1 head has to obey here.
///
/// Fields are counted as they come, so a small block that decodes to a large head costs no more
/// than the limits. The first broken rule is remembered, and what follows is dropped.
package struct RequestHeadAssembly: Sendable {
    /// A complete head and what it says about the body.
    package struct Request: Sendable, Equatable {
        package var head: RequestHead
        /// Nil where the head declares none.
        package var bodyLength: Int?
        package var expectsContinue: Bool
    }

    private enum Pseudo: Int, CaseIterable { case method, scheme, authority, path }

    private let limits: HTTPLimits
    private var text: Bytes = []
    private var fields: [HeaderFields.Field] = []
    private var pseudo: [Bytes?] = Array(repeating: nil, count: 4)
    private var cookies: [Bytes] = []
    private var size = 0
    private var count = 0
    package private(set) var refusal: HTTPRefusal?

    package init(_ limits: HTTPLimits) { self.limits = limits }

    /// Whether the head is so far beyond the limits that the stream may be ended without an answer.
    package var isFarTooLarge: Bool {
        self.size > 4 * self.limits.headerSizeMax.raw || self.count > 4 * self.limits.headerCountMax
    }

    /// Takes the next field in the order received.
    package mutating func add(name: Span<UInt8>, value: Span<UInt8>) {
        self.size += name.count + value.count + 4
        self.count += 1
        guard self.refusal == nil else { return }
        do throws(HTTPRefusal) {
            if !name.isEmpty, name[0] == 0x3A {
                try self.addPseudo(name, value)
            } else {
                try self.addLine(name, value)
            }
        } catch {
            self.refusal = error
            self.text = []
            self.fields = []
            self.cookies = []
        }
    }

    /// The head, once all of its fields are here.
    package mutating func finish() throws(HTTPRefusal) -> Request {
        if let refusal = self.refusal { throw refusal }
        guard let method = self.pseudo[Pseudo.method.rawValue] else { throw .requestLine }
        // A tunnel has neither scheme nor path, and is not ours to open.
        if method.elementsEqual("CONNECT".utf8) { throw .method }
        guard let scheme = self.pseudo[Pseudo.scheme.rawValue],
            let path = self.pseudo[Pseudo.path.rawValue], !path.isEmpty
        else { throw .requestLine }
        guard scheme.elementsEqual("https".utf8) || scheme.elementsEqual("http".utf8) else {
            throw .target
        }
        let text = method + [0x20] + path + Array(" HTTP/1.1".utf8)
        let line = try HTTPRequestLine(text.span)
        guard line.authority == nil else { throw .target }
        for cookie in self.joinedCookies { self.append(Array("cookie".utf8), cookie) }
        try self.settleHost()
        let headers = HeaderFields(text: self.text, fields: self.fields)
        try HTTPHost.check(headers, line, in: text.span)
        let framing = try HTTPMessageFraming.read(headers, minorVersion: 1)
        let connection = try HTTPConnectionFields(headers, minorVersion: 1)
        var length: Int?
        if case .length(let declared) = framing { length = declared }
        return Request(
            head: line.head(text.span, headers), bodyLength: length,
            expectsContinue: connection.expectsContinue)
    }

    private mutating func addPseudo(
        _ name: Span<UInt8>, _ value: Span<UInt8>
    ) throws(HTTPRefusal) {
        // They stand before all others (RFC 9113 §8.3).
        guard self.fields.isEmpty, self.cookies.isEmpty else { throw .headerLine }
        let pseudo: Pseudo
        switch String(decoding: Bytes(copying: name), as: UTF8.self) {
        case ":method": pseudo = .method
        case ":scheme": pseudo = .scheme
        case ":authority": pseudo = .authority
        case ":path": pseudo = .path
        default: throw .headerLine
        }
        guard self.pseudo[pseudo.rawValue] == nil else { throw .headerLine }
        if pseudo == .path || pseudo == .method {
            guard value.count <= self.limits.requestLineSizeMax.raw else {
                throw .requestLineTooLong
            }
        }
        self.pseudo[pseudo.rawValue] = Bytes(copying: value)
        guard self.size <= self.limits.headerSizeMax.raw + self.limits.requestLineSizeMax.raw
        else { throw .headersTooLarge }
    }

    private mutating func addLine(
        _ name: Span<UInt8>, _ value: Span<UInt8>
    ) throws(HTTPRefusal) {
        guard self.text.count + name.count + value.count <= self.limits.headerSizeMax.raw else {
            throw .headersTooLarge
        }
        guard self.fields.count + self.cookies.count < self.limits.headerCountMax else {
            throw .tooManyHeaders
        }
        guard !name.isEmpty else { throw .headerLine }
        for at in 0..<name.count {
            // Lower case only (RFC 9113 §8.2.1).
            guard HTTPCharacters.token.contains(name[at]), name[at] == ASCII.lowered(name[at])
            else { throw .headerLine }
        }
        for at in 0..<value.count {
            guard value[at] >= 0x20 && value[at] < 0x7F || value[at] == 0x09 else {
                throw .headerLine
            }
        }
        if !value.isEmpty {
            for end in [value[0], value[value.count - 1]] where end == 0x20 || end == 0x09 {
                throw .headerLine
            }
        }
        let name = Bytes(copying: name)
        guard !Self.isAboutConnections(name, value) else { throw .headerLine }
        if name.elementsEqual("cookie".utf8) {
            return self.cookies.append(Bytes(copying: value))
        }
        self.append(name, Bytes(copying: value))
    }

    /// Whether the field concerns HTTP/1.1's own connection. Such a field has no meaning here, and
    /// a harmful one behind a translator (RFC 9113 §8.2.2).
    private static func isAboutConnections(_ name: Bytes, _ value: Span<UInt8>) -> Bool {
        switch name.count {
        case 2 where name.elementsEqual("te".utf8):
            !Bytes(copying: value).elementsEqual("trailers".utf8)
        case 7: name.elementsEqual("upgrade".utf8)
        case 10: name.elementsEqual("connection".utf8) || name.elementsEqual("keep-alive".utf8)
        case 16: name.elementsEqual("proxy-connection".utf8)
        case 17: name.elementsEqual("transfer-encoding".utf8)
        default: false
        }
    }

    /// Crumbs are one field to everybody behind this (RFC 9113 §8.2.3).
    private var joinedCookies: [Bytes] {
        guard let first = self.cookies.first else { return [] }
        return [self.cookies.dropFirst().reduce(into: first) { $0 += [0x3B, 0x20] + $1 }]
    }

    /// Everybody behind this reads `host`.
    private mutating func settleHost() throws(HTTPRefusal) {
        guard let authority = self.pseudo[Pseudo.authority.rawValue] else { return }
        let headers = HeaderFields(text: self.text, fields: self.fields)
        let hosts = self.fields.filter { HTTPMessageFraming.isNamed(headers, $0, "host") }
        guard hosts.isEmpty else {
            let names = hosts.map { self.text[$0.value].map(ASCII.lowered) }
            guard names.allSatisfy({ $0 == authority.map(ASCII.lowered) }) else { throw .host }
            return
        }
        self.append(Array("host".utf8), authority)
    }

    private mutating func append(_ name: Bytes, _ value: Bytes) {
        let start = self.text.count
        self.text += name
        let middle = self.text.count
        self.text += value
        self.fields.append(
            HeaderFields.Field(name: start..<middle, value: middle..<self.text.count))
    }
}
