import StratusCoding
import StratusIdentity
package import StratusModel
package import StratusSealing

// Texts about assets that clients carry, version 1. Each is base64 of a URL's alphabet over what
// ``TokenCipher`` seals for the kind of text. Nobody but the nodes reads or makes them.
//
// | bytes    | upload ticket                | receipt               | download link         |
// | -------- | ---------------------------- | --------------------- | --------------------- |
// | 1        | version, 1                   | the same              | the same              |
// | 8        | expiry, milliseconds         | the same              | the same              |
// | database | where the body goes          | where the asset is    | where the asset is    |
// | 16       | upload, high byte first      | asset                 | asset                 |
// | 16       |                              | its pin               |                       |
// | text     | the user                     | the user              |                       |
// | varint   | the size allowed             |                       |                       |
//
// A database is: text container, 1 environment, 1 scope, text owner, flag and 2 bytes of a bucket:
// its number, of how many.

/// Why a text about an asset is not accepted.
package enum AssetTextRefusal: Error, Sendable, Hashable {
    /// It was altered, made elsewhere, or is a text of another kind.
    case unknown
    case expired
}

/// A permission to upload one body: the URL that `assets/upload` answers.
package struct UploadTicket: Sendable, Hashable {
    /// Drawn for each token of `assets/upload`.
    package var upload: UInt128
    /// With its bucket, where it has one.
    package var database: DatabaseID
    package var user: String
    package var sizeMax: UInt64
    package var expiresMilliseconds: Int64

    package init(
        upload: UInt128, database: DatabaseID, user: String, sizeMax: UInt64,
        expiresMilliseconds: Int64
    ) {
        self.upload = upload
        self.database = database
        self.user = user
        self.sizeMax = sizeMax
        self.expiresMilliseconds = expiresMilliseconds
    }

    package static let lifeMilliseconds: Int64 = 15 * 60_000
    static let kind = Bytes("stratus upload ticket 1".utf8)

    package func text(sealedWith cipher: TokenCipher) -> String {
        AssetText.text(cipher, Self.kind, self.expiresMilliseconds, self.database) {
            $0.writeName(self.upload)
            $0.write(text: self.user)
            $0.write(varint: self.sizeMax)
        }
    }

    package init(_ text: String, openedWith cipher: TokenCipher, at now: Int64)
        throws(AssetTextRefusal)
    {
        self = try AssetText.read(text, cipher, Self.kind, at: now) {
            (reader, expires, database) throws(DecodingError) in
            UploadTicket(
                upload: try reader.name(), database: database, user: try reader.text(),
                sizeMax: try reader.varint(), expiresMilliseconds: expires)
        }
    }
}

/// The proof that a body was uploaded and is pinned: `receipt` in an asset's dictionary.
package struct AssetReceipt: Sendable, Hashable {
    package var asset: AssetID
    /// What keeps the asset until a record is saved with this receipt: the upload's ticket, or a
    /// drawn one of its own.
    package var pin: UploadID
    /// With its bucket, where it has one.
    package var database: DatabaseID
    package var user: String
    package var expiresMilliseconds: Int64

    package init(
        asset: AssetID, pin: UploadID, database: DatabaseID, user: String,
        expiresMilliseconds: Int64
    ) {
        self.asset = asset
        self.pin = pin
        self.database = database
        self.user = user
        self.expiresMilliseconds = expiresMilliseconds
    }

    package static let lifeMilliseconds: Int64 = 24 * 3_600_000
    static let kind = Bytes("stratus asset receipt 1".utf8)

    package func text(sealedWith cipher: TokenCipher) -> String {
        AssetText.text(cipher, Self.kind, self.expiresMilliseconds, self.database) {
            $0.writeName(self.asset.raw)
            $0.writeName(self.pin.raw)
            $0.write(text: self.user)
        }
    }

    package init(_ text: String, openedWith cipher: TokenCipher, at now: Int64)
        throws(AssetTextRefusal)
    {
        self = try AssetText.read(text, cipher, Self.kind, at: now) {
            (reader, expires, database) throws(DecodingError) in
            AssetReceipt(
                asset: AssetID(try reader.name()), pin: UploadID(try reader.name()),
                database: database, user: try reader.text(), expiresMilliseconds: expires)
        }
    }
}

