import StratusAdminModel
package import StratusModel

/// A file that an archive names, and what it is fetched by.
package struct FileToFetch: Sendable, Equatable {
    /// 32 hexadecimal digits: the file's name in the directory. A node that sends anything else is
    /// not believed, so no name leads out of the directory.
    package var name: String
    package var checksum: String
    package var size: UInt64
    package var ticket: String

    /// Nil: this is no such line.
    package init?(line: Bytes) {
        guard let file = (try? FetchLine(reading: line))?.fetch, Self.isName(file.file),
            !file.fileChecksum.isEmpty, file.size >= 0, Self.isTicket(file.ticket)
        else { return nil }
        self.name = file.file
        self.checksum = file.fileChecksum
        self.size = UInt64(file.size)
        self.ticket = file.ticket
    }

    /// The number that the name stands for.
    package var number: UInt128 { UInt128(self.name, radix: 16) ?? 0 }

    private static func isName(_ text: String) -> Bool {
        text.utf8.count == 32
            && text.utf8.allSatisfy { (0x30...0x39).contains($0) || (0x61...0x66).contains($0) }
    }

    private static func isTicket(_ text: String) -> Bool {
        (1...4_096).contains(text.utf8.count)
            && text.utf8.allSatisfy { byte in
                switch byte {
                case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, 0x2D, 0x5F: true
                default: false
                }
            }
    }
}

/// How often a file is asked for, and how long one export waits in all.
package struct FetchPatience: Sendable, Equatable {
    /// Before the second try, the third and the fourth.
    static let pauses: [Duration] = [.seconds(1), .seconds(2), .seconds(4)]
    /// What all pauses of one export take together. After that each file is asked for once.
    private var left = Duration.seconds(300)

    package init() {}

    /// The pause before another try; nil: there is none.
    ///
    /// - Parameter tryCount: how often the file was asked for.
    package mutating func pause(after tryCount: Int) -> Duration? {
        guard (1...Self.pauses.count).contains(tryCount), self.left > .zero else { return nil }
        let pause = min(Self.pauses[tryCount - 1], self.left)
        self.left -= pause
        return pause
    }

    /// How long one try may take.
    package static func deadline(for size: UInt64) -> Duration {
        .seconds(60) + .seconds(Int64(clamping: size >> 16))
    }
}
