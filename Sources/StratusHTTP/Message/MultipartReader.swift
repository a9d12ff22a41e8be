package import StratusModel

/// Reads `multipart/form-data` (RFC 7578) as it comes, and gives out the content of its first file.
///
/// A file is a part whose `Content-Disposition` has a `filename`. Parts before it are skipped,
/// whatever follows it is read to its end and not kept. Holds no more than one piece of input, a
/// delimiter and the headers of one part.
package struct MultipartReader: Sendable {
    package enum Refusal: Error, Sendable, Equatable {
        /// A line that should be a delimiter or a header is none.
        case malformed
        case headersTooLarge, tooManyParts
        /// The end of the body came before the last delimiter.
        case truncated
        case noFile
    }

    package static let headerSizeMax = 8_192
    package static let partCountMax = 64

    private enum Place { case content, afterDelimiter, headers, epilogue }
    private enum Part { case preamble, skipped, file }

    /// CR LF, two hyphens, the boundary.
    private let delimiter: Bytes
    private var place = Place.content
    private var part = Part.preamble
    private var partCount = 0
    private var hasFile = false
    private var isFileWhole = false
    /// The bytes that are not decided yet. They begin with a line's end, which the first delimiter
    /// may go without.
    private var pending: Bytes = [0x0D, 0x0A]

    /// The boundary that a `Content-Type` names. Nil: another type, or a boundary that none may
    /// have.
    package static func boundary(of contentType: String) -> String? {
        guard let header = HeaderParameters(contentType), header.value == "multipart/form-data",
            let boundary = header["boundary"], Self.isBoundary(boundary)
        else { return nil }
        return boundary
    }

    /// RFC 2046 §5.1.1: 1 to 70 characters, the last no space.
    private static func isBoundary(_ text: String) -> Bool {
        let others = Set("'()+_,-./:=? ".utf8)
        return (1...70).contains(text.utf8.count) && text.utf8.last != 0x20
            && text.utf8.allSatisfy { byte in
                ASCII.isDigit(byte) || ASCII.lowered(byte) &- 0x61 < 26 || others.contains(byte)
            }
    }

    /// - Parameter boundary: as ``boundary(of:)`` gives it.
    package init(boundary: String) {
        precondition(Self.isBoundary(boundary), "a boundary that none may have")
        self.delimiter = [0x0D, 0x0A, 0x2D, 0x2D] + Bytes(boundary.utf8)
    }

    /// Takes the next bytes of the body.
    ///
    /// - Returns: what they hold of the file, which may be nothing.
    package mutating func read(_ bytes: some Collection<UInt8>) throws(Refusal) -> Bytes {
        self.pending.append(contentsOf: bytes)
        var file = Bytes()
        var at = 0
        loop: while true {
            switch self.place {
            case .content:
                let end = self.delimiterStart(from: at)
                if self.part == .file { file.append(contentsOf: self.pending[at..<end.offset]) }
                at = end.offset
                guard end.isWhole else { break loop }
                at += self.delimiter.count
                if self.part == .file { self.isFileWhole = true }
                self.place = .afterDelimiter
            case .afterDelimiter:
                guard let end = try self.delimiterEnd(from: at) else { break loop }
                at = end
            case .headers:
                guard let end = try self.headersEnd(from: at) else { break loop }
                at = end
            case .epilogue:
                at = self.pending.count
                break loop
            }
        }
        self.pending.removeFirst(at)
        return file
    }

    /// The body has ended. Throws unless it was whole and had a file.
    package func finish() throws(Refusal) {
        guard self.place == .epilogue else { throw .truncated }
        guard self.hasFile, self.isFileWhole else { throw .noFile }
    }

    // MARK: Places

    /// The offset where the next delimiter begins, or where one may begin whose rest is to come.
    private func delimiterStart(from start: Int) -> (offset: Int, isWhole: Bool) {
        var offset = start
        while offset < self.pending.count {
            if self.pending[offset] == 0x0D {
                let known = min(self.delimiter.count, self.pending.count - offset)
                if self.pending[offset..<(offset + known)] == self.delimiter[..<known] {
                    return (offset, known == self.delimiter.count)
                }
            }
            offset += 1
        }
        return (offset, false)
    }

    /// Behind a delimiter: two hyphens for the last, else spaces and the end of the line.
    private mutating func delimiterEnd(from start: Int) throws(Refusal) -> Int? {
        let rest = self.pending[start...]
        if rest.first == 0x2D {
            guard rest.count > 1 else { return nil }
            guard rest[start + 1] == 0x2D else { throw .malformed }
            self.place = .epilogue
            return start + 2
        }
        let line = rest.prefix(128)
        let spaces = line.prefix { $0 == 0x20 || $0 == 0x09 }.count
        guard spaces < 128 else { throw .malformed }
        let end = start + spaces
        guard end < self.pending.count else { return nil }
        guard self.pending[end] == 0x0D else { throw .malformed }
        guard end + 1 < self.pending.count else { return nil }
        guard self.pending[end + 1] == 0x0A else { throw .malformed }
        self.partCount += 1
        guard self.partCount <= Self.partCountMax else { throw .tooManyParts }
        self.place = .headers
        return end + 2
    }

    /// The headers of a part, up to their empty line.
    private mutating func headersEnd(from start: Int) throws(Refusal) -> Int? {
        var lines: [Bytes] = []
        var at = start
        while true {
            guard let feed = self.pending[at...].firstIndex(of: 0x0A) else {
                guard self.pending.count - start <= Self.headerSizeMax else {
                    throw .headersTooLarge
                }
                return nil
            }
            guard feed + 1 - start <= Self.headerSizeMax else { throw .headersTooLarge }
            guard feed > at, self.pending[feed - 1] == 0x0D else { throw .malformed }
            let line = Bytes(self.pending[at..<(feed - 1)])
            at = feed + 1
            if line.isEmpty { break }
            lines.append(line)
        }
        let isFile = try Self.isFile(lines) && !self.hasFile
        self.part = isFile ? .file : .skipped
        self.hasFile = self.hasFile || isFile
        self.place = .content
        return at
    }

    /// Whether a part with these headers is a file.
    private static func isFile(_ lines: [Bytes]) throws(Refusal) -> Bool {
        var disposition: HeaderParameters?
        for line in lines {
            guard let colon = line.firstIndex(of: 0x3A), colon > 0,
                line[..<colon].allSatisfy(HTTPCharacters.token.contains),
                let value = String(validating: line[(colon + 1)...], as: UTF8.self),
                !line.contains(0x0D), !line.contains(0)
            else { throw .malformed }
            let name = String(decoding: line[..<colon], as: UTF8.self)
            guard ASCII.equalIgnoringCase(name, "content-disposition") else { continue }
            // A part says once what it is.
            guard disposition == nil, let parameters = HeaderParameters(value),
                parameters.value == "form-data"
            else { throw .malformed }
            disposition = parameters
        }
        guard let disposition else { throw .malformed }
        return disposition["filename"] != nil || disposition["filename*"] != nil
    }
}
