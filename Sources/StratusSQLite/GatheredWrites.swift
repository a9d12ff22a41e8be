import StratusModel

/// Writes to one file that follow each other without a gap, put together into one. A frame of a
/// WAL comes as two of them, and a commit has up to thousands of frames.
///
/// What is gathered when its owner goes away is not written: it belongs to a commit that has failed.
struct GatheredWrites {
    private static let sizeMax = 256 << 10
    /// Memory that stays for the next commit.
    private static let keptSizeMax = 32 << 10

    private var bytes: [UInt8] = []
    /// Where in the file the first of them belongs.
    private var start: UInt64 = 0

    mutating func add(_ bytes: UnsafeRawBufferPointer, at offset: UInt64, to file: any File)
        throws(DiskError)
    {
        let isNext = offset == self.start + UInt64(self.bytes.count)
        if !isNext || self.bytes.count + bytes.count > Self.sizeMax {
            try self.end(in: file, keepingMemory: true)
        }
        if self.bytes.isEmpty { self.start = offset }
        self.bytes.append(contentsOf: bytes)
    }

    /// Writes what was gathered. After an error nobody knows what of it is in the file.
    mutating func end(in file: any File, keepingMemory: Bool = false) throws(DiskError) {
        if self.bytes.isEmpty { return }
        // A node has many files, and few large commits.
        defer {
            self.bytes.removeAll(
                keepingCapacity: keepingMemory || self.bytes.count <= Self.keptSizeMax)
        }
        try self.bytes.span.bytes.withUnsafeBytes { (bytes) throws(DiskError) in
            try file.write(bytes, at: self.start)
        }
    }
}
