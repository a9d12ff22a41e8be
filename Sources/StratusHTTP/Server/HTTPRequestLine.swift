/// `method SP target SP version` (RFC 9112 §3), with exactly these two spaces.
struct HTTPRequestLine: Sendable {
    let method: String
    let path: String
    let query: String?
    /// The authority of a target in absolute form; it must agree with Host.
    let authority: String?
    let minorVersion: Int

    init(_ line: Span<UInt8>) throws(HTTPRefusal) {
        var methodEnd = 0
        while methodEnd < line.count, HTTPCharacters.token.contains(line[methodEnd]) {
            methodEnd += 1
        }
        guard methodEnd > 0, methodEnd < line.count, line[methodEnd] == 0x20 else {
            throw Self.oddByte(line, methodEnd)
        }
        var targetEnd = methodEnd + 1
        while targetEnd < line.count, HTTPCharacters.target.contains(line[targetEnd]) {
            targetEnd += 1
        }
        guard targetEnd > methodEnd + 1 else { throw Self.oddByte(line, targetEnd) }
        guard targetEnd < line.count, line[targetEnd] == 0x20 else {
            if targetEnd < line.count, line[targetEnd] > 0x20 { throw .target }
            throw Self.oddByte(line, targetEnd)
        }
        self.minorVersion = try Self.version(line.extracting((targetEnd + 1)..<line.count))
        self.method = Self.string(line, 0..<methodEnd)
        // A tunnel is not ours to open, and a request sent back whole shows its credentials.
        guard self.method != "CONNECT", self.method != "TRACE", methodEnd <= 20 else {
            throw .method
        }

        var start = methodEnd + 1
        var authority: String?
        if line[start] != 0x2F {
            if targetEnd == start + 1, line[start] == 0x2A {
                guard self.method == "OPTIONS" else { throw .target }
                (self.path, self.query, self.authority) = ("*", nil, nil)
                return
            }
            let authorityStart = try Self.afterScheme(line.extracting(start..<targetEnd)) + start
            start = authorityStart
            while start < targetEnd, line[start] != 0x2F, line[start] != 0x3F { start += 1 }
            authority = Self.string(line, authorityStart..<start)
        }
        var pathEnd = start
        while pathEnd < targetEnd, line[pathEnd] != 0x3F { pathEnd += 1 }
        // `http://host` and `http://host?query` name the root.
        self.path = pathEnd == start ? "/" : Self.string(line, start..<pathEnd)
        self.query =
            pathEnd < targetEnd ? Self.string(line, (pathEnd + 1)..<targetEnd) : nil
        self.authority = authority
    }

    private static func version(_ text: Span<UInt8>) throws(HTTPRefusal) -> Int {
        let name: InlineArray<5, UInt8> = [0x48, 0x54, 0x54, 0x50, 0x2F]
        guard text.count == 8, ASCII.isDigit(text[5]), text[6] == 0x2E, ASCII.isDigit(text[7])
        else {
            for at in 0..<text.count where text[at] == 0x0D { throw .lineEnd }
            throw .requestLine
        }
        for at in 0..<5 where text[at] != name[at] { throw .requestLine }
        guard text[5] == 0x31, text[7] <= 0x31 else { throw .version }
        return Int(text[7] - 0x30)
    }

    private static func oddByte(_ line: Span<UInt8>, _ at: Int) -> HTTPRefusal {
        at < line.count && line[at] == 0x0D ? .lineEnd : .requestLine
    }

    /// The offset where the authority of an absolute target begins.
    private static func afterScheme(_ target: Span<UInt8>) throws(HTTPRefusal) -> Int {
        for scheme in ["http://", "https://"] {
            let scheme = scheme.utf8Span.span
            guard target.count > scheme.count else { continue }
            var isEqual = true
            for at in 0..<scheme.count where ASCII.lowered(target[at]) != scheme[at] {
                isEqual = false
            }
            if isEqual { return scheme.count }
        }
        throw .target
    }

    private static func string(_ line: Span<UInt8>, _ range: Range<Int>) -> String {
        // Only ASCII passed the checks above.
        unsafe String(
            copying: UTF8Span(unchecked: line.extracting(range), isKnownASCII: true))
    }
}
