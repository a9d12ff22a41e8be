/// All of a container's public database: its buckets, or the single part that is no bucket.
package struct PublicDatabase: Sendable, Hashable {
    package let container: ContainerReference
    /// 1: the database is whole.
    package let bucketCount: Int

    package init(of container: ContainerReference, bucketCount: Int = 1) {
        precondition(bucketCount == 1 || Bucket.isBucket(0, of: bucketCount), "no buckets")
        self.container = container
        self.bucketCount = bucketCount
    }

    /// Every database that records are in, in the order of the buckets' numbers.
    package var parts: [DatabaseID] {
        guard self.bucketCount > 1 else { return [self.part(nil)] }
        return (0..<self.bucketCount).map { self.part(Bucket($0, of: self.bucketCount)) }
    }

    /// The part that holds the record of this name.
    package func part(of recordName: String) -> DatabaseID {
        guard self.bucketCount > 1 else { return self.part(nil) }
        return self.part(Bucket(0, of: self.bucketCount).sibling(of: recordName))
    }

    private func part(_ bucket: Bucket?) -> DatabaseID {
        DatabaseID(container: self.container, scope: .public, owner: "", bucket: bucket)
    }
}
