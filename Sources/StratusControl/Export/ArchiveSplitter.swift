import StratusAdminModel
package import StratusModel

/// Takes an archive apart as it comes: lines that name files to fetch, and all others, which are
/// shown as they are. No other line is ever whole in memory.
package struct ArchiveSplitter: Sendable {
    package enum Refusal: Error, Sendable, Equatable {
        /// The node is of a version that names no files.
        case namesNoFiles
        /// What came is no archive.
        case malformed
    }

    package struct Part: Sendable, Equatable {
        /// Bytes of the archive itself.
        package var shown = Bytes()
        /// Whole lines that name files.
        package var files: [Bytes] = []
    }

    private enum State: Sendable {
        /// The first line, which says whether the node names files.
        case head(Bytes)
        /// The beginning of a line, as far as it does not tell which kind it is.
        case beginning(Bytes)
        case file(Bytes)
        case other
    }

    /// A head, or a line that names a file, has less.
    static let lineSizeMax = 64 << 10
    private static let mark = FetchLine.mark

    private var state = State.head([])

    package init() {}

    package mutating func add(_ piece: Bytes) throws(Refusal) -> Part {
        var part = Part()
        var rest = piece[...]
        while !rest.isEmpty {
            let end = rest.firstIndex(of: 0x0A)
            let text = rest[..<(end ?? rest.endIndex)]
            try self.add(text, endsLine: end != nil, &part)
            rest = end.map { rest[($0 + 1)...] } ?? []
        }
        return part
    }

    /// Nothing more comes.
    package func finish() throws(Refusal) {
        guard case .beginning(let bytes) = self.state, bytes.isEmpty else { throw .malformed }
    }

    private mutating func add(_ text: ArraySlice<UInt8>, endsLine: Bool, _ part: inout Part)
        throws(Refusal)
    {
        switch self.state {
        case .head(let before):
            let line = try Self.joined(before, text)
            self.state = .head(line)
            if endsLine {
                try Self.check(line)
                part.shown += line + [0x0A]
            }
        case .beginning(let before):
            // No longer than the mark and one piece: what is longer is of one kind or the other.
            let line = before + text
            if line.starts(with: Self.mark) {
                self.state = .file([])
                return try self.add(line[...], endsLine: endsLine, &part)
            }
            if !endsLine, Self.mark.starts(with: line) {
                self.state = .beginning(line)
                return
            }
            self.state = .other
            part.shown += line
            if endsLine { part.shown.append(0x0A) }
        case .file(let before):
            let line = try Self.joined(before, text)
            self.state = .file(line)
            if endsLine { part.files.append(line) }
        case .other:
            part.shown += text
            if endsLine { part.shown.append(0x0A) }
        }
        if endsLine { self.state = .beginning([]) }
    }

    private static func joined(_ before: Bytes, _ text: ArraySlice<UInt8>) throws(Refusal) -> Bytes
    {
        guard before.count + text.count <= Self.lineSizeMax else { throw .malformed }
        return before + text
    }

    private static func check(_ head: Bytes) throws(Refusal) {
        guard let head = try? ExportHead(reading: head), head.format != nil else {
            throw .malformed
        }
        guard head.files == true else { throw .namesNoFiles }
    }
}
