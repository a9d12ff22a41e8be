import StratusCoding
package import StratusModel

// The detail of an outcome: nothing, or a varint of how many
//
// How many links between buckets an entry has mended because of an audit: made known to the
// target's bucket again, or named to it as held by nobody. For whoever counts; the same command
// again mends nothing, and says so.
package struct MendedLinks: Sendable, Equatable {
    package var count: Int

    init(_ count: Int) { self.count = count }

    /// - Parameter detail: of a mail command's outcome, or of a slice of jobs.
    package init(detail: Bytes) {
        var reader = ByteReader(detail)
        self.count = Int(clamping: (try? reader.varint()) ?? 0)
    }

    var detail: Bytes {
        guard self.count > 0 else { return [] }
        var writer = ByteWriter()
        writer.write(count: self.count)
        return writer.bytes
    }
}
