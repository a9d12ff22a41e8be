package import StratusModel

// Row of a body, version 1. The key is the body's name, 16 bytes with the high byte first; from the
// second page on the number of the page stands behind it, 4 bytes with the high byte first. So the
// rows are in the order of the names.
//
// First page
//
// | bytes    | what                                                     |
// | -------- | -------------------------------------------------------- |
// | 1        | version, 1                                               |
// | 1        | bits: 1 lost                                             |
// | varint   | database number                                          |
// | 8        | index of the entry that named it                         |
// | varint   | size of the plain bytes                                  |
// | varint   | chunk size                                               |
// | varint   | key version                                              |
// | varint   | number of chunks on this page; then each chunk           |
//
// Every other page
//
// | bytes    | what                                                     |
// | -------- | -------------------------------------------------------- |
// | 1        | version, 1                                               |
// | varint   | number of chunks on this page; then each chunk           |
//
// Each chunk
//
// | bytes    | what                                                     |
// | -------- | -------------------------------------------------------- |
// | varint   | stored size                                              |
// | 4        | CRC-32C of the stored bytes                              |
//
// Each page but the last has 4,096 chunks. How many pages there are follows from size and chunk
// size.

/// The rows of a body, and their keys.
package enum BodyCoding {
    package static let pageChunkCount = 4_096

    /// The key of a page. Page 0 is the body's own row.
    package static func key(of body: BodyID, page: UInt32 = 0) -> Bytes {
        var writer = ByteWriter(reserving: 20)
        writer.write(body: body)
        if page > 0 {
            writer.write(raw: (0..<4).map { UInt8(truncatingIfNeeded: page >> (24 - 8 * $0)) })
        }
        return writer.bytes
    }

    /// Which body and page a key names.
    package static func decodeKey(_ key: Bytes) throws(DecodingError) -> (BodyID, page: UInt32) {
        var reader = ByteReader(key)
        let body = try reader.body()
        if reader.isAtEnd { return (body, 0) }
        var page: UInt32 = 0
        for _ in 0..<4 { page = page << 8 | UInt32(try reader.byte()) }
        try reader.finish()
        guard page > 0 else { throw DecodingError(.malformed, at: 16) }
        return (body, page)
    }

    package static func pageCount(chunkCount: UInt64) -> Int {
        max(1, (Int(chunkCount) + Self.pageChunkCount - 1) / Self.pageChunkCount)
    }

    /// Every page of a body's row, in the order of their keys.
    package static func pages(of manifest: BodyManifest) -> [Bytes] {
        precondition(manifest.isConsistent, "a manifest that does not fit together")
        return (0..<Self.pageCount(chunkCount: UInt64(manifest.chunks.count))).map { page in
            var writer = ByteWriter()
            writer.write(1 as UInt8)
            if page == 0 {
                writer.write(manifest.isLost ? 1 : 0 as UInt8)
                writer.write(varint: UInt64(manifest.database))
                writer.write(fixed: manifest.namedAt.raw)
                writer.write(varint: manifest.size)
                writer.write(varint: UInt64(manifest.chunkSize))
                writer.write(varint: UInt64(manifest.keyVersion))
            }
            let chunks = manifest.chunks.dropFirst(page * Self.pageChunkCount)
                .prefix(Self.pageChunkCount)
            writer.write(count: chunks.count)
            for chunk in chunks {
                writer.write(varint: UInt64(chunk.storedSize))
                writer.write(fixed: chunk.crc)
            }
            return writer.bytes
        }
    }

    /// The first bytes of a body's row, which say all but its chunks.
    package static let headSize = 40

    /// What the first page of a body's row, or its head, says of a body beside its chunks.
    package struct Head: Sendable {
        package var isLost: Bool
        package var database: UInt32
        package var namedAt: LogIndex
        package var size: UInt64
        package var chunkSize: UInt32
        package var keyVersion: UInt32

        package init(firstPage: Bytes) throws(DecodingError) {
            var reader = ByteReader(firstPage)
            try self.init(from: &reader)
        }

        init(from reader: inout ByteReader) throws(DecodingError) {
            try BodyCoding.version(&reader)
            let bits = try reader.byte()
            guard bits <= 1 else { throw DecodingError(.malformed, at: 1) }
            self.isLost = bits == 1
            self.database = try BodyCoding.number32(&reader)
            self.namedAt = LogIndex(try reader.fixed64())
            self.size = try reader.varint()
            self.chunkSize = try BodyCoding.number32(&reader)
            self.keyVersion = try BodyCoding.number32(&reader)
            guard self.size <= AssetLimits.bodySizeMax,
                AssetLimits.chunkSizes.contains(self.chunkSize)
            else { throw DecodingError(.malformed, at: reader.offset) }
        }

        package var chunkCount: UInt64 {
            BodyManifest.chunkCount(size: self.size, chunkSize: self.chunkSize)
        }
    }

    /// Puts a manifest together from all pages of its row.
    package static func manifest(of body: BodyID, pages: [Bytes]) throws(DecodingError)
        -> BodyManifest
    {
        guard let first = pages.first else { throw DecodingError(.truncated, at: 0) }
        var reader = ByteReader(first)
        let head = try Head(from: &reader)
        let count = head.chunkCount
        guard pages.count == Self.pageCount(chunkCount: count) else {
            throw DecodingError(.malformed, at: reader.offset)
        }
        var chunks: [BodyManifest.Chunk] = []
        for (page, bytes) in pages.enumerated() {
            if page > 0 {
                reader = ByteReader(bytes)
                try Self.version(&reader)
            }
            // A chunk takes five bytes at least, so a lie in the count reserves nothing.
            let onPage = try reader.count(minimumSize: 5)
            let left = count - UInt64(chunks.count)
            guard UInt64(onPage) == min(left, UInt64(Self.pageChunkCount)) else {
                throw DecodingError(.malformed, at: reader.offset)
            }
            for _ in 0..<onPage {
                let storedSize = try Self.number32(&reader)
                chunks.append(.init(storedSize: storedSize, crc: try reader.fixed32()))
            }
            try reader.finish()
        }
        let manifest = BodyManifest(
            body: body, database: head.database, namedAt: head.namedAt, size: head.size,
            chunkSize: head.chunkSize, keyVersion: head.keyVersion, isLost: head.isLost,
            chunks: chunks)
        guard manifest.isConsistent else { throw DecodingError(.malformed, at: 0) }
        return manifest
    }

    private static func version(_ reader: inout ByteReader) throws(DecodingError) {
        let version = try reader.byte()
        guard version == 1 else { throw DecodingError(.unknownVersion(version), at: 0) }
    }

    private static func number32(_ reader: inout ByteReader) throws(DecodingError) -> UInt32 {
        let start = reader.offset
        guard let value = UInt32(exactly: try reader.varint()) else {
            throw DecodingError(.malformed, at: start)
        }
        return value
    }
}

extension ByteWriter {
    /// Sixteen bytes, the high one first: names sort as their bytes do.
    package mutating func write(body: BodyID) { self.write(name: body.raw) }
}

extension ByteReader {
    package mutating func body() throws(DecodingError) -> BodyID { BodyID(try self.name()) }
}
