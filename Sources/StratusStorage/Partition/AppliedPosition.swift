package import StratusCoding
package import StratusModel
package import StratusRows

// The row "applied" (key 0x01) of Table.meta, version 1
//
// | bytes  | what                                                            |
// | ------ | --------------------------------------------------------------- |
// | 1      | version, 1                                                      |
// | 8      | index of the last entry applied                                 |
// | 8      | its term                                                        |
// | 8 + 2  | its hybrid time: milliseconds, count                            |
// | 8 + 8  | digest of all rows but those of Table.meta: high, low           |
// | rest   | prefixed bytes: the payload of the last configuration applied; empty for none |

/// How far a partition's rows have come. Committed together with the rows it speaks of.
package struct AppliedPosition: Sendable, Equatable {
    package var index: LogIndex
    package var term: Term
    package var time: HybridTime
    package var digest: StateDigest
    /// Opaque here: only the code that replicates reads a configuration.
    package var configuration: Bytes

    package static let start = AppliedPosition(
        index: .zero, term: .zero, time: .zero, digest: .empty, configuration: [])

    static let key: Bytes = [1]

    package func encoded() -> Bytes {
        var writer = ByteWriter()
        writer.write(1 as UInt8)
        writer.write(fixed: self.index.raw)
        writer.write(fixed: self.term.raw)
        writer.write(fixed: UInt64(bitPattern: self.time.milliseconds))
        writer.write(fixed: self.time.count)
        writer.write(fixed: self.digest.high)
        writer.write(fixed: self.digest.low)
        writer.write(prefixed: self.configuration)
        return writer.bytes
    }

    package init(
        index: LogIndex, term: Term, time: HybridTime, digest: StateDigest, configuration: Bytes
    ) {
        self.index = index
        self.term = term
        self.time = time
        self.digest = digest
        self.configuration = configuration
    }

    package init(decoding bytes: Bytes) throws(DecodingError) {
        var reader = ByteReader(bytes)
        let version = try reader.byte()
        guard version == 1 else { throw DecodingError(.unknownVersion(version), at: 0) }
        self.index = LogIndex(try reader.fixed64())
        self.term = Term(try reader.fixed64())
        let milliseconds = Int64(bitPattern: try reader.fixed64())
        self.time = HybridTime(milliseconds: milliseconds, count: try reader.fixed16())
        self.digest = StateDigest(high: try reader.fixed64(), low: try reader.fixed64())
        self.configuration = try reader.prefixed()
        try reader.finish()
    }

    /// Reads the position that the rows record; ``start`` for a new database.
    package static func read(from rows: Rows) throws(StoreError) -> Self {
        guard let row = try rows.row(.meta, Self.key.span.bytes) else { return .start }
        do throws(DecodingError) { return try Self(decoding: row) } catch {
            throw StoreError(.unreadable, "the applied position: \(error)")
        }
    }

    package func write(to rows: Rows) throws(StoreError) {
        try rows.put(.meta, Self.key.span.bytes, self.encoded().span.bytes)
    }
}
