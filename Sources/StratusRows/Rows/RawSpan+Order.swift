extension RawSpan {
    /// Compares byte by byte, the shorter first: negative, zero or positive.
    func order(to other: borrowing RawSpan) -> Int {
        let shared = min(self.byteCount, other.byteCount)
        var place = 0
        // Keys of one table begin alike: eight bytes at a time.
        while place + 8 <= shared {
            let left = unsafe self.unsafeLoadUnaligned(fromByteOffset: place, as: UInt64.self)
            let right = unsafe other.unsafeLoadUnaligned(fromByteOffset: place, as: UInt64.self)
            if left != right { return left.bigEndian < right.bigEndian ? -1 : 1 }
            place += 8
        }
        while place < shared {
            let left = unsafe self.unsafeLoad(fromByteOffset: place, as: UInt8.self)
            let right = unsafe other.unsafeLoad(fromByteOffset: place, as: UInt8.self)
            if left != right { return left < right ? -1 : 1 }
            place += 1
        }
        return self.byteCount - other.byteCount
    }
}
