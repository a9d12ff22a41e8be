package import StratusModel

/// Reads a database file page by page on the disk and checks every checksum, while others have the
/// database open. Nobody else would notice that cold pages rot.
///
/// Valid only while no checkpoint of an earlier process is unfinished: its half-copied pages are no
/// damage, and the next checkpoint copies them again.
package struct PageAudit {
    /// SQLite locks bytes there and never writes the page.
    private static let lockPage = UInt32(0x4000_0000 / Connection.pageSize) + 1
    /// A page may be on its way from the WAL while it is read.
    private static let readCountMax = 3

    private let file: any File
    private let tag: UInt32
    /// Checked so far.
    package private(set) var pageCount: UInt32 = 0

    package init(_ path: DiskPath, in files: any Files, fileTag: UInt32) throws(DiskError) {
        self.file = try files.open(path, create: false)
        self.tag = fileTag
    }

    /// Checks so many pages more.
    /// - Returns: how many there were, fewer only at the end of the file, and which are not sound.
    package mutating func next(_ countMax: Int) throws(DiskError) -> (
        count: Int, damaged: [UInt32]
    ) {
        let size = Connection.pageSize
        let left = Int(try self.file.length) / size - Int(self.pageCount)
        let count = max(0, min(countMax, left))
        guard count > 0 else { return (0, []) }
        let buffer = UnsafeMutableRawBufferPointer.allocate(
            byteCount: count * size, alignment: 16)
        defer { buffer.deallocate() }
        let read = try self.file.read(buffer, at: UInt64(self.pageCount) * UInt64(size))
        var damaged: [UInt32] = []
        for position in 0..<(read / size) {
            let number = self.pageCount + UInt32(position) + 1
            let page = UnsafeMutableRawBufferPointer(
                rebasing: buffer[(position * size)..<((position + 1) * size)])
            if try !self.isSound(page, number) { damaged.append(number) }
        }
        self.pageCount += UInt32(read / size)
        return (read / size, damaged)
    }

    private func isSound(_ page: UnsafeMutableRawBufferPointer, _ number: UInt32)
        throws(DiskError) -> Bool
    {
        if number == Self.lockPage { return true }
        for _ in 1..<Self.readCountMax {
            if PageChecksum.isSound(UnsafeRawBufferPointer(page), number: number, tag: self.tag) {
                return true
            }
            let offset = UInt64(number - 1) * UInt64(page.count)
            guard try self.file.read(page, at: offset) == page.count else { return false }
        }
        return PageChecksum.isSound(UnsafeRawBufferPointer(page), number: number, tag: self.tag)
    }
}
