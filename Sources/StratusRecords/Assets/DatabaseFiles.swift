import StratusCoding
package import StratusModel

/// Asks for the bodies of one database's files, but for lost ones. For Stratus itself.
package struct DatabaseFilesAsk: Sendable, Equatable {
    package var database: DatabaseID
    /// The last asset that was looked at; nil: from the first.
    package var after: AssetID?

    package init(_ database: DatabaseID, after: AssetID? = nil) {
        self.database = database
        self.after = after
    }
}

/// An answer to a ``DatabaseFilesAsk``.
package struct DatabaseFiles: Sendable, Equatable {
    package var bodies: [BodyExtent]
    /// Where to go on; nil: everything has been looked at.
    package var next: AssetID?

    package init(bodies: [BodyExtent] = [], next: AssetID? = nil) {
        self.bodies = bodies
        self.next = next
    }
}

extension ByteWriter {
    mutating func write(_ files: DatabaseFiles) {
        self.write(count: files.bodies.count)
        for extent in files.bodies {
            self.write(name: extent.body.raw)
            self.write(varint: UInt64(extent.chunkCount))
        }
        self.write(flag: files.next != nil)
        if let next = files.next { self.write(name: next.raw) }
    }
}

extension ByteReader {
    mutating func databaseFiles() throws(DecodingError) -> DatabaseFiles {
        var files = DatabaseFiles()
        for _ in 0..<(try self.count(minimumSize: 17)) {
            let body = BodyID(try self.name())
            let start = self.offset
            guard let count = UInt32(exactly: try self.varint()) else {
                throw DecodingError(.malformed, at: start)
            }
            files.bodies.append(BodyExtent(body, chunkCount: count))
        }
        if try self.flag() { files.next = AssetID(try self.name()) }
        return files
    }
}
