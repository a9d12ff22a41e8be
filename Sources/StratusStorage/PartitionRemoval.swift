package import StratusModel

/// Deletes what a node kept of partitions that live elsewhere now.
package enum PartitionRemoval {
    /// Removes the files of `groups`; those that are gone already are no error. The directory stays: it is
    /// empty, and a partition may come back. The newest rows go last, so that what a crash leaves is what a
    /// replica was, or nothing.
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
}
