import StratusCompression
import StratusTLS

/// The versions of what every program is made of, for `--version` and for the checks before
/// anything starts.
package enum Versions {
    package static let stratus = "0.1.0-dev"

    /// The version of this release, and of the C libraries that every program links.
    package static var common: VersionText {
        VersionText(
            libraries: [
                ("OpenSSL", OpenSSLLibrary.version), ("zlib", CompressionLibraries.zlibVersion),
                ("zstd", CompressionLibraries.zstdVersion),
            ], problems: OpenSSLLibrary.problems)
    }
}
