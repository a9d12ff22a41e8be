import StratusModel

/// One file of the shared log.
///
/// `@unchecked Sendable`: everything but `file` is guarded by the log's lock; `file` takes
/// positioned reads and writes from any thread. Remove this once `File` is `Sendable`.
final class LogSegment: @unchecked Sendable {
    /// The sizes that a segment may have: multiples of 8 between these.
    static let sizes = 4_096...(1 << 30)

    static func isPossible(size: UInt64) -> Bool {
        size % 8 == 0 && size <= UInt64(Self.sizes.upperBound)
            && size >= UInt64(Self.sizes.lowerBound)
    }

    let number: UInt32
    let path: DiskPath
    let file: any File
    /// The size of the whole file. A segment keeps the size that it was made with, even if newer
    /// ones get another.
    let size: Int
    /// The header of its present use; nil for a spare.
    var header: LogFormat.SegmentHeader?
    /// The last index of each group that has entries here.
    var lastIndexes: [GroupID: LogIndex] = [:]
    /// Whether all of it is known to be on the medium. False for a spare from an earlier process:
    /// its sync may have failed, although the system shows its full length.
    let isWhole: Bool

    init(
        number: UInt32, path: DiskPath, file: any File, size: Int,
        header: LogFormat.SegmentHeader?, isWhole: Bool = true
    ) {
        self.number = number
        self.path = path
        self.file = file
        self.size = size
        self.header = header
        self.isWhole = isWhole
    }

    func note(_ index: LogIndex, of group: GroupID) {
        self.lastIndexes[group] = max(self.lastIndexes[group] ?? .zero, index)
    }

    static func path(_ number: UInt32, in directory: DiskPath) -> DiskPath {
        let digits = String(number)
        let zeros = String(repeating: "0", count: 8 - digits.count)
        return directory.appending(zeros + digits + ".seg")
    }

    static func number(_ name: String) -> UInt32? {
        guard name.hasSuffix(".seg"), name.utf8.count == 12 else { return nil }
        return UInt32(name.dropLast(4))
    }

    /// Makes a segment full of zeros, durably. Its blocks are then allocated and written, so a
    /// later sync only has data to move. An existing file of this number is overwritten.
    static func make(
        _ number: UInt32, in directory: DiskPath, size: Int, of files: any Files
    ) throws(DiskError) -> LogSegment {
        let path = Self.path(number, in: directory)
        let file = try files.open(path, create: true)
        let zeros = UnsafeMutableRawBufferPointer.allocate(
            byteCount: min(size, 1 << 20), alignment: 16)
        defer { zeros.deallocate() }
        zeros.initializeMemory(as: UInt8.self, repeating: 0)
        var offset = 0
        do throws(DiskError) {
            while offset < size {
                let part = zeros[..<min(zeros.count, size - offset)]
                try file.write(UnsafeRawBufferPointer(rebasing: part), at: UInt64(offset))
                offset += part.count
            }
        } catch {
            // Half a segment helps nobody, and others may need the room.
            if error.kind == .full { try? files.remove(path) }
            throw error
        }
        try file.sync()
        try files.syncDirectory(directory)
        return LogSegment(number: number, path: path, file: file, size: size, header: nil)
    }
}
