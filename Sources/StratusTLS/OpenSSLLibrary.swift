import COpenSSL

/// The OpenSSL that this process is linked with.
package enum OpenSSLLibrary {
    package static var version: String { String(cString: OpenSSL_version(OPENSSL_VERSION_STRING)) }

    /// Why this library cannot be used; empty when it can.
    package static var problems: [String] {
        OpenSSL_version_num() >= 0x3000_0000 ? [] : ["OpenSSL \(Self.version) is older than 3.0"]
    }
}
