package import StratusCoding
package import StratusModel

// The file ERASED in a data directory, version 1
//
// | bytes | what                                                           |
// | ----- | -------------------------------------------------------------- |
// | 8     | "STRATUSE"                                                     |
// | 1     | version, 1                                                     |
// | 8     | when the first erasure was applied, in milliseconds since 1970 |
// | 4     | CRC-32C of the bytes before                                    |

/// Says that this node's log may hold what was erased. The file is written before anything else is
/// done about an erasure, and removed when every segment from that time is gone.
///
/// A damaged note counts as one: the log is let go of once more, which costs little.
package enum ErasureNote {
    package static let path: DiskPath = "ERASED"
    private static let frame = FileFrame("STRATUSE")

    /// - Returns: since when; nil: there is no note. A note that cannot be read says zero.
    package static func read(in files: any Files) throws(StoreError) -> Int64? {
        try onDisk { () throws(DiskError) in
            guard try files.exists(Self.path) else { return nil }
            return (try? Self.decode(files.contents(of: Self.path, limit: 64))) ?? 0
        }
    }

    /// Durably.
    package static func write(_ sinceMilliseconds: Int64, in files: any Files) throws(StoreError) {
        try onDisk { () throws(DiskError) in
            try files.replace(Self.path, with: Self.encode(sinceMilliseconds))
        }
    }

    /// - Parameter log: the directory of the segments that were removed: durably, before the note
    ///   is.
    package static func remove(in files: any Files, log: DiskPath) throws(StoreError) {
        try onDisk { () throws(DiskError) in
            try files.syncDirectory(log)
            try files.remove(Self.path)
            try files.syncDirectory(.root)
        }
    }

    package static func encode(_ sinceMilliseconds: Int64) -> Bytes {
        Self.frame.encode { $0.write(fixed: UInt64(bitPattern: sinceMilliseconds)) }
    }

    package static func decode(_ bytes: Bytes) throws(DecodingError) -> Int64 {
        try Self.frame.decode(bytes) { (reader, _) throws(DecodingError) in
            Int64(bitPattern: try reader.fixed64())
        }
    }
}
