import StratusCompression
package import StratusModel
package import StratusSealing

/// One chunk, ready for the disks.
package struct SealedChunk: Sendable, Equatable {
    package var ordinal: UInt32
    package var plainSize: UInt32
    package var isLast: Bool
    /// The bytes as they are stored.
    package var bytes: Bytes
}

/// The facts known about a body once all of it has come.
package struct BodySums: Sendable, Equatable {
    package var size: UInt64
    package var chunkCount: UInt32
    /// Over the prefix that the line was given, and the bytes.
    package var sha1: Bytes
    /// Over the bytes. Nil where nobody asked.
    package var sha256: Bytes?
}

/// Turns the bytes of an upload into sealed chunks: counts, hashes, compresses where it gains,
/// seals.
///
/// Holds at most one chunk of plain bytes, since only the end of the body tells which chunk is its
/// last. One thread at a time.
package final class SealingLine {
    package enum Refusal: Error, Sendable, Equatable {
        /// The body is larger than it may be.
        case tooLarge
    }

    /// Compression is tried on two pieces of this size.
    static let probeSize = 16 << 10
    /// A probe must save this part, in hundredths.
    static let gainMin = 3

    private let sealer: BodySealer
    private let chunkSize: Int
    private let sizeMax: UInt64
    private let encoder: ZstdEncoder?
    private let sha1 = RunningHash(.sha1)
    private let sha256: RunningHash?
    private var plain = Bytes()
    private var size: UInt64 = 0
    private var ordinal: UInt32 = 0

    /// - Parameters:
    ///   - sizeMax: what the body's plain bytes may come to.
    ///   - checksumPrefix: what the SHA-1 begins with.
    ///   - hashes: whether a SHA-256 is wanted, to find equal files.
    package init(
        _ sealer: BodySealer, chunkSize: UInt32 = AssetLimits.chunkSizeDefault, sizeMax: UInt64,
        checksumPrefix: Bytes = [], compresses: Bool = true, hashes: Bool = true
    ) {
        precondition(AssetLimits.chunkSizes.contains(chunkSize), "no chunk size: \(chunkSize)")
        self.sealer = sealer
        self.chunkSize = Int(chunkSize)
        self.sizeMax = min(sizeMax, AssetLimits.bodySizeMax)
        self.encoder = compresses ? ZstdEncoder(level: 1) : nil
        self.sha256 = hashes ? RunningHash(.sha256) : nil
        self.sha1.update(checksumPrefix)
    }

    /// Takes the next bytes.
    ///
    /// - Returns: the chunks that are full and not the last, in order.
    package func add(_ bytes: Bytes) throws(Refusal) -> [SealedChunk] {
        guard UInt64(bytes.count) <= self.sizeMax - self.size else { throw .tooLarge }
        self.size += UInt64(bytes.count)
        self.sha1.update(bytes)
        self.sha256?.update(bytes)
        var chunks: [SealedChunk] = []
        var rest = bytes[...]
        while !rest.isEmpty {
            // More has come, so a full chunk is not the last.
            if self.plain.count == self.chunkSize { chunks.append(self.take(isLast: false)) }
            let piece = rest.prefix(self.chunkSize - self.plain.count)
            self.plain.append(contentsOf: piece)
            rest = rest.dropFirst(piece.count)
        }
        return chunks
    }

    /// The end of the body. To be asked once.
    ///
    /// - Returns: the last chunk, which an empty body lacks, and what is known of the whole.
    package func finish() -> (last: SealedChunk?, sums: BodySums) {
        let last = self.plain.isEmpty ? nil : self.take(isLast: true)
        let sums = BodySums(
            size: self.size, chunkCount: self.ordinal, sha1: self.sha1.finish(),
            sha256: self.sha256?.finish())
        return (last, sums)
    }

    private func take(isLast: Bool) -> SealedChunk {
        defer {
            self.plain.removeAll(keepingCapacity: true)
            self.ordinal += 1
        }
        let place = ChunkPlace(
            ordinal: self.ordinal, size: UInt32(self.plain.count), isLast: isLast)
        let frame = self.compressed()
        let sealed =
            frame.map { self.sealer.seal($0, .zstd, at: place) }
            ?? self.sealer.seal(self.plain, .raw, at: place)
        return SealedChunk(
            ordinal: self.ordinal, plainSize: place.size, isLast: isLast, bytes: sealed)
    }

    /// The chunk as a zstd frame, where that is worth it.
    private func compressed() -> Bytes? {
        guard let encoder = self.encoder else { return nil }
        if self.plain.count > 4 * Self.probeSize {
            let quarter = self.plain.count / 4
            let gains = [quarter, 3 * quarter].contains { start in
                let probe = Bytes(self.plain[start..<min(start + Self.probeSize, self.plain.count)])
                return Self.gains(encoder.frame(of: probe).count, of: probe.count)
            }
            if !gains { return nil }
        }
        let frame = encoder.frame(of: self.plain)
        return Self.gains(frame.count, of: self.plain.count) ? frame : nil
    }

    private static func gains(_ count: Int, of plain: Int) -> Bool {
        count * 100 <= plain * (100 - Self.gainMin)
    }

    /// The plain bytes of a stored chunk. Nil: it is not what was sealed for this place.
    ///
    /// The seal is opened first, so zstd reads only what was made here; and it may give no more
    /// than the chunk's size.
    package static func open(_ stored: Bytes, at place: ChunkPlace, with sealer: BodySealer)
        -> Bytes?
    {
        guard let (content, coding) = sealer.open(stored, at: place) else { return nil }
        switch coding {
        case .raw: return content
        case .zstd:
            guard let plain = try? Zstd.expand(content, sizeMax: Int(place.size)),
                plain.count == Int(place.size)
            else { return nil }
            return plain
        }
    }
}
