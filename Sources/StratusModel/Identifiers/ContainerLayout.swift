/// How a container's databases are spread: chosen when its name is taken into use, and never
/// changed.
package struct ContainerLayout: Sendable, Hashable {
    /// The buckets of a new container that is placed by zones, where nobody says how many.
    package static let zoneBucketCountStandard = 16

    /// The buckets of the public database. 1: it is whole.
    package var publicBucketCount: Int
    /// The buckets of each private database. 1: it is whole.
    package var zoneBucketCount: Int
    /// How often the container's name was taken into use.
    package var generation: UInt64

    package init(publicBucketCount: Int = 1, zoneBucketCount: Int = 1, generation: UInt64 = 1) {
        self.publicBucketCount = publicBucketCount
        self.zoneBucketCount = zoneBucketCount
        self.generation = generation
    }

    /// Tags of zones that are made under this layout begin above it. A container that was made
    /// again with other counts has its zones in partitions that never saw the tags of before.
    package var tagFloor: UInt64 {
        self.generation > 1 ? min(self.generation - 1, 1 << 24) << 32 : 0
    }

    package func privateDatabase(
        of owner: String, in container: ContainerReference
    ) -> PrivateDatabase {
        PrivateDatabase(of: owner, in: container, bucketCount: self.zoneBucketCount)
    }
}
