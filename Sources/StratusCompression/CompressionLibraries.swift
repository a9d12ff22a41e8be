import CZlib
import CZstd

/// The compression libraries that this process is linked with.
package enum CompressionLibraries {
    package static var zlibVersion: String { String(cString: CZlib.zlibVersion()) }
    package static var zstdVersion: String { String(cString: ZSTD_versionString()) }
}
