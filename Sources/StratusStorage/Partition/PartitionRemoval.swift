package import StratusModel

/// Deletes what a node kept of partitions that live elsewhere now.
package enum PartitionRemoval {
    /// Sets aside rows that rotted: the next opening finds the partition without rows. The files
    /// stay beside it, to be examined or restored, until a snapshot has replaced them.
    package static func setAside(_ group: GroupID, in parent: DiskPath, from files: any Files)
        throws(StoreError)
    {
        try onDisk { () throws(DiskError) in
            try PartitionFiles(group, in: parent).setAside(in: files)
        }
    }

    /// Removes the files of `groups`, and ignores those that are gone already. The directory stays:
    /// it is empty, and a partition may come back. The newest rows go last, so that a crash leaves
    /// what a replica was, or nothing.
    package static func remove(_ groups: [GroupID], in parent: DiskPath, from files: any Files)
        throws(StoreError)
    {
        try onDisk { () throws(DiskError) in
            for group in groups {
                let partition = PartitionFiles(group, in: parent)
                guard try files.exists(partition.directory) else { continue }
                let current = try partition.settle(in: files)
                for name in try files.list(partition.directory) {
                    let path = partition.directory.appending(name.raw)
                    if let current, path == partition.rows(current) { continue }
                    try files.remove(path)
                }
                if let current { try files.remove(partition.rows(current)) }
                try files.syncDirectory(partition.directory)
            }
        }
    }

    /// Whether nothing of the partition's rows is here.
    package static func isDone(for group: GroupID, in parent: DiskPath, from files: any Files)
        throws(StoreError) -> Bool
    {
        try onDisk { () throws(DiskError) in
            let directory = PartitionFiles(group, in: parent).directory
            guard try files.exists(directory) else { return true }
            return try files.list(directory).isEmpty
        }
    }
}
