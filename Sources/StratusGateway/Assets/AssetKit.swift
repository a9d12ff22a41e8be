package import StratusAssets
package import StratusIdentity
package import StratusModel
import StratusRecords
import StratusSealing

/// The settings of assets that a reload may change.
package struct AssetSettings: Sendable, Equatable {
    /// Where clients reach uploads and downloads; nil: at the address that a request came to.
    package var url: String?
    package var sizeMax: UInt64 = 1 << 30
    package var unattachedSizeMax: UInt64 = 10 << 30
    package var graceMilliseconds: Int64 = 3_600_000
    package var linkLifeMilliseconds: Int64 = 3_600_000
    package var deduplicates = true
    package var compresses = true
    /// Bytes a second at which a rotation of keys seals a file anew; 0: as fast as can be.
    package var resealingRate: UInt64 = 32 << 20

    package init() {}
}

/// Everything about assets that the gateway's handlers share: ciphers, keys, copies and memory.
package struct AssetKit: Sendable {
    package var ciphers: AssetCiphers
    package var keys: DatabaseKeys
    package var bodies: any BodyService
    package var buffers: TransferBuffers
    package var claims: UploadClaims
    /// The members of the partition that holds a database; nil where that is not known now.
    package var members: @Sendable (DatabaseID) async -> BodyMembers?
    /// Keeps the keys of ``ciphers`` up to date.
    package var keepUp: @Sendable () async throws -> Void
    /// Whether a user may still upload: the container is open, and the user is there.
    package var isOpen: @Sendable (ContainerReference, _ user: String) async throws -> Bool
    package var sleep: @Sendable (Duration) async -> Void
    package var settings: AssetSettings

    package init(
        ciphers: AssetCiphers, keys: DatabaseKeys, bodies: any BodyService,
        buffers: TransferBuffers, claims: UploadClaims = UploadClaims(),
        members: @escaping @Sendable (DatabaseID) async -> BodyMembers?,
        keepUp: @escaping @Sendable () async throws -> Void,
        isOpen: @escaping @Sendable (ContainerReference, _ user: String) async throws -> Bool,
        sleep: @escaping @Sendable (Duration) async -> Void, settings: AssetSettings
    ) {
        self.ciphers = ciphers
        self.keys = keys
        self.bodies = bodies
        self.buffers = buffers
        self.claims = claims
        self.members = members
        self.keepUp = keepUp
        self.isOpen = isOpen
        self.sleep = sleep
        self.settings = settings
    }

    /// The rules that pins of a database are decided by.
    func rules(of database: DatabaseID, _ limits: Limits) -> AssetRules {
        var rules = AssetRules()
        rules.pinMilliseconds = AssetReceipt.lifeMilliseconds
        rules.graceMilliseconds = self.settings.graceMilliseconds
        rules.unattachedSizeMax = self.settings.unattachedSizeMax
        let quota =
            database.scope == .public
            ? limits.publicDatabaseSizeMax : limits.privateDatabaseSizeMax
        rules.databaseSizeMax = UInt64(quota.raw)
        return rules
    }
}

/// Makes the download links of one answer: each asset of a record gets a URL of its own.
struct AssetLinks: Sendable {
    let ciphers: AssetCiphers
    let origin: String
    /// The caller's database, without a bucket.
    let database: DatabaseID
    let layout: ContainerLayout
    let expiresMilliseconds: Int64

    /// Ends with the literal `${f}`, which clients replace with a file's name.
    func url(of asset: AssetID, in record: Record) -> String {
        let database = self.layout.database(of: record, in: self.database)
        let link = DownloadLink(
            asset: asset, database: database, expiresMilliseconds: self.expiresMilliseconds)
        return self.origin + AssetPath.downloads + link.text(sealedWith: self.ciphers.links)
            + "/${f}"
    }
}

extension ContainerLayout {
    /// The part of a database that holds a record.
    ///
    /// - Parameter database: the whole of it.
    func database(of record: Record, in database: DatabaseID) -> DatabaseID {
        if database.scope == .private {
            return self.privateDatabase(of: database.owner, in: database.container)
                .part(of: record.zone.name)
        }
        guard self.publicBucketCount > 1 else { return database }
        var database = database
        database.bucket = Bucket(0, of: self.publicBucketCount).sibling(of: record.name)
        return database
    }
}

extension Exchange {
    /// Opens the encrypted fields of records that this request answers with.
    ///
    /// - Parameter sealer: what this request has sealed fields with.
    func opened(_ records: [Record], with sealer: FieldSealer? = nil) async throws -> OpenedFields {
        if self.route.scope == .public { return .none }
        let (layout, container) = (self.holder.layout, self.route.container)
        return try await self.kernel.keys.open(records, with: sealer) { record in
            // Whoever reads a shared zone: its fields are sealed with its owner's keys.
            layout.privateDatabase(of: record.zone.owner, in: container)
                .part(of: record.zone.name)
        }
    }
}

/// The paths of uploads and downloads.
package enum AssetPath {
    package static let root = "/assets/"
    static let uploads = "/assets/u/"
    static let downloads = "/assets/d/"
}
