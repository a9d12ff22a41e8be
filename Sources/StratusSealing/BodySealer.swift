import StratusCoding
package import StratusModel

/// Seals and opens the chunks of one body: AES-256-GCM under a key that only this body has.
///
/// A body's name is drawn for each upload and each ordinal is sealed once, so no key meets a nonce
/// twice. No counter has to survive a crash, a restored backup or a cloned disk.
package struct BodySealer: Sendable {
    private let key: SecretBytes
    private let database: DatabaseID
    private let body: BodyID
    private let keyVersion: UInt32

    /// - Parameters:
    ///   - databaseKey: 32 bytes, of that version.
    ///   - database: with its bucket, where it has one.
    package init(
        databaseKey: SecretBytes, version: UInt32, database: DatabaseID, body: BodyID
    ) {
        precondition(databaseKey.count == 32, "a database key has 32 bytes")
        var info = Bytes("stratus body 1".utf8)
        info.append(0)
        info.append(contentsOf: withUnsafeBytes(of: body.raw.bigEndian) { Bytes($0) })
        self.key = KeyDerivation.derive(from: databaseKey, info: info)
        self.database = database
        self.body = body
        self.keyVersion = version
    }

    /// Seals one chunk. Each ordinal only once.
    ///
    /// - Parameters:
    ///   - content: the chunk's plain bytes, or the zstd frame of them, as `coding` says.
    ///   - place: with the size of the plain bytes.
    package func seal(_ content: Bytes, _ coding: ChunkCoding, at place: ChunkPlace) -> Bytes {
        AuthenticatedCipher.seal(
            content, key: self.key, nonce: place.nonce,
            associated: self.associated(coding, place), prefix: [coding.rawValue])
    }

    /// The content that was sealed, and its encoding. Nil for anything that was not sealed for this
    /// place of this body.
    ///
    /// A raw content has exactly the size of the place. A compressed one is still to be expanded,
    /// to no more than that size.
    package func open(_ sealed: Bytes, at place: ChunkPlace) -> (
        content: Bytes, coding: ChunkCoding
    )? {
        guard let first = sealed.first, let coding = ChunkCoding(rawValue: first),
            let content = AuthenticatedCipher.open(
                sealed, key: self.key, nonce: place.nonce,
                associated: self.associated(coding, place), prefixSize: 1),
            coding != .raw || content.count == Int(place.size)
        else { return nil }
        return (content, coding)
    }

    private func associated(_ coding: ChunkCoding, _ place: ChunkPlace) -> Bytes {
        place.associated(coding, of: self.body, in: self.database, keyVersion: self.keyVersion)
    }
}
