import CNghttp2

/// The nghttp2 that this process is linked with.
package enum Nghttp2Library {
    package static var version: String { String(cString: nghttp2_version(0).pointee.version_str) }

    /// Why this library cannot be used; empty when it can.
    package static var problems: [String] {
        nghttp2_version(0x013400) != nil ? [] : ["nghttp2 \(Self.version) is older than 1.52"]
    }
}
