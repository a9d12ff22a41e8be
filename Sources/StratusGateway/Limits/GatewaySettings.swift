import StratusModel
package import StratusRecords
import StratusRuntime

/// How a gateway behaves where there is a choice. What Apple leaves unconfirmed has a switch, and
/// the default is what we believe.
package struct GatewaySettings: Sendable, Equatable {
    package enum DevelopmentSchema: Sendable, Equatable {
        /// Types and fields must exist: what Apple's web services do.
        case strict
        /// A save makes the types and fields it needs: what Apple's native development saves do.
        case justInTime
    }

    package var developmentSchema = DevelopmentSchema.strict
    /// Whether a filter or sort needs the index Apple would need, or a scan may serve it. Nil: as
    /// the container's schema is kept, so that a strict one is strict in everything.
    package var requiresIndexes: Bool?
    /// One client needs `syncToken` and `moreComing` in the error entries of `changes/zone`;
    /// another takes such an entry for an empty success and stops syncing. The documented form has
    /// neither.
    package var changesErrorsCarryTokens = false
    package var ruleFlags: RecordRules.Flags = []
    /// Whether answers have the keys that only Stratus has: what an error means exactly, the
    /// server's record beside a conflict, why a zone was deleted.
    package var hasExtensions = true
    /// Where changed records are counted. A reload keeps it.
    package var counts = RecordCounts()
    /// How long a schema may be served from memory before it is read again.
    package var schemaLifetime: Duration = .seconds(1)

    /// Requests a second of one user, key or address at this node; nil: as many as come.
    package var requestRateMax: Int?
    /// The same of one container, whoever asks; with one API token; from one address, good
    /// credentials or not.
    package var containerRequestRateMax: Int?
    package var tokenRequestRateMax: Int?
    package var addressRequestRateMax: Int?
    /// People that one user may look up in a minute at this node; nil: as many as come.
    package var userLookUpRateMax: Int? = 100
    /// Batches of changes that one user may send to a key-value store in a minute at this node;
    /// nil: as many as come.
    package var keyValueRateMax: Int?

    /// Polls and waits that this node holds at once.
    package var heldRequestCountMax = 10_000
    /// Live streams of one user at this node, and of all of them.
    package var userLiveStreamCountMax = 32
    package var liveStreamCountMax = 2_000

    /// Whether passwords of WebDAV are taken without TLS, where something else keeps others out.
    package var takesPlainPasswords = false

    package init() {}

    func growsSchema(in environment: Environment) -> Bool {
        environment == .development && self.developmentSchema == .justInTime
    }

    func requiresIndexes(in environment: Environment) -> Bool {
        self.requiresIndexes ?? !self.growsSchema(in: environment)
    }
}

/// The places of the requests that a node holds.
extension GatewaySettings {
    /// The share of a user in the polls and waits of a node.
    static let userWaitCount = 64

    var waitBounds: PlaceBounds {
        PlaceBounds(total: self.heldRequestCountMax, share: Self.userWaitCount)
    }

    var streamBounds: PlaceBounds {
        PlaceBounds(
            total: self.liveStreamCountMax, share: self.userLiveStreamCountMax,
            most: self.userLiveStreamCountMax)
    }

    static let strangerBounds = PlaceBounds(total: 256, share: 32)
}
