package import StratusModel

/// The folder on a node's disk that holds the copies of one partition.
///
/// ```text
/// assets/00012/00000007.pack     copies, append only: see PackFormat
/// assets/00012/index.db          where each copy is; made again from the packs if it is damaged
/// assets/00012/index.db-wal      SQLite's, beside it
/// ```
package struct PackDirectory: Sendable {
    package let group: GroupID
    package let path: DiskPath

    package init(_ group: GroupID, in parent: DiskPath) {
        self.group = group
        self.path = parent.appending(Self.padded(String(group.raw), to: 5))
    }

    package var index: DiskPath { self.path.appending("index.db") }

    package func pack(_ number: UInt64) -> DiskPath {
        self.path.appending(Self.padded(String(number), to: 8) + ".pack")
    }

    /// Which pack a file of this directory is. Nil: none.
    func number(of name: DiskPath) -> UInt64? {
        guard name.raw.hasSuffix(".pack") else { return nil }
        let digits = name.raw.dropLast(5)
        guard digits.utf8.count >= 8, digits.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else {
            return nil
        }
        return UInt64(digits)
    }

    /// Whether there is anything to open. The index alone says nothing: it is made again from the
    /// packs.
    package func holdsFiles(_ files: any Files) throws(StoreError) -> Bool {
        try onDisk { () throws(DiskError) in
            guard try files.exists(self.path) else { return false }
            return try !files.list(self.path).isEmpty
        }
    }

    /// Removes every copy of the partition, durably. To be done when nobody has a store of it open.
    package static func remove(_ group: GroupID, in parent: DiskPath, from files: any Files)
        throws(StoreError)
    {
        try onDisk { () throws(DiskError) in
            let directory = Self(group, in: parent)
            guard try files.exists(directory.path) else { return }
            for name in try files.list(directory.path) {
                try files.remove(directory.path.appending(name.raw))
            }
            try files.syncDirectory(directory.path)
        }
    }

    /// The partitions that have a folder in `parent`, ascending.
    package static func groups(in parent: DiskPath, of files: any Files) throws(StoreError)
        -> [GroupID]
    {
        try onDisk { () throws(DiskError) in
            guard try files.exists(parent) else { return [] }
            return try files.list(parent).compactMap { name in
                guard name.raw.utf8.count >= 5, let number = UInt16(name.raw) else { return nil }
                return GroupID(number)
            }.sorted()
        }
    }

    private static func padded(_ digits: String, to count: Int) -> String {
        String(repeating: "0", count: max(0, count - digits.utf8.count)) + digits
    }
}
