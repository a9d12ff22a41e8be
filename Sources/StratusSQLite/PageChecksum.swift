import CShims

// The last 8 bytes of every page of a database file, version 1
//
// | bytes | what                                                                                  |
// | ----- | ------------------------------------------------------------------------------------- |
// | 4     | CRC-32C of: the page without these 8 bytes, its number (4), the file's tag (4)        |
// | 4     | the file's tag                                                                        |
//
// All integers little-endian. SQLite's header byte 20 (reserved bytes a page) is 8.

/// Writes and checks the checksum in a page's reserved bytes.
enum PageChecksum {
    static let size = 8

    static func crc(_ page: UnsafeRawBufferPointer, number: UInt32, tag: UInt32) -> UInt32 {
        let content = stratus_crc32c(0, page.baseAddress, page.count - Self.size)
        var place = (number.littleEndian, tag.littleEndian)
        return stratus_crc32c(content, &place, 8)
    }

    static func seal(_ page: UnsafeMutableRawBufferPointer, number: UInt32, tag: UInt32) {
        let crc = Self.crc(UnsafeRawBufferPointer(page), number: number, tag: tag)
        let end = page.count - Self.size
        page.storeBytes(of: crc.littleEndian, toByteOffset: end, as: UInt32.self)
        page.storeBytes(of: tag.littleEndian, toByteOffset: end + 4, as: UInt32.self)
    }

    static func isSound(_ page: UnsafeRawBufferPointer, number: UInt32, tag: UInt32) -> Bool {
        let end = page.count - Self.size
        let stored = UInt32(littleEndian: page.loadUnaligned(fromByteOffset: end, as: UInt32.self))
        let storedTag = UInt32(
            littleEndian: page.loadUnaligned(fromByteOffset: end + 4, as: UInt32.self))
        return storedTag == tag && stored == Self.crc(page, number: number, tag: tag)
    }
}
