/// CloudKit's environments: one schema and one set of data each.
package enum Environment: UInt8, Sendable, Hashable, CaseIterable {
    case development = 0
    case production = 1

    /// The environment's name in a URL.
    package var name: String { self == .development ? "development" : "production" }

    package init?(name: String) {
        switch name {
        case "development": self = .development
        case "production": self = .production
        default: return nil
        }
    }
}

package enum DatabaseScope: UInt8, Sendable, Hashable, CaseIterable {
    case `public` = 0
    case `private` = 1
    case shared = 2

    package var name: String {
        switch self {
        case .public: "public"
        case .private: "private"
        case .shared: "shared"
        }
    }

    package init?(name: String) {
        switch name {
        case "public": self = .public
        case "private": self = .private
        case "shared": self = .shared
        default: return nil
        }
    }
}

/// A container in one environment: what a schema, a token and a role belong to.
package struct ContainerReference: Sendable, Hashable {
    /// `iCloud.<reverse dns>`, opaque, case preserved.
    package var container: String
    package var environment: Environment

    package init(container: String, environment: Environment) {
        self.container = container
        self.environment = environment
    }

    /// Whether this can name a container: 1 to 255 bytes of printable ASCII without a space, as it
    /// stands in paths.
    package static func isName(_ text: String) -> Bool {
        (1...255).contains(text.utf8.count) && text.holdsOnlyBytes { $0 > 0x20 && $0 < 0x7F }
    }
}

/// One database: the unit of placement. A shared database has no rows of its own; it is a view of
/// other owners' private ones.
package struct DatabaseID: Sendable, Hashable {
    package var container: ContainerReference
    package var scope: DatabaseScope
    /// The owner's user record name in the container; empty for the public database.
    package var owner: String
    /// Which slice of a database this is. Nil: all of it, or the home of a private database whose
    /// custom zones lie in buckets.
    package var bucket: Bucket?

    package init(
        container: ContainerReference, scope: DatabaseScope, owner: String, bucket: Bucket? = nil
    ) {
        precondition(scope != .shared, "a shared database is a view, it has no identity of its own")
        precondition((scope == .public) == owner.isEmpty, "the public database alone has no owner")
        self.container = container
        self.scope = scope
        self.owner = owner
        self.bucket = bucket
    }

    /// The bucket, where it holds records of a public default zone: references may leave it.
    package var recordBucket: Bucket? { self.scope == .public ? self.bucket : nil }

    /// The bucket, where it holds custom zones of a private database: nothing refers out of it.
    package var zoneBucket: Bucket? { self.scope == .private ? self.bucket : nil }

    /// The database without its bucket. Of a private one that is its home.
    package var whole: DatabaseID {
        DatabaseID(container: self.container, scope: self.scope, owner: self.owner)
    }
}

/// The key that placement hashes.
package enum ShardKey: Sendable, Hashable {
    /// A database. By policy it may be one bucket of it, which the database may name itself.
    case database(DatabaseID, zone: String? = nil, bucket: UInt16? = nil)
    /// The home of a container: schema, tokens, keys, roles.
    case container(ContainerReference)
    /// The home of an account, by its identifier.
    case account(String)
}
