import StratusModel

/// Reads JSON text (RFC 8259, nothing looser) once, from front to back, and writes the tape.
///
/// Recursion is not used: an open container's node holds the index of the one around it until it
/// is closed, so the tape is its own stack and depth costs nothing but the limit.
struct JSONTapeBuilder {
    private(set) var tape: [JSONNode] = []
    private let limits: JSONLimits

    init(limits: JSONLimits) { self.limits = limits }

    mutating func build(_ input: Span<UInt8>) throws(JSONError) {
        guard input.count <= self.limits.sizeMax.raw, input.count < JSONNode.reach else {
            throw JSONError(.tooLarge, at: min(self.limits.sizeMax.raw, JSONNode.reach))
        }
        // About what records cost; grows where a document is denser.
        self.tape.reserveCapacity(min(self.limits.valueCountMax, input.count / 12 + 8))
        if input.count >= 3, input[0] == 0xEF, input[1] == 0xBB, input[2] == 0xBF {
            throw JSONError(.byteOrderMark, at: 0)
        }
        // A UInt8 has no padding that could be read.
        let raw = unsafe input.bytes
        var at = Self.skipSpace(input, 0)
        var around = 0
        var depth = 0
        var inObject = false

        value: while true {
            guard at < input.count else { throw JSONError(.truncated, at: at) }
            switch input[at] {
            case 0x22:
                at = try self.string(input, raw, at + 1)
            case 0x7B where depth >= self.limits.depthMax,
                0x5B where depth >= self.limits.depthMax:
                guard self.limits.keepsUnreadable else { throw JSONError(.tooDeep, at: at) }
                at = try self.skip(input, at)
            case 0x7B, 0x5B:
                let isObject = input[at] == 0x7B
                let index = self.tape.count
                try self.append(JSONNode(isObject ? .object : .array, offset: at, extent: around))
                at = Self.skipSpace(input, at + 1)
                guard at < input.count else { throw JSONError(.truncated, at: at) }
                if input[at] == (isObject ? 0x7D : 0x5D) {
                    self.close(index)
                    at += 1
                } else {
                    depth += 1
                    around = index
                    inObject = isObject
                    if isObject { at = try self.key(input, raw, at) }
                    continue value
                }
            case 0x2D, 0x30...0x39:
                at = try self.number(input, at)
            case 0x74:
                at = try self.word(input, at, "true", .yes)
            case 0x66:
                at = try self.word(input, at, "false", .no)
            case 0x6E:
                at = try self.word(input, at, "null", .null)
            default:
                throw JSONError(.unexpectedByte, at: at)
            }

            // After a value: a comma and the next one, or the end of what is around it.
            while true {
                at = Self.skipSpace(input, at)
                if depth == 0 {
                    guard at == input.count else { throw JSONError(.trailingBytes, at: at) }
                    return
                }
                guard at < input.count else { throw JSONError(.truncated, at: at) }
                let byte = input[at]
                if byte == 0x2C {
                    at = Self.skipSpace(input, at + 1)
                    if inObject { at = try self.key(input, raw, at) }
                    continue value
                }
                guard byte == (inObject ? 0x7D : 0x5D) else {
                    throw JSONError(.unexpectedByte, at: at)
                }
                let closed = around
                around = self.tape[closed].extent
                self.close(closed)
                depth -= 1
                inObject = depth > 0 && self.tape[around].kind == .object
                at += 1
            }
        }
    }

    /// Notes an array or an object as a value that cannot be read. Only its brackets and strings are
    /// looked at. - Returns: after it.
    private mutating func skip(_ input: Span<UInt8>, _ start: Int) throws(JSONError) -> Int {
        var at = start
        var openCount = 0
        var isInString = false
        repeat {
            guard at < input.count else { throw JSONError(.truncated, at: at) }
            switch input[at] {
            case 0x22: isInString.toggle()
            case 0x5C where isInString: at += 1
            case 0x7B where !isInString, 0x5B where !isInString: openCount += 1
            case 0x7D where !isInString, 0x5D where !isInString: openCount -= 1
            default: break
            }
            at += 1
        } while openCount > 0
        // As a string whose quotes are the brackets: its own text is the whole of it.
        try self.append(
            JSONNode(
                .string, offset: start + 1, extent: at - start - 2, flag: JSONNode.isUnreadable))
        return at
    }

