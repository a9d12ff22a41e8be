package import StratusCoding
package import StratusModel

/// How far a rotation of the keys of a container's databases has come. One that was interrupted
/// goes on there, with the keys that it made. The row stands at the container's home, and goes at
/// the end.
///
/// | bytes  | key rotation, format 1                                               |
/// | ------ | -------------------------------------------------------------------- |
/// | 1      | format, 1                                                            |
/// | 16     | drawn by the run that goes on with it: every other one has ended     |
/// | signed | milliseconds of its begin                                            |
/// | varint | databases that have a newer key                                      |
/// | varint | databases that were not rotated to the end                           |
/// | flag   | a place follows: text owner, empty for the public database;          |
/// |        | 1 number of the bucket, and one more than that; 4 version of the key |
package struct KeyRotation: Sendable, Equatable {
    /// The database that it came to.
    package struct Place: Sendable, Equatable {
        package var owner: String
        package var bucket: UInt8?
        /// Of the key that the database gets.
        package var version: UInt32

        package init(owner: String, bucket: UInt8?, version: UInt32) {
            self.owner = owner
            self.bucket = bucket
            self.version = version
        }

        package init(_ database: DatabaseID, version: UInt32) {
            self.init(
                owner: database.owner, bucket: database.bucket?.number, version: version)
        }

        package func isIn(_ database: DatabaseID) -> Bool {
            self.owner == database.owner && self.bucket == database.bucket?.number
        }
    }

    package static let runSize = 16

    package var run: Bytes
    package var begunMilliseconds: Int64
    package var databaseCount: UInt64
    package var failingCount: UInt64
    package var place: Place?

    package init(
        run: Bytes, begunMilliseconds: Int64, databaseCount: UInt64 = 0, failingCount: UInt64 = 0,
        place: Place? = nil
    ) {
        self.run = run
        self.begunMilliseconds = begunMilliseconds
        self.databaseCount = databaseCount
        self.failingCount = failingCount
        self.place = place
    }

    package func encoded() -> Bytes {
        var writer = ByteWriter(reserving: 96)
        writer.write(1 as UInt8)
        writer.write(raw: self.run)
        writer.write(signed: self.begunMilliseconds)
        writer.write(varint: self.databaseCount)
        writer.write(varint: self.failingCount)
        writer.write(flag: self.place != nil)
        if let place = self.place {
            writer.write(text: place.owner)
            writer.write(place.bucket.map { $0 + 1 } ?? 0)
            writer.write(fixed: place.version)
        }
        return writer.bytes
    }

    package init(decoding bytes: Bytes) throws(DecodingError) {
        var reader = ByteReader(bytes)
        try reader.identityFormat(1)
        self.init(
            run: try reader.raw(Self.runSize), begunMilliseconds: try reader.signed(),
            databaseCount: try reader.varint(), failingCount: try reader.varint())
        if try reader.flag() {
            let owner = try reader.text()
            let bucket = try reader.byte()
            self.place = Place(
                owner: owner, bucket: bucket == 0 ? nil : bucket - 1,
                version: try reader.fixed32())
        }
        try reader.finish()
    }
}