/// A permission to download one asset: what `downloadURL` holds.
package struct DownloadLink: Sendable, Hashable {
    package var asset: AssetID
    /// With its bucket, where it has one.
    package var database: DatabaseID
    package var expiresMilliseconds: Int64

    package init(asset: AssetID, database: DatabaseID, expiresMilliseconds: Int64) {
        self.asset = asset
        self.database = database
        self.expiresMilliseconds = expiresMilliseconds
    }

    /// Expiries are multiples of this, so that equal reads give equal URLs.
    static let stepMilliseconds: Int64 = 5 * 60_000
    static let kind = Bytes("stratus download link 1".utf8)

    /// The end of a link that is made now: at least `life` away.
    package static func expiry(at now: Int64, life: Int64) -> Int64 {
        let end = now + max(0, life)
        let step = Self.stepMilliseconds
        return (end / step + (end % step > 0 ? 1 : 0)) * step
    }

    package func text(sealedWith cipher: TokenCipher) -> String {
        AssetText.text(
            cipher, Self.kind, self.expiresMilliseconds, self.database, of: self.asset)
    }

    package init(_ text: String, openedWith cipher: TokenCipher, at now: Int64)
        throws(AssetTextRefusal)
    {
        let (asset, database, expires) = try AssetText.asset(text, cipher, Self.kind, at: now)
        self.init(asset: asset, database: database, expiresMilliseconds: expires)
    }
}

/// A permission to read what was published: the link that its owner gives away.
///
/// | bytes  | what the other texts have, then      |
/// | ------ | ------------------------------------ |
/// | varint | the place of the publication         |
/// | 16     | its secret                           |
package struct PublishedLink: Sendable, Hashable {
    package var slot: Int
    package var secret: UInt128
    package var database: DatabaseID
    package var expiresMilliseconds: Int64

    package init(slot: Int, secret: UInt128, database: DatabaseID, expiresMilliseconds: Int64) {
        self.slot = slot
        self.secret = secret
        self.database = database
        self.expiresMilliseconds = expiresMilliseconds
    }

    static let kind = Bytes("stratus published link 1".utf8)

    package func text(sealedWith cipher: TokenCipher) -> String {
        AssetText.text(cipher, Self.kind, self.expiresMilliseconds, self.database) {
            $0.write(varint: UInt64(max(0, self.slot)))
            $0.writeName(self.secret)
        }
    }

    package init(_ text: String, openedWith cipher: TokenCipher, at now: Int64)
        throws(AssetTextRefusal)
    {
        self = try AssetText.read(text, cipher, Self.kind, at: now) {
            (reader, expires, database) throws(DecodingError) in
            PublishedLink(
                slot: Int(clamping: try reader.varint()), secret: try reader.name(),
                database: database, expiresMilliseconds: expires)
        }
    }
}

/// A permission to read one file that an export named. Only the administrators' listener takes it.
///
/// It has what a download link has.
package struct ExportTicket: Sendable, Hashable {
    package var asset: AssetID
    /// With its bucket, where it has one.
    package var database: DatabaseID
    package var expiresMilliseconds: Int64

    package init(asset: AssetID, database: DatabaseID, expiresMilliseconds: Int64) {
        self.asset = asset
        self.database = database
        self.expiresMilliseconds = expiresMilliseconds
    }

    /// As long as `stratusctl` lets one export take.
    package static let lifeMilliseconds: Int64 = 7 * 24 * 3_600_000
    static let kind = Bytes("stratus export ticket 1".utf8)

    package func text(sealedWith cipher: TokenCipher) -> String {
        AssetText.text(
            cipher, Self.kind, self.expiresMilliseconds, self.database, of: self.asset)
    }

    package init(_ text: String, openedWith cipher: TokenCipher, at now: Int64)
        throws(AssetTextRefusal)
    {
        let (asset, database, expires) = try AssetText.asset(text, cipher, Self.kind, at: now)
        self.init(asset: asset, database: database, expiresMilliseconds: expires)
    }
}