    private mutating func append(_ node: JSONNode) throws(JSONError) {
        guard self.tape.count < self.limits.valueCountMax else {
            // A string's node begins behind its quote.
            throw JSONError(
                .tooManyValues, at: node.kind == .string ? node.offset - 1 : node.offset)
        }
        self.tape.append(node)
    }

    private mutating func close(_ index: Int) {
        let open = self.tape[index]
        self.tape[index] = JSONNode(open.kind, offset: open.offset, extent: self.tape.count)
    }

    @inline(__always)
    private static func skipSpace(_ input: Span<UInt8>, _ start: Int) -> Int {
        var at = start
        while at < input.count {
            switch input[at] {
            case 0x20, 0x0A, 0x0D, 0x09: at += 1
            default: return at
            }
        }
        return at
    }

    /// A key and its colon. - Returns: where the member's value starts.
    private mutating func key(_ input: Span<UInt8>, _ raw: RawSpan, _ start: Int)
        throws(JSONError) -> Int
    {
        guard start < input.count else { throw JSONError(.truncated, at: start) }
        guard input[start] == 0x22 else { throw JSONError(.unexpectedByte, at: start) }
        let at = Self.skipSpace(input, try self.string(input, raw, start + 1))
        guard at < input.count else { throw JSONError(.truncated, at: at) }
        guard input[at] == 0x3A else { throw JSONError(.unexpectedByte, at: at) }
        return Self.skipSpace(input, at + 1)
    }

    private mutating func word(
        _ input: Span<UInt8>, _ start: Int, _ text: StaticString, _ kind: JSONNode.Kind
    ) throws(JSONError) -> Int {
        for position in 0..<text.utf8CodeUnitCount {
            guard start + position < input.count else {
                throw JSONError(.truncated, at: input.count)
            }
            // Reads within a literal's own length.
            guard unsafe input[start + position] == text.utf8Start[position] else {
                throw JSONError(.unexpectedByte, at: start + position)
            }
        }
        try self.append(JSONNode(kind, offset: start, extent: text.utf8CodeUnitCount))
        return start + text.utf8CodeUnitCount
    }

    // MARK: Strings

    /// From after the opening quote. - Returns: after the closing one.
    @inline(__always)
    private mutating func string(_ input: Span<UInt8>, _ raw: RawSpan, _ start: Int)
        throws(JSONError) -> Int
    {
        var at = start
        var flag: UInt8 = 0
        while true {
            while at + 8 <= input.count {
                let special = WordScan.stringSpecial(raw.word(at: at))
                if special != 0 {
                    at += special.trailingZeroBitCount >> 3
                    break
                }
                at += 8
            }
            guard at < input.count else { throw JSONError(.truncated, at: at) }
            switch input[at] {
            case 0x22:
                try self.append(
                    JSONNode(.string, offset: start, extent: at - start, flag: flag))
                return at + 1
            case 0x5C:
                flag |= JSONNode.hasEscape
                let (end, isWhole) = try Self.escape(input, at)
                if !isWhole {
                    guard self.limits.keepsUnreadable else {
                        throw JSONError(.loneSurrogate, at: at)
                    }
                    flag |= JSONNode.isUnreadable
                }
                at = end
            case 0..<0x20:
                throw JSONError(.controlCharacter, at: at)
            case 0x20..<0x80:
                at += 1
            default:
                at = try Self.scalar(input, at)
            }
        }
    }

