import StratusModel

/// Reads the lines of a head, or of a trailer, as they become complete.
///
/// What it decides depends on the bytes alone and never on how they were cut into reads: a line is
/// judged when its line feed is there, or when it is too long to wait for it.
struct HTTPHeadParser: Sendable {
    private(set) var firstLine: Range<Int>?
    private(set) var fields: [HeaderFields.Field] = []
    /// Relative to the head's first byte, like every offset here.
    private var lineStart = 0
    private var scanned = 0
    /// The offset where the header lines begin, for their size limit.
    private var headerStart = 0
    private var awaitsFirstLine: Bool
    /// A client's stray line end after the last body (RFC 9112 §2.2): one is forgiven.
    private var mayStartWithEmptyLine: Bool
    private let firstLineSizeMax: Int
    private let headerSizeMax: Int
    private let headerCountMax: Int

    /// For a request or a response.
    init(_ limits: HTTPLimits, forgivesEmptyLine: Bool) {
        self.awaitsFirstLine = true
        self.mayStartWithEmptyLine = forgivesEmptyLine
        self.firstLineSizeMax = limits.requestLineSizeMax.raw
        self.headerSizeMax = limits.headerSizeMax.raw
        self.headerCountMax = limits.headerCountMax
    }

    /// For the trailer after the last chunk.
    init(trailerWithin limits: HTTPLimits) {
        self.awaitsFirstLine = false
        self.mayStartWithEmptyLine = false
        self.firstLineSizeMax = 0
        self.headerSizeMax = limits.trailerSizeMax.raw
        self.headerCountMax = limits.headerCountMax
    }

    /// Reads on. `head` starts at the head's first byte and holds all of it that has arrived.
    ///
    /// - Parameter judgeFirstLine: called once, with the first line and where it begins.
    /// - Returns: the length of the head with its empty line; nil while it is not all there.
    mutating func advance(
        _ head: Span<UInt8>,
        _ judgeFirstLine: (_ line: Span<UInt8>, _ start: Int) throws(HTTPRefusal) -> Void
    ) throws(HTTPRefusal) -> Int? {
        // A UInt8 has no padding that could be read.
        let raw = unsafe head.bytes
        while true {
            let feed = Self.lineFeed(head, raw, from: self.scanned)
            try self.checkSize(feed.map { $0 + 1 } ?? head.count)
            guard let feed else {
                self.scanned = head.count
                return nil
            }
            guard feed > self.lineStart, head[feed - 1] == 0x0D else { throw .lineEnd }
            let line = self.lineStart..<(feed - 1)
            self.scanned = feed + 1
            self.lineStart = feed + 1
            if self.awaitsFirstLine {
                if line.isEmpty, self.mayStartWithEmptyLine {
                    self.mayStartWithEmptyLine = false
                    continue
                }
                self.awaitsFirstLine = false
                self.firstLine = line
                self.headerStart = feed + 1
                try judgeFirstLine(head.extracting(line), line.lowerBound)
                // Enough for what curl or a server's client sends; a browser's doubles it once.
                self.fields.reserveCapacity(8)
            } else if line.isEmpty {
                return feed + 1
            } else {
                try self.field(head, raw, line)
            }
        }
    }

    /// `end`: of the line as far as it is known, its line end included.
    private func checkSize(_ end: Int) throws(HTTPRefusal) {
        if self.awaitsFirstLine {
            guard end - self.lineStart <= self.firstLineSizeMax + 2 else {
                throw .requestLineTooLong
            }
        } else {
            guard end - self.headerStart <= self.headerSizeMax else { throw .headersTooLarge }
        }
    }

    @inline(__always)
    private static func lineFeed(_ head: Span<UInt8>, _ raw: RawSpan, from start: Int) -> Int? {
        var at = start
        while at + 8 <= head.count {
            let found = WordScan.equal(raw.word(at: at), 0x0A)
            if found != 0 { return at + found.trailingZeroBitCount >> 3 }
            at += 8
        }
        while at < head.count {
            if head[at] == 0x0A { return at }
            at += 1
        }
        return nil
    }

    /// `name ":" OWS value OWS` (RFC 9112 §5), and nothing more generous.
    private mutating func field(_ head: Span<UInt8>, _ raw: RawSpan, _ line: Range<Int>)
        throws(HTTPRefusal)
    {
        guard self.fields.count < self.headerCountMax else { throw .tooManyHeaders }
        let first = head[line.lowerBound]
        guard first != 0x20, first != 0x09 else { throw .foldedHeader }
        var at = line.lowerBound
        while at < line.upperBound, HTTPCharacters.token.contains(head[at]) { at += 1 }
        guard at > line.lowerBound, at < line.upperBound, head[at] == 0x3A else {
            throw head[min(at, line.upperBound - 1)] == 0x0D ? .lineEnd : .headerLine
        }
        let name = line.lowerBound..<at
        var start = at + 1
        var end = line.upperBound
        while start < end, head[start] == 0x20 || head[start] == 0x09 { start += 1 }
        while start < end, head[end - 1] == 0x20 || head[end - 1] == 0x09 { end -= 1 }
        at = start
        while at < end {
            if at + 8 <= end {
                let word = raw.word(at: at)
                let odd =
                    WordScan.below(word, 0x20) | WordScan.equal(word, 0x7F)
                    | (word & WordScan.highs)
                if odd == 0 {
                    at += 8
                    continue
                }
            }
            let byte = head[at]
            // Text beyond ASCII has no agreed meaning in a header: refused, not guessed.
            guard byte >= 0x20 && byte < 0x7F || byte == 0x09 else {
                throw byte == 0x0D ? .lineEnd : .headerLine
            }
            at += 1
        }
        self.fields.append(HeaderFields.Field(name: name, value: start..<end))
    }
}
