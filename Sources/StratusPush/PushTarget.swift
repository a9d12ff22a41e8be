package import StratusModel

/// One device's place in the news of one database: what the dispatcher works through.
package struct PushTarget: Sendable, Hashable, Comparable {
    /// The partition of the database.
    package var group: GroupID
    package var database: DatabaseID
    /// The record name of the subscriptions' owner.
    package var subscriber: String
    /// 16 bytes that name the device.
    package var token: Bytes

    package init(group: GroupID, database: DatabaseID, subscriber: String, token: Bytes) {
        self.group = group
        self.database = database
        self.subscriber = subscriber
        self.token = token
    }

    /// An order that is the same in every run.
    package static func < (one: Self, other: Self) -> Bool {
        if one.group != other.group { return one.group < other.group }
        if one.token != other.token { return one.token.lexicographicallyPrecedes(other.token) }
        if one.database.scope != other.database.scope {
            return one.database.scope.rawValue < other.database.scope.rawValue
        }
        let (left, right) = (one.database.container, other.database.container)
        if left != right {
            return (left.environment.rawValue, left.container) < (
                right.environment.rawValue, right.container
            )
        }
        if one.subscriber != other.subscriber { return one.subscriber < other.subscriber }
        return one.database.bucket.map { Int($0.number) } ?? -1
            < other.database.bucket.map { Int($0.number) } ?? -1
    }
}

/// Names a lane: one APNs host with the key of one container, or the origin of one Web Push
/// service.
package struct LaneName: Sendable, Hashable, Comparable, CustomStringConvertible {
    package enum Provider: String, Sendable {
        case apns
        case webPush = "web push"
    }

    package var provider: Provider
    /// APNs: the host's address, team, key and container; Web Push: the origin.
    package var place: String

    package init(_ provider: Provider, _ place: String) {
        self.provider = provider
        self.place = place
    }

    package var description: String { "\(self.provider.rawValue) \(self.place)" }

    package static func < (one: Self, other: Self) -> Bool {
        (one.provider.rawValue, one.place) < (other.provider.rawValue, other.place)
    }
}
