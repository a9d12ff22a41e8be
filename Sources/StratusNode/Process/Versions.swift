import StratusCompression
import StratusHTTP2
import StratusSQLite
import StratusTLS

/// What this program is made of: `--version`, and the checks before anything starts.
package enum Versions {
    package static let stratus = "0.1.0-dev"

    /// Name and version of every C library in use, as the running process finds them.
    package static var libraries: [(name: String, version: String)] {
        [
            ("SQLite", SQLiteLibrary.version), ("OpenSSL", OpenSSLLibrary.version),
            ("zlib", CompressionLibraries.zlibVersion), ("zstd", CompressionLibraries.zstdVersion),
            ("nghttp2", Nghttp2Library.version),
        ]
    }

    /// Flaws in these versions that Stratus works around.
    package static var knownFlaws: [(library: String, flaw: String)] {
        SQLiteLibrary.knownFlaws.map { ("SQLite", $0) }
    }

    /// Why a node cannot run with these libraries; empty when it can.
    package static var problems: [String] {
        SQLiteLibrary.problems + OpenSSLLibrary.problems + Nghttp2Library.problems
    }
}
