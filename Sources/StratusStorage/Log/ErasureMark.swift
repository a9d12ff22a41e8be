package import StratusCoding
package import StratusModel
import StratusRows

// The row "erasure" (key 0x02) of Table.meta, version 1
//
// | bytes | what                                                                       |
// | ----- | -------------------------------------------------------------------------- |
// | 1     | version, 1                                                                 |
// | 8     | index of the last entry that erased something                              |
// | 8     | the time of the first one since the file was made, in milliseconds         |
// | 8     | the greatest number of what was to be removed then, or 0                   |
// | 8     | the last deadline of the outcomes that were remembered then, or 0          |

/// What an erasure waits for before its partition's file is made anew.
package enum ErasureStanding: Sendable, Equatable {
    case over
    /// Jobs have still to remove rows.
    case removing
    /// Outcomes of commands from before are remembered, through this deadline. They go with a
    /// command for which ``ReplicatedState/forgetsOutcomes(_:)``.
    case remembering(through: Int64)
}

/// Says that a partition's file may still hold what was erased: in pages that SQLite has freed, and
/// in its WAL.
///
/// It is this replica's own, as the applied position is: neither the digest nor a snapshot has it.
/// It is committed together with the erasure, and a file that is made anew does not have it.
package struct ErasureMark: Sendable, Equatable {
    package var index: LogIndex
    package var sinceMilliseconds: Int64
    /// What is numbered above it was erased by nobody: see ``ReplicatedState/removing(over:)``.
    package var horizon: UInt64
    /// Outcomes remembered until later are of later commands. 0 once a command has forgotten those
    /// through this deadline, on every replica: also on one whose rows came with a snapshot, and
    /// which has no mark without that command.
    package var outcomesThrough: Int64

    package init(
        index: LogIndex, sinceMilliseconds: Int64, horizon: UInt64, outcomesThrough: Int64
    ) {
        self.index = index
        self.sinceMilliseconds = sinceMilliseconds
        self.horizon = horizon
        self.outcomesThrough = outcomesThrough
    }

    static let key: Bytes = [2]

    package func encoded() -> Bytes {
        var writer = ByteWriter()
        writer.write(1 as UInt8)
        writer.write(fixed: self.index.raw)
        writer.write(fixed: UInt64(bitPattern: self.sinceMilliseconds))
        writer.write(fixed: self.horizon)
        writer.write(fixed: UInt64(bitPattern: self.outcomesThrough))
        return writer.bytes
    }

    package init(decoding bytes: Bytes) throws(DecodingError) {
        var reader = ByteReader(bytes)
        let version = try reader.byte()
        guard version == 1 else { throw DecodingError(.unknownVersion(version), at: 0) }
        self.index = LogIndex(try reader.fixed64())
        self.sinceMilliseconds = Int64(bitPattern: try reader.fixed64())
        self.horizon = try reader.fixed64()
        self.outcomesThrough = Int64(bitPattern: try reader.fixed64())
        try reader.finish()
    }

    static func read(from rows: Rows) throws(StoreError) -> Self? {
        guard let row = try rows.row(.meta, Self.key.span.bytes) else { return nil }
        do throws(DecodingError) { return try Self(decoding: row) } catch {
            throw StoreError(.unreadable, "the mark of an erasure: \(error)")
        }
    }

    func write(to rows: Rows) throws(StoreError) {
        try rows.put(.meta, Self.key.span.bytes, self.encoded().span.bytes)
    }
}
