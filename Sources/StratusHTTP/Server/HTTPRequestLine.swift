/// `method SP target SP version` (RFC 9112 §3), with exactly these two spaces.
struct HTTPRequestLine: Sendable {
    /// Places in the head.
    let method: Range<Int>
    let target: Range<Int>
    /// Empty where an absolute target names the root without a path.
    let path: Range<Int>
    let query: Range<Int>?
    /// The authority of a target in absolute form; it must agree with Host.
    let authority: Range<Int>?
    let minorVersion: Int
    let isHead: Bool

    /// - Parameter start: where the line begins in the head.
    init(_ line: Span<UInt8>, at start: Int = 0) throws(HTTPRefusal) {
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
        let method = line.extracting(0..<methodEnd)
        // A tunnel is not ours to open, and a request sent back whole shows its credentials.
        guard methodEnd <= 20, !Self.equals(method, "CONNECT"), !Self.equals(method, "TRACE") else {
            throw .method
        }
        self.method = start..<(start + methodEnd)
        self.target = (start + methodEnd + 1)..<(start + targetEnd)
        self.isHead = Self.equals(method, "HEAD")

        var from = methodEnd + 1
        var authority: Range<Int>?
        if line[from] != 0x2F {
            if targetEnd == from + 1, line[from] == 0x2A {
                guard Self.equals(method, "OPTIONS") else { throw .target }
                (self.path, self.query, self.authority) = (self.target, nil, nil)
                return
            }
            let authorityStart = try Self.afterScheme(line.extracting(from..<targetEnd)) + from
            from = authorityStart
            while from < targetEnd, line[from] != 0x2F, line[from] != 0x3F { from += 1 }
            authority = (start + authorityStart)..<(start + from)
        }
        var pathEnd = from
        while pathEnd < targetEnd, line[pathEnd] != 0x3F { pathEnd += 1 }
        self.path = (start + from)..<(start + pathEnd)
        self.query =
            pathEnd < targetEnd ? (start + pathEnd + 1)..<(start + targetEnd) : nil
        self.authority = authority
    }

    /// - Parameter text: the head that the line begins.
    func head(_ text: Span<UInt8>, _ headers: HeaderFields) -> RequestHead {
        RequestHead(
            method: Self.string(text, self.method),
            // `http://host` and `http://host?query` name the root.
            path: self.path.isEmpty ? "/" : Self.string(text, self.path),
            query: self.query.map { Self.string(text, $0) }, minorVersion: self.minorVersion,
            headers: headers)
    }

    private static func equals(_ method: Span<UInt8>, _ name: StaticString) -> Bool {
        guard method.count == name.utf8CodeUnitCount else { return false }
        // Reads within a literal's own length.
        for at in 0..<method.count where unsafe method[at] != name.utf8Start[at] { return false }
        return true
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
