import StratusConfiguration
package import StratusModel
package import StratusProcess
package import StratusRuntime
import StratusSealing
import Synchronization

/// The administrators' token: in a file that only the node's user can read, made at the first
/// start.
///
/// The running node keeps the SHA-256 of it and compares hashes in constant time: the token itself
/// is in no memory dump, and how much of a guess was right cannot be measured.
package final class AdminToken: Sendable {
    package enum Failure: Error, Sendable, CustomStringConvertible {
        case file(SmallFile.Failure)
        /// Mode, or something that is no file.
        case unfit(String)
        case malformed(path: String)

        package var description: String {
            switch self {
            case .file(let failure): failure.description
            case .unfit(let text): text
            case .malformed(let path):
                "'\(path)' must hold one token of at least 32 letters and digits, and nothing else"
            }
        }
    }

    package let path: String
    private let hash: Mutex<Bytes>

    /// Reads the token's file, or makes one.
    ///
    /// - Parameters:
    ///   - shared: the text of the token to make; nil or empty: it is drawn.
    ///   - draw: 256 unpredictable bits.
    package init(path: String, shared: Bytes? = nil, draw: () -> Bytes) throws(Failure) {
        self.path = path
        if SmallFile.state(path) == .absent {
            var text = shared ?? []
            if text.isEmpty {
                let drawn = draw()
                precondition(drawn.count >= 32, "a token is 256 bits")
                text = Self.hexadecimal(drawn)
            }
            do { try SmallFile.createSecret(path, text + [0x0A]) } catch {
                // Another process was faster: its token is the token.
                if !error.exists { throw .file(error) }
            }
        }
        self.hash = Mutex(try Self.read(path))
    }

    /// After SIGHUP: the file may hold another token. The old one counts until this returns.
    package func reload() throws(Failure) {
        let hash = try Self.read(self.path)
        self.hash.withLock { $0 = hash }
    }

    package func matches(_ token: Secret<String>) -> Bool {
        let presented = SHA256.hash(Bytes(token.reveal().utf8))
        return SHA256.areEqual(presented, self.hash.withLock { $0 })
    }

    private static func read(_ path: String) throws(Failure) -> Bytes {
        SHA256.hash(try Self.text(path))
    }

    /// The token in a file.
    static func text(_ path: String) throws(Failure) -> Bytes {
        if let problem = ConfigurationReader.problem(
            SmallFile.state(path), path: path, secret: true)
        {
            throw .unfit(problem)
        }
        var bytes: Bytes
        do { bytes = try SmallFile.read(path, limit: .kibibytes(4)) } catch { throw .file(error) }
        while let last = bytes.last, last == 0x0A || last == 0x0D || last == 0x20 {
            bytes.removeLast()
        }
        let isToken = bytes.count >= 32 && bytes.allSatisfy { $0 > 0x20 && $0 < 0x7F }
        guard isToken else { throw .malformed(path: path) }
        return bytes
    }

    static func hexadecimal(_ bytes: Bytes) -> Bytes {
        let digits = Array("0123456789abcdef".utf8)
        return bytes.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }
    }
}
