package import StratusModel

/// `fileChecksum` of CloudKit's wire format: a salted SHA-1 behind a byte for its kind. Texts have it
/// in base64.
///
/// It tells that bytes are the right ones where nobody means harm: SHA-1 does not resist collisions.
package struct FileChecksum {
    package static let salt =
        Bytes("com.apple.XattrObjectSalt".utf8) + [0] + Bytes("com.apple.DataObjectSalt".utf8)
        + [0]
    private static let kind: UInt8 = 1

    private let hash = RunningHash(.sha1)

    package init() { self.hash.update(Self.salt) }

    package func update(_ bytes: Bytes) { self.hash.update(bytes) }

    /// To be asked once.
    package func finish() -> Bytes { Self.checksum(ofSHA1: self.hash.finish()) }

    /// - Parameter digest: of the salt and the file's bytes.
    package static func checksum(ofSHA1 digest: Bytes) -> Bytes { [Self.kind] + digest }
}
