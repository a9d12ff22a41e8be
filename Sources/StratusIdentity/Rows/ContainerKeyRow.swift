package import StratusCoding
package import StratusModel
package import StratusSealing

/// The key of a container, wrapped under a master key: two of them while a rotation goes on.
///
/// | bytes  | container key, format 1                                             |
/// | ------ | ------------------------------------------------------------------- |
/// | 1      | format, 1                                                           |
/// | signed | milliseconds since when the newest key seals                        |
/// | 1      | count of keys, 1 or 2                                               |
/// | 4 + 72 | of each, the newest first: its version, and the key                 |
package struct ContainerKeyRow: Sendable, Equatable {
    package struct Entry: Sendable, Equatable {
        package var version: UInt32
        package var key: SealedKey

        package init(version: UInt32, key: SealedKey) {
            self.version = version
            self.key = key
        }
    }

    /// The newest first: it seals. The other one opens what is under it still.
    package private(set) var entries: [Entry]
    /// Since when the newest seals; 0 for the first one.
    package var sinceMilliseconds: Int64

    package init(_ newest: Entry, older: Entry? = nil, sinceMilliseconds: Int64 = 0) {
        self.entries = [newest] + (older.map { [$0] } ?? [])
        self.sinceMilliseconds = sinceMilliseconds
    }

    package var newest: Entry { self.entries[0] }

    package mutating func retireOlder() { self.entries = [self.newest] }

    /// The version of the master key that wraps all of them.
    package var master: UInt32 { self.newest.key.version }

    package func encoded() -> Bytes {
        var writer = ByteWriter(reserving: 192)
        writer.write(1 as UInt8)
        writer.write(signed: self.sinceMilliseconds)
        writer.write(UInt8(self.entries.count))
        for entry in self.entries {
            writer.write(fixed: entry.version)
            writer.write(raw: entry.key.encoded)
        }
        return writer.bytes
    }

    package init(decoding bytes: Bytes) throws(DecodingError) {
        var reader = ByteReader(bytes)
        let format = try reader.byte()
        guard format == 1 else { throw DecodingError(.unknownVersion(format), at: 0) }
        let since = try reader.signed()
        let start = reader.offset
        let count = try reader.byte()
        guard (1...2).contains(count) else { throw DecodingError(.malformed, at: start) }
        var entries: [Entry] = []
        for _ in 0..<count {
            let version = try reader.fixed32()
            entries.append(
                Entry(
                    version: version,
                    key: try SealedKey(decoding: try reader.raw(SealedKey.encodedSize))))
        }
        self.init(
            entries[0], older: entries.count > 1 ? entries[1] : nil, sinceMilliseconds: since)
        guard self.entries.allSatisfy({ $0.key.version == self.master }),
            entries.count == 1 || entries[0].version > entries[1].version
        else { throw DecodingError(.malformed, at: start) }
        try reader.finish()
    }
}