    /// Checks one escape, a surrogate pair counting as one.
    /// - Returns: the offset after it, and whether it stands for a scalar; half of a pair does not.
    private static func escape(_ input: Span<UInt8>, _ start: Int) throws(JSONError) -> (
        end: Int, isWhole: Bool
    ) {
        guard start + 1 < input.count else { throw JSONError(.truncated, at: input.count) }
        switch input[start + 1] {
        case 0x22, 0x5C, 0x2F, 0x62, 0x66, 0x6E, 0x72, 0x74:
            return (start + 2, true)
        case 0x75:
            let unit = try Self.fourHexDigits(input, start + 2)
            guard unit & 0xF800 == 0xD800 else { return (start + 6, true) }
            // The first half must be a high one, and a low one must follow as an escape at once.
            guard unit < 0xDC00 else { return (start + 6, false) }
            guard start + 7 < input.count else {
                if start + 6 < input.count, input[start + 6] != 0x5C { return (start + 6, false) }
                throw JSONError(.truncated, at: input.count)
            }
            guard input[start + 6] == 0x5C, input[start + 7] == 0x75,
                try Self.fourHexDigits(input, start + 8) & 0xFC00 == 0xDC00
            else { return (start + 6, false) }
            return (start + 12, true)
        default:
            throw JSONError(.badEscape, at: start)
        }
    }

    static func fourHexDigits(_ input: Span<UInt8>, _ start: Int) throws(JSONError) -> UInt32 {
        var unit: UInt32 = 0
        for at in start..<(start + 4) {
            guard at < input.count else { throw JSONError(.truncated, at: at) }
            guard let digit = ASCII.hexValue(input[at]) else { throw JSONError(.badEscape, at: at) }
            unit = unit << 4 | UInt32(digit)
        }
        return unit
    }

    /// Checks one multi-byte scalar against the Unicode standard's table 3-7. - Returns: after it.
    private static func scalar(_ input: Span<UInt8>, _ start: Int) throws(JSONError) -> Int {
        let count: Int
        var second: ClosedRange<UInt8> = 0x80...0xBF
        switch input[start] {
        case 0xC2...0xDF: count = 2
        case 0xE0: (count, second) = (3, 0xA0...0xBF)
        case 0xE1...0xEC, 0xEE...0xEF: count = 3
        case 0xED: (count, second) = (3, 0x80...0x9F)
        case 0xF0: (count, second) = (4, 0x90...0xBF)
        case 0xF1...0xF3: count = 4
        case 0xF4: (count, second) = (4, 0x80...0x8F)
        default: throw JSONError(.badUTF8, at: start)
        }
        guard start + count <= input.count, second.contains(input[start + 1]) else {
            throw JSONError(.badUTF8, at: start)
        }
        for at in (start + 2)..<(start + count) where input[at] & 0xC0 != 0x80 {
            throw JSONError(.badUTF8, at: start)
        }
        return start + count
    }

    // MARK: Numbers

    @inline(__always)
    private mutating func number(_ input: Span<UInt8>, _ start: Int) throws(JSONError) -> Int {
        var at = start
        if input[at] == 0x2D { at += 1 }
        let firstDigit = at
        at = try Self.digits(input, at)
        if input[firstDigit] == 0x30, at > firstDigit + 1 {
            throw JSONError(.badNumber, at: firstDigit + 1)
        }
        let digitCount = at - firstDigit
        var form = JSONNode.NumberForm.integer
        var hasExponent = false
        if at < input.count, input[at] == 0x2E {
            form = .fraction
            at = try Self.digits(input, at + 1)
        }
        if at < input.count, input[at] | 0x20 == 0x65 {
            form = .fraction
            hasExponent = true
            at += 1
            if at < input.count, input[at] == 0x2B || input[at] == 0x2D { at += 1 }
            at = try Self.digits(input, at)
        }
        // Eighteen digits always fit; only more have to be looked at.
        if form == .integer, digitCount > 18,
            JSONNumber.int64(input.extracting(start..<at)) == nil
        {
            form = .largeInteger
        }
        // Without an exponent, it takes over three hundred digits to leave Double's range.
        if hasExponent || digitCount > 300, !self.limits.keepsUnreadable,
            JSONNumber.double(input.extracting(start..<at))?.isFinite != true
        {
            throw JSONError(.numberOutOfRange, at: start)
        }
        try self.append(
            JSONNode(.number, offset: start, extent: at - start, flag: form.rawValue))
        return at
    }

    /// One digit or more. - Returns: after them.
    @inline(__always)
    private static func digits(_ input: Span<UInt8>, _ start: Int) throws(JSONError) -> Int {
        var at = start
        while at < input.count, input[at] &- 0x30 < 10 { at += 1 }
        guard at > start else {
            throw JSONError(at < input.count ? .badNumber : .truncated, at: at)
        }
        return at
    }
}
