import Glibc
package import StratusModel

/// Standard output and standard error: whole texts, written at once.
package enum Terminal {
    package static let output: Int32 = 1
    package static let errors: Int32 = 2

    package static func isTerminal(_ descriptor: Int32) -> Bool { isatty(descriptor) == 1 }

    /// Columns of the terminal; 80 where there is none.
    package static var width: Int {
        var size = winsize()
        guard ioctl(Self.output, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0 else { return 80 }
        return Int(size.ws_col)
    }

    /// - Returns: whether all of it was written: a pipe may have closed, a disk may be full.
    @discardableResult
    package static func write(_ text: String, to descriptor: Int32 = Terminal.output) -> Bool {
        Self.write(Bytes(text.utf8), to: descriptor)
    }

    @discardableResult
    package static func write(_ bytes: Bytes, to descriptor: Int32) -> Bool {
        bytes.withUnsafeBytes { buffer in
            var offset = 0
            while offset < buffer.count, let start = buffer.baseAddress {
                let count = Glibc.write(descriptor, start + offset, buffer.count - offset)
                if count > 0 {
                    offset += count
                } else if errno != EINTR {
                    return false
                }
            }
            return true
        }
    }

    package static var environment: [(name: String, value: String)] {
        var all: [(name: String, value: String)] = []
        var next = environ
        while let entry = next.pointee {
            let text = String(cString: entry)
            if let equals = text.firstIndex(of: "=") {
                all.append((String(text[..<equals]), String(text[text.index(after: equals)...])))
            }
            next += 1
        }
        return all
    }
}
