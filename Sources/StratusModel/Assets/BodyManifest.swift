/// A named body as the rows describe it: enough to recognise each of its copies when it arrives.
package struct BodyManifest: Sendable, Hashable {
    /// One chunk, as it is stored.
    package struct Chunk: Sendable, Hashable {
        package var storedSize: UInt32
        /// CRC-32C of the stored bytes: a fetched copy is held against it before it is kept.
        package var crc: UInt32

        package init(storedSize: UInt32, crc: UInt32) {
            self.storedSize = storedSize
            self.crc = crc
        }
    }

    package var body: BodyID
    /// The number of the database in its partition.
    package var database: UInt32
    /// The entry that named the body.
    package var namedAt: LogIndex
    /// Plain bytes.
    package var size: UInt64
    /// Plain bytes of every chunk but the last.
    package var chunkSize: UInt32
    /// The version of the database's key that it is sealed under.
    package var keyVersion: UInt32
    /// No member had a sound copy of one of its chunks. Nobody waits for the body any more, and
    /// downloads answer that it is gone.
    package var isLost: Bool
    package var chunks: [Chunk]

    package init(
        body: BodyID, database: UInt32, namedAt: LogIndex, size: UInt64, chunkSize: UInt32,
        keyVersion: UInt32, isLost: Bool = false, chunks: [Chunk]
    ) {
        self.body = body
        self.database = database
        self.namedAt = namedAt
        self.size = size
        self.chunkSize = chunkSize
        self.keyVersion = keyVersion
        self.isLost = isLost
        self.chunks = chunks
    }

    /// How many chunks a body of `size` plain bytes has. An empty file has none.
    package static func chunkCount(size: UInt64, chunkSize: UInt32) -> UInt64 {
        let whole = size / UInt64(chunkSize)
        return whole * UInt64(chunkSize) == size ? whole : whole + 1
    }

    /// Whether its numbers agree with each other and lie within ``AssetLimits``.
    package var isConsistent: Bool {
        guard self.size <= AssetLimits.bodySizeMax,
            AssetLimits.chunkSizes.contains(self.chunkSize),
            Self.chunkCount(size: self.size, chunkSize: self.chunkSize)
                == UInt64(self.chunks.count)
        else { return false }
        return self.chunks.indices.allSatisfy { ordinal in
            let stored = self.chunks[ordinal].storedSize
            return stored > AssetLimits.sealedOverhead
                && stored <= self.plainSize(of: UInt32(ordinal)) + AssetLimits.sealedOverhead
        }
    }

    /// Plain bytes of one of its chunks.
    package func plainSize(of ordinal: UInt32) -> UInt32 {
        let start = UInt64(ordinal) * UInt64(self.chunkSize)
        return start < self.size
            ? UInt32(min(UInt64(self.chunkSize), self.size - start)) : 0
    }

    package func isLast(_ ordinal: UInt32) -> Bool { Int(ordinal) == self.chunks.count - 1 }

    /// The chunks that hold `range` of the plain bytes. The range must lie within the body.
    package func ordinals(covering range: Range<UInt64>) -> Range<UInt32> {
        precondition(range.upperBound <= self.size, "a range beyond the end of its body")
        if range.isEmpty { return 0..<0 }
        let first = UInt32(range.lowerBound / UInt64(self.chunkSize))
        let last = UInt32((range.upperBound - 1) / UInt64(self.chunkSize))
        return first..<(last + 1)
    }

    package func name(of ordinal: UInt32) -> CopyName {
        CopyName(body: self.body, ordinal: ordinal)
    }
}
