package import StratusModel

/// One device, or one poll token, of a user: as administrators see it. Never its address.
package struct PushDevice: Sendable, Equatable {
    package enum Kind: String, Sendable {
        case poll
        case apns
        case webPush = "web push"
        /// Its row is gone.
        case unknown
    }

    /// The keyed hash that names it, or the public half of a poll token.
    package var token: Bytes
    package var kind: Kind
    /// APNs: the bundle identifier, empty for the first of the key. Web Push: the key's number.
    package var topic = ""
    package var environment: Environment?
    /// When it was registered last, milliseconds; nil for poll tokens.
    package var registeredAt: Int64?
    package var expiresAt: Int64?
    /// Events that it has not been told, in all databases. Most of them concern nobody.
    package var behind: UInt64 = 0
    /// When its place was moved last.
    package var movedAt: Int64
    /// Why it would be told nothing now; nil: it would.
    package var trouble: String?

    package init(token: Bytes, kind: Kind, movedAt: Int64) {
        self.token = token
        self.kind = kind
        self.movedAt = movedAt
    }
}

/// What one subscription says to a change that somebody could make.
package struct PushFinding: Sendable, Equatable {
    package var subscription: String
    package var kind: String
    package var fires: Bool
    package var why: String

    package init(subscription: String, kind: String, fires: Bool, why: String) {
        self.subscription = subscription
        self.kind = kind
        self.fires = fires
        self.why = why
    }
}

/// Why a change would reach a user's devices, or would not.
package struct PushExplanation: Sendable, Equatable {
    package var hasRecord: Bool
    package var findings: [PushFinding]
    /// Whether there are subscriptions that were not asked.
    package var isCut: Bool
    package var devices: [PushDevice]

    package init(
        hasRecord: Bool, findings: [PushFinding], isCut: Bool, devices: [PushDevice]
    ) {
        self.hasRecord = hasRecord
        self.findings = findings
        self.isCut = isCut
        self.devices = devices
    }

    /// Whether at least one device would be told.
    package var reaches: Bool {
        self.findings.contains(where: \.fires) && self.devices.contains { $0.trouble == nil }
    }
}

/// A change that somebody could make.
package struct PushQuestion: Sendable, Equatable {
    package enum Change: String, Sendable, CaseIterable {
        case create, update, delete
    }

    package var container: ContainerReference
    package var user: String
    package var isPublic: Bool
    package var zone: String
    package var record: String
    package var change: Change

    package init(
        container: ContainerReference, user: String, isPublic: Bool, zone: String, record: String,
        change: Change
    ) {
        self.container = container
        self.user = user
        self.isPublic = isPublic
        self.zone = zone
        self.record = record
        self.change = change
    }
}
