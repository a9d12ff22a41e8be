import StratusModel

/// The output buffer of ``JSONWriter``: one allocation that grows, owned and freed here.
///
/// An array checks on every append that nobody shares it, which is a third of the cost of writing
/// JSON. Nobody can share this: it is not copyable, and the pointer never leaves the file. Each
/// append makes room first, and writes no further than the room it made: hence `@safe`.
@safe
struct JSONOutput: ~Copyable {
    private var start: UnsafeMutableRawPointer
    private(set) var count = 0
    private var capacity: Int

    init(reserving capacity: Int) {
        self.capacity = max(64, capacity)
        unsafe self.start = .allocate(byteCount: self.capacity, alignment: 8)
    }

    deinit { unsafe self.start.deallocate() }

    /// A copy: the allocation may be much larger, and arrays cannot adopt memory.
    func bytes() -> Bytes {
        unsafe Bytes(UnsafeRawBufferPointer(start: self.start, count: self.count))
    }

    @inline(__always)
    private mutating func makeRoom(_ more: Int) {
        if self.capacity - self.count < more { self.grow(more) }
    }

    @inline(never)
    private mutating func grow(_ more: Int) {
        let capacity = max(self.capacity * 2, self.count + more)
        let larger = UnsafeMutableRawPointer.allocate(byteCount: capacity, alignment: 8)
        unsafe larger.copyMemory(from: self.start, byteCount: self.count)
        unsafe self.start.deallocate()
        unsafe self.start = larger
        self.capacity = capacity
    }

    @inline(__always)
    mutating func append(_ byte: UInt8) {
        self.makeRoom(1)
        unsafe self.start.storeBytes(of: byte, toByteOffset: self.count, as: UInt8.self)
        self.count += 1
    }

    @inline(__always)
    mutating func append(_ first: UInt8, _ second: UInt8) {
        self.append(low: UInt64(first) | UInt64(second) << 8, 2)
    }

    /// The lowest `byteCount` bytes of a word, lowest first.
    @inline(__always)
    mutating func append(low word: UInt64, _ byteCount: Int) {
        precondition(byteCount <= 8)
        self.makeRoom(8)
        unsafe self.start.storeBytes(
            of: word.littleEndian, toByteOffset: self.count, as: UInt64.self)
        self.count += byteCount
    }

    mutating func append(literal text: StaticString) {
        self.makeRoom(text.utf8CodeUnitCount)
        unsafe (self.start + self.count).copyMemory(
            from: text.utf8Start, byteCount: text.utf8CodeUnitCount)
        self.count += text.utf8CodeUnitCount
    }

    /// A member's name in quotes and its colon. Nothing in it needs an escape.
    @inline(__always)
    mutating func append(key text: StaticString) {
        let count = text.utf8CodeUnitCount
        self.makeRoom(count + 3)
        unsafe self.start.storeBytes(of: 0x22, toByteOffset: self.count, as: UInt8.self)
        unsafe (self.start + (self.count + 1)).copyMemory(from: text.utf8Start, byteCount: count)
        // A quotation mark, then a colon.
        unsafe self.start.storeBytes(
            of: (0x3A22 as UInt16).littleEndian, toByteOffset: self.count + 1 + count,
            as: UInt16.self)
        self.count += count + 3
    }

    mutating func append(copying run: Span<UInt8>) {
        self.makeRoom(run.count)
        unsafe run.withUnsafeBytes { source in
            guard let base = source.baseAddress else { return }
            unsafe (self.start + self.count).copyMemory(from: base, byteCount: source.count)
        }
        self.count += run.count
    }

    /// Copies what was written between two counts.
    mutating func append(again written: Range<Int>) {
        precondition(written.upperBound <= self.count, "not written yet")
        self.makeRoom(written.count)
        unsafe (self.start + self.count).copyMemory(
            from: self.start + written.lowerBound, byteCount: written.count)
        self.count += written.count
    }

    /// Digits and small letters, as `String(value, radix: 36)` has them, in quotes.
    mutating func append(quotedBase36 value: UInt64) {
        // Thirteen digits hold 64 bits.
        self.makeRoom(15)
        var digitCount = 1
        var rest = value / 36
        while rest > 0 {
            digitCount += 1
            rest /= 36
        }
        self.append(0x22)
        var at = self.count + digitCount
        self.count = at
        rest = value
        repeat {
            at -= 1
            let digit = UInt8(truncatingIfNeeded: rest % 36)
            unsafe self.start.storeBytes(
                of: digit < 10 ? 0x30 + digit : 0x57 + digit, toByteOffset: at, as: UInt8.self)
            rest /= 36
        } while rest > 0
        self.append(0x22)
    }

