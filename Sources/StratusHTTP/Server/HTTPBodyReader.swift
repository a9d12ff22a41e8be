import StratusModel

/// Follows a body's framing: says which of the received bytes are the body's, and where it ends.
struct HTTPBodyReader: Sendable {
    enum Step: Sendable, Equatable {
        case needsMore
        /// These bytes of the input are the body's next.
        case data(Range<Int>)
        case end
    }

    private enum State: Sendable {
        case length(remaining: Int)
        case chunkLine
        case chunkData(remaining: Int)
        case chunkEnd
        case trailer(HTTPHeadParser)
        case finished
    }

    private var state: State
    private let limits: HTTPLimits
    /// Body bytes so far, and the limit on them.
    private(set) var received = 0
    var sizeMax: Int
    /// A chunk line or a trailer that is not all there.
    private var pending = Bytes()
    private var overhead = 0

    init(_ framing: HTTPMessageFraming, limits: HTTPLimits) {
        self.limits = limits
        self.sizeMax = limits.bodySizeMax.raw
        self.state =
            switch framing {
            case .none, .length(0): .finished
            case .length(let count): .length(remaining: count)
            case .chunked: .chunkLine
            }
    }

    var isFinished: Bool {
        if case .finished = self.state { true } else { false }
    }

    /// The bytes left of a body whose length was declared; nil if only its end will tell.
    var remaining: Int? {
        switch self.state {
        case .length(let remaining): remaining
        case .finished: 0
        case .chunkLine, .chunkData, .chunkEnd, .trailer: nil
        }
    }

    mutating func next(_ input: Span<UInt8>, _ at: inout Int) throws(HTTPRefusal) -> Step {
        while true {
            switch self.state {
            case .finished:
                return .end
            case .length(let remaining):
                guard self.received + remaining <= self.sizeMax else { throw .bodyTooLarge }
                guard at < input.count else { return .needsMore }
                let data = self.take(remaining, of: input, &at)
                let left = remaining - data.count
                self.state = left == 0 ? .finished : .length(remaining: left)
                return .data(data)
            case .chunkLine:
                guard try self.takeLine(input, &at) else { return .needsMore }
                let size = try Self.chunkSize(self.pending.span)
                try self.spend(self.pending.count, for: size)
                self.pending.removeAll(keepingCapacity: true)
                if size == 0 {
                    self.state = .trailer(HTTPHeadParser(trailerWithin: self.limits))
                } else {
                    guard size <= self.sizeMax - self.received else { throw .bodyTooLarge }
                    self.state = .chunkData(remaining: size)
                }
            case .chunkData(let remaining):
                guard at < input.count else { return .needsMore }
                let data = self.take(remaining, of: input, &at)
                let left = remaining - data.count
                self.state = left == 0 ? .chunkEnd : .chunkData(remaining: left)
                return .data(data)
            case .chunkEnd:
                guard at < input.count else { return .needsMore }
                guard input[at] == (self.pending.isEmpty ? 0x0D : 0x0A) else { throw .chunk }
                if self.pending.isEmpty {
                    self.pending.append(input[at])
                } else {
                    self.pending.removeAll(keepingCapacity: true)
                    self.state = .chunkLine
                }
                at += 1
            case .trailer(var parser):
                guard try self.takeTrailer(&parser, input, &at) else {
                    self.state = .trailer(parser)
                    return .needsMore
                }
                self.pending = []
                self.state = .finished
            }
        }
    }

    private mutating func take(_ count: Int, of input: Span<UInt8>, _ at: inout Int) -> Range<Int> {
        let start = at
        at += min(count, input.count - at)
        self.received += at - start
        return start..<at
    }

    /// Moves input into `pending` up to a line feed. - Returns: whether the line is complete.
    private mutating func takeLine(_ input: Span<UInt8>, _ at: inout Int) throws(HTTPRefusal)
        -> Bool
    {
        while at < input.count {
            let byte = input[at]
            at += 1
            self.pending.append(byte)
            if byte == 0x0A { return true }
            guard self.pending.count <= self.limits.chunkLineSizeMax.raw else { throw .chunk }
        }
        return false
    }

    /// Many tiny chunks cost the reader more than the sender: what framing may add is bounded.
    private mutating func spend(_ lineSize: Int, for size: Int) throws(HTTPRefusal) {
        self.overhead = max(0, self.overhead + lineSize - 16 - 2 * min(size, 1 << 40))
        guard self.overhead <= self.limits.chunkOverheadMax.raw else { throw .chunkOverhead }
    }

    /// `1*HEXDIG *( ";" token [ "=" ( token / quoted ) ] ) CR LF`, without any white space.
    private static func chunkSize(_ line: Span<UInt8>) throws(HTTPRefusal) -> Int {
        guard line.count >= 3, line[line.count - 2] == 0x0D else { throw .chunk }
        let end = line.count - 2
        var at = 0
        var size = 0
        while at < end, let digit = ASCII.hexValue(line[at]) {
            // Fifteen digits are beyond every limit and below every overflow.
            guard at < 15 else { throw .chunk }
            size = size << 4 | Int(digit)
            at += 1
        }
        guard at > 0 else { throw .chunk }
        while at < end {
            guard line[at] == 0x3B else { throw .chunk }
            at = try Self.token(line, at + 1, end)
            guard at < end, line[at] == 0x3D else { continue }
            at += 1
            guard at < end, line[at] == 0x22 else {
                at = try Self.token(line, at, end)
                continue
            }
            at += 1
            while at < end, line[at] != 0x22 {
                // Escapes inside are legal and nobody's; CR and LF there are the attack.
                guard line[at] >= 0x20, line[at] < 0x7F, line[at] != 0x5C else { throw .chunk }
                at += 1
            }
            guard at < end else { throw .chunk }
            at += 1
        }
        return size
    }

    private static func token(_ line: Span<UInt8>, _ start: Int, _ end: Int) throws(HTTPRefusal)
        -> Int
    {
        var at = start
        while at < end, HTTPCharacters.token.contains(line[at]) { at += 1 }
        guard at > start else { throw .chunk }
        return at
    }

    /// Reads and forgets the trailer: merged into the header, it would change what was decided.
    private mutating func takeTrailer(
        _ parser: inout HTTPHeadParser, _ input: Span<UInt8>, _ at: inout Int
    ) throws(HTTPRefusal) -> Bool {
        while at < input.count {
            let byte = input[at]
            at += 1
            self.pending.append(byte)
            guard byte == 0x0A || self.pending.count > self.limits.trailerSizeMax.raw else {
                continue
            }
            do throws(HTTPRefusal) {
                if try parser.advance(self.pending.span, { _, _ throws(HTTPRefusal) in }) != nil {
                    return true
                }
            } catch {
                throw .trailer
            }
        }
        return false
    }
}
