/// The host that a request is addressed to (RFC 9112 §3.2).
enum HTTPHost {
    /// HTTP/1.1 needs exactly one valid Host; an absolute target must name the same one. HTTP/1.0
    /// may do without.
    ///
    /// - Parameter text: what the line's places are in.
    static func check(
        _ headers: HeaderFields, _ line: HTTPRequestLine, in text: Span<UInt8>
    ) throws(HTTPRefusal) {
        var host: ArraySlice<UInt8>?
        for field in headers.fields where HTTPMessageFraming.isNamed(headers, field, "host") {
            guard host == nil else { throw .host }
            host = headers.text[field.value]
        }
        if let place = line.authority {
            let authority = Array(copying: text.extracting(place))
            guard Self.isValid(authority[...]) else { throw .target }
            if let host {
                guard host.map(ASCII.lowered) == authority.map(ASCII.lowered) else {
                    throw .host
                }
            }
        }
        guard let host else {
            guard line.minorVersion == 0 else { throw .host }
            return
        }
        guard Self.isValid(host) else { throw .host }
    }

    /// The common case is a name alone.
    static func isValid(_ host: Span<UInt8>) -> Bool {
        var end = 0
        while end < host.count, HTTPCharacters.host.contains(host[end]) { end += 1 }
        if end == host.count, end > 0, end <= 255 { return true }
        return Self.isValid(Array(copying: host)[...])
    }

    /// A name, an IPv4 address, or an IPv6 address in brackets; perhaps a port. No user, no path.
    static func isValid(_ host: ArraySlice<UInt8>) -> Bool {
        var rest = host
        if rest.first == 0x5B {
            guard let close = rest.firstIndex(of: 0x5D), close > rest.startIndex + 2 else {
                return false
            }
            let address = rest[(rest.startIndex + 1)..<close]
            guard address.allSatisfy({ ASCII.hexValue($0) != nil || $0 == 0x3A || $0 == 0x2E })
            else { return false }
            rest = rest[(close + 1)...]
        } else {
            let name = rest.prefix { HTTPCharacters.host.contains($0) }
            guard !name.isEmpty, name.count <= 255 else { return false }
            rest = rest[name.endIndex...]
        }
        guard !rest.isEmpty else { return true }
        let port = rest.dropFirst()
        guard rest.first == 0x3A, port.count <= 5, port.allSatisfy(ASCII.isDigit) else {
            return false
        }
        // `host:` with nothing behind is allowed by RFC 3986 and means the default.
        return port.reduce(0) { $0 * 10 + Int($1 - 0x30) } <= 65_535
    }
}
