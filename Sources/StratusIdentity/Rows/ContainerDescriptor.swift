package import StratusCoding
package import StratusModel

/// An installation's record of a container in one environment. Stands at the container's home.
///
/// | bytes  | container descriptor, format 1                         |
/// | ------ | ------------------------------------------------------ |
/// | 1      | format, 1                                              |
/// | 1      | state: 1 active, 2 being erased, 3 erased              |
/// | signed | created, milliseconds                                  |
/// | signed | deleted, milliseconds; 0: never                        |
/// | varint | how often the name was taken into use, 1 at first      |
///
/// Format 2, only while the environment is reset (state 4): the same, then when the reset began
/// (signed), a flag whether the public database is empty already, and the name of the last user
/// whose database is (text).
///
/// Format 3, only if the public database has buckets: as format 1, then their number (1 byte),
/// then, while the environment is reset, what format 2 adds.
///
/// Format 4, only if private databases have buckets: as format 3, whose number may then be 1, with
/// the number of the private databases' buckets (1 byte) behind it.
///
/// The first byte is a flag for what the row holds: every build reads and writes all four.
package struct ContainerDescriptor: Sendable, Equatable {
    package enum State: UInt8, Sendable, CaseIterable {
        case active = 1
        /// Nobody gets in any more; what it held is being removed.
        case erasing = 2
        /// Nothing is left. The name stays closed until it is created again.
        case erased = 3
        /// Nobody gets in until its records are gone; who may use it stays.
        case resetting = 4

        package var name: String {
            switch self {
            case .active: "active"
            case .erasing: "erasing"
            case .erased: "erased"
            case .resetting: "resetting"
            }
        }
    }

    /// How far a reset has come.
    package struct Reset: Sendable, Equatable {
        package var begunMilliseconds: Int64
        package var isPublicErased = false
        /// The users up to this one have been taken care of, in the order of their names.
        package var lastUser = ""

        package init(begunMilliseconds: Int64) { self.begunMilliseconds = begunMilliseconds }
    }

    package var state: State
    /// While the state is `resetting`, and never else.
    package var reset: Reset?
    package var createdMilliseconds: Int64
    package var deletedMilliseconds: Int64
    package var generation: UInt64
    /// The buckets of the public database, chosen when the name was taken into use. They decide
    /// where records are, so they never change after that. 1: none.
    package let publicBucketCount: Int
    /// The buckets over which each private database's custom zones are spread. 1: they are not.
    package let zoneBucketCount: Int

    package init(
        state: State = .active, createdMilliseconds: Int64, deletedMilliseconds: Int64 = 0,
        generation: UInt64 = 1, publicBucketCount: Int = 1, zoneBucketCount: Int = 1
    ) {
        for count in [publicBucketCount, zoneBucketCount] {
            precondition(count == 1 || Bucket.isBucket(0, of: count), "no buckets")
        }
        self.publicBucketCount = publicBucketCount
        self.zoneBucketCount = zoneBucketCount
        self.state = state
        self.createdMilliseconds = createdMilliseconds
        self.deletedMilliseconds = deletedMilliseconds
        self.generation = generation
    }

    package func encoded() -> Bytes {
        var writer = ByteWriter(reserving: 32)
        let hasZoneBuckets = self.zoneBucketCount > 1
        let hasBuckets = hasZoneBuckets || self.publicBucketCount > 1
        let plain: UInt8 = self.reset == nil ? 1 : 2
        writer.write(hasZoneBuckets ? 4 : hasBuckets ? 3 : plain)
        writer.write(self.state.rawValue)
        writer.write(signed: self.createdMilliseconds)
        writer.write(signed: self.deletedMilliseconds)
        writer.write(varint: self.generation)
        if hasBuckets { writer.write(UInt8(self.publicBucketCount)) }
        if hasZoneBuckets { writer.write(UInt8(self.zoneBucketCount)) }
        if let reset {
            writer.write(signed: reset.begunMilliseconds)
            writer.write(flag: reset.isPublicErased)
            writer.write(text: reset.lastUser)
        }
        return writer.bytes
    }

    package init(decoding bytes: Bytes) throws(DecodingError) {
        var reader = ByteReader(bytes)
        let format = bytes.first.map { (2...4).contains($0) ? $0 : 1 } ?? 1
        try reader.identityFormat(format)
        guard let state = State(rawValue: try reader.byte()),
            format >= 3 || (format == 2) == (state == .resetting)
        else { throw DecodingError(.malformed, at: 1) }
        self.state = state
        self.createdMilliseconds = try reader.signed()
        self.deletedMilliseconds = try reader.signed()
        self.generation = try reader.varint()
        self.publicBucketCount = format >= 3 ? Int(try reader.byte()) : 1
        guard
            format < 3 || Bucket.isBucket(0, of: self.publicBucketCount)
                || (format == 4 && self.publicBucketCount == 1)
        else { throw DecodingError(.malformed, at: reader.offset - 1) }
        self.zoneBucketCount = format == 4 ? Int(try reader.byte()) : 1
        guard format < 4 || Bucket.isBucket(0, of: self.zoneBucketCount) else {
            throw DecodingError(.malformed, at: reader.offset - 1)
        }
        if state == .resetting {
            var reset = Reset(begunMilliseconds: try reader.signed())
            reset.isPublicErased = try reader.flag()
            reset.lastUser = try reader.text()
            self.reset = reset
        }
        try reader.finish()
    }
}

extension ContainerDescriptor {
    /// The place of the public records of `container`, whose descriptor this is.
    package func publicDatabase(of container: ContainerReference) -> PublicDatabase {
        PublicDatabase(of: container, bucketCount: self.publicBucketCount)
    }

    package var layout: ContainerLayout {
        ContainerLayout(
            publicBucketCount: self.publicBucketCount, zoneBucketCount: self.zoneBucketCount,
            generation: self.generation)
    }
}