/// What all kinds of text have in common.
private enum AssetText {
    /// Longer texts are not looked at: three names of 255 characters fit.
    static let sizeMax = 2_048

    static func text(
        _ cipher: TokenCipher, _ kind: Bytes, _ expires: Int64, _ database: DatabaseID,
        _ rest: (inout ByteWriter) -> Void
    ) -> String {
        var writer = ByteWriter(reserving: 160)
        writer.write(1 as UInt8)
        writer.write(fixed: UInt64(bitPattern: expires))
        writer.write(database)
        rest(&writer)
        return Base64URL.encode(cipher.seal(writer.bytes, for: kind))
    }

    /// A text that names an asset and nothing else.
    static func text(
        _ cipher: TokenCipher, _ kind: Bytes, _ expires: Int64, _ database: DatabaseID,
        of asset: AssetID
    ) -> String {
        Self.text(cipher, kind, expires, database) { $0.writeName(asset.raw) }
    }

    static func asset(
        _ text: String, _ cipher: TokenCipher, _ kind: Bytes, at now: Int64
    ) throws(AssetTextRefusal) -> (AssetID, DatabaseID, expiresMilliseconds: Int64) {
        try Self.read(text, cipher, kind, at: now) {
            (reader, expires, database) throws(DecodingError) in
            (AssetID(try reader.name()), database, expires)
        }
    }

    static func read<Text>(
        _ text: String, _ cipher: TokenCipher, _ kind: Bytes, at now: Int64,
        _ rest: (inout ByteReader, Int64, DatabaseID) throws(DecodingError) -> Text
    ) throws(AssetTextRefusal) -> Text {
        guard text.utf8.count <= Self.sizeMax, let sealed = Base64URL.decode(text[...]),
            let content = cipher.open(sealed, for: kind)
        else { throw .unknown }
        let found: (expires: Int64, text: Text)
        do throws(DecodingError) {
            var reader = ByteReader(content)
            let version = try reader.byte()
            guard version == 1 else { throw DecodingError(.unknownVersion(version), at: 0) }
            let expires = Int64(bitPattern: try reader.fixed64())
            let database = try reader.database()
            found = (expires, try rest(&reader, expires, database))
            try reader.finish()
        } catch { throw .unknown }
        guard now < found.expires else { throw .expired }
        return found.text
    }
}

extension ByteWriter {
    fileprivate mutating func writeName(_ name: UInt128) {
        self.write(raw: withUnsafeBytes(of: name.bigEndian) { Bytes($0) })
    }

    fileprivate mutating func write(_ database: DatabaseID) {
        self.write(text: database.container.container)
        self.write(database.container.environment.rawValue)
        self.write(database.scope.rawValue)
        self.write(text: database.owner)
        self.write(flag: database.bucket != nil)
        if let bucket = database.bucket {
            self.write(bucket.number)
            self.write(bucket.count)
        }
    }
}

extension ByteReader {
    fileprivate mutating func name() throws(DecodingError) -> UInt128 {
        try self.raw(16).reduce(0) { $0 << 8 | UInt128($1) }
    }

    fileprivate mutating func database() throws(DecodingError) -> DatabaseID {
        let container = try self.text()
        let start = self.offset
        guard let environment = Environment(rawValue: try self.byte()),
            let scope = DatabaseScope(rawValue: try self.byte()), scope != .shared
        else { throw DecodingError(.malformed, at: start) }
        let owner = try self.text()
        var bucket: Bucket?
        if try self.flag() {
            let (number, count) = (Int(try self.byte()), Int(try self.byte()))
            guard Bucket.isBucket(number, of: count) else {
                throw DecodingError(.malformed, at: start)
            }
            bucket = Bucket(number, of: count)
        }
        guard (scope == .public) == owner.isEmpty else {
            throw DecodingError(.malformed, at: start)
        }
        return DatabaseID(
            container: ContainerReference(container: container, environment: environment),
            scope: scope, owner: owner, bucket: bucket)
    }
}