    mutating func append(decimal value: Int64) {
        self.makeRoom(20)
        var rest = value.magnitude
        var digitCount = 1
        var bound: UInt64 = 10
        while rest >= bound, digitCount < 19 {
            digitCount += 1
            bound &*= 10
        }
        if value < 0 { self.append(0x2D) }
        // At most nineteen digits and a sign: within the room made.
        var at = self.count + digitCount
        self.count = at
        while digitCount > 0 {
            at -= 1
            digitCount -= 1
            let (quotient, remainder) = rest.quotientAndRemainder(dividingBy: 10)
            unsafe self.start.storeBytes(
                of: 0x30 + UInt8(truncatingIfNeeded: remainder), toByteOffset: at, as: UInt8.self)
            rest = quotient
        }
    }

    /// In quotes, escaped where JSON demands it and nowhere else.
    mutating func append(quoting source: Span<UInt8>) {
        // A UInt8 has no padding that could be read.
        let raw = unsafe source.bytes
        let total = source.count
        // There is always room for what is left of the source, a word more and a quotation mark.
        self.makeRoom(total + 16)
        self.append(0x22)
        var at = self.copyPlainBlocks(of: raw)
        while total - at >= 8 {
            let word = raw.word(at: at)
            unsafe self.start.storeBytes(
                of: word.littleEndian, toByteOffset: self.count, as: UInt64.self)
            let special = WordScan.mustEscape(word)
            guard special != 0 else {
                at += 8
                self.count += 8
                continue
            }
            let plain = special.trailingZeroBitCount >> 3
            at += plain
            self.count += plain
            self.append(escaping: source[at])
            at += 1
            self.makeRoom(total - at + 16)
        }
        while at < total {
            // What is left of a word, below spaces, which need no escape.
            let width = total - at
            let word =
                (total >= 8
                    ? raw.word(at: total - 8) >> UInt64(8 * (8 - width))
                    : Self.word(of: raw, at: at, width))
                | 0x2020_2020_2020_2020 << UInt64(8 * width)
            unsafe self.start.storeBytes(
                of: word.littleEndian, toByteOffset: self.count, as: UInt64.self)
            let special = WordScan.mustEscape(word)
            let plain = special == 0 ? width : special.trailingZeroBitCount >> 3
            at += plain
            self.count += plain
            guard special != 0 else { break }
            self.append(escaping: source[at])
            at += 1
            self.makeRoom(total - at + 16)
        }
        self.append(0x22)
    }

    /// Copies blocks of 32 bytes up to the first that needs an escape; there is room for all of
    /// them. Long texts are most of an answer, and this takes one instruction for a byte instead of
    /// five.
    ///
    /// - Returns: how many bytes were copied.
    @inline(__always)
    private mutating func copyPlainBlocks(of raw: RawSpan) -> Int {
        let blocks = raw.byteCount & ~31
        let target = unsafe self.start + self.count
        var at = 0
        while at < blocks {
            // Any 32 bytes are four words; the span checks that they are its own.
            let block = unsafe raw.unsafeLoadUnaligned(fromByteOffset: at, as: SIMD4<UInt64>.self)
            let special = WordScan.mustEscape(block)
            if special[0] | special[1] | special[2] | special[3] != 0 { break }
            unsafe target.storeBytes(of: block, toByteOffset: at, as: SIMD4<UInt64>.self)
            at &+= 32
        }
        self.count += at
        return at
    }

    /// One to seven bytes as the lowest of a word, the others zero, in two or three loads.
    @inline(__always)
    private static func word(of raw: RawSpan, at start: Int, _ width: Int) -> UInt64 {
        if width >= 4 {
            let low = UInt64(
                UInt32(
                    littleEndian: unsafe raw.unsafeLoadUnaligned(
                        fromByteOffset: start, as: UInt32.self)))
            let high = UInt64(
                UInt32(
                    littleEndian: unsafe raw.unsafeLoadUnaligned(
                        fromByteOffset: start + width - 4, as: UInt32.self)))
            // Where the two overlap they are the same.
            return low | high << UInt64(8 * (width - 4))
        }
        func byte(_ place: Int) -> UInt64 {
            UInt64(unsafe raw.unsafeLoad(fromByteOffset: start + place, as: UInt8.self))
                << UInt64(8 * place)
        }
        return byte(0) | byte(width >> 1) | byte(width - 1)
    }

    private mutating func append(escaping byte: UInt8) {
        switch byte {
        case 0x22, 0x5C: self.append(0x5C, byte)
        case 0x08: self.append(0x5C, 0x62)
        case 0x09: self.append(0x5C, 0x74)
        case 0x0A: self.append(0x5C, 0x6E)
        case 0x0C: self.append(0x5C, 0x66)
        case 0x0D: self.append(0x5C, 0x72)
        default:
            self.append(literal: "\\u00")
            self.append(ASCII.hexDigit(byte >> 4), ASCII.hexDigit(byte))
        }
    }
}
