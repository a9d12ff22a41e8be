import StratusModel

/// A file that holds files, as `tar` reads it: POSIX.1-1988 (ustar), without compression.
///
/// Each file is a header of 512 bytes and its contents, filled up with zeros to a multiple of 512;
/// two blocks of zeros end the archive.
struct TarArchive {
    private static let blockSize = 512
    /// The longest name that fits in a header.
    private static let nameSizeMax = 99

    private let milliseconds: Int64
    private var bytes = Bytes()

    /// - Parameter milliseconds: the time of every file, since 1970.
    init(at milliseconds: Int64) { self.milliseconds = milliseconds }

    mutating func add(_ name: String, _ contents: Bytes) {
        precondition(
            name.utf8.count <= Self.nameSizeMax && contents.count < 1 << 33, "fits into a header")
        var header = Bytes(repeating: 0, count: Self.blockSize)
        func write(_ text: String, at place: Int) {
            for (index, byte) in text.utf8.enumerated() { header[place + index] = byte }
        }
        func octal(_ value: Int, _ digits: Int, at place: Int) {
            let text = String(value, radix: 8)
            write(String(repeating: "0", count: digits - text.count) + text, at: place)
        }
        write(name, at: 0)
        octal(0o600, 7, at: 100)
        octal(0, 7, at: 108)
        octal(0, 7, at: 116)
        octal(contents.count, 11, at: 124)
        octal(Int(clamping: max(0, self.milliseconds / 1_000)), 11, at: 136)
        // The sum of the header's bytes counts its own place as spaces.
        write("        ", at: 148)
        write("0", at: 156)
        write("ustar", at: 257)
        write("00", at: 263)
        let sum = header.reduce(0) { $0 + Int($1) }
        octal(sum, 6, at: 148)
        header[154] = 0
        self.bytes += header + contents
        let rest = contents.count % Self.blockSize
        if rest > 0 { self.bytes += Bytes(repeating: 0, count: Self.blockSize - rest) }
    }

    /// The whole archive.
    func finish() -> Bytes { self.bytes + Bytes(repeating: 0, count: 2 * Self.blockSize) }
}
