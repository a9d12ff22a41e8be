package import StratusModel

/// Operations whose paths begin alike: `/<root>/<container>/<environment>/`, then perhaps a
/// database, then the operation's name.
package struct GatewayService: Sendable, Hashable {
    /// The root path, with a slash at both ends.
    package let root: String
    /// Whether a database follows the environment.
    package let namesDatabase: Bool
    /// The database that is meant where none is named.
    package let scope: DatabaseScope

    package init(root: String, namesDatabase: Bool, scope: DatabaseScope = .public) {
        precondition(root.count > 2 && root.first == "/" && root.last == "/")
        self.root = root
        self.namesDatabase = namesDatabase
        self.scope = scope
    }

    /// CloudKit Web Services.
    package static let database = GatewayService(root: "/database/1/", namesDatabase: true)

    /// What belongs to a device of a user: the tokens of notifications.
    package static let device = GatewayService(root: "/device/1/", namesDatabase: false)

    /// The key-value store of the caller.
    package static let keyValue = GatewayService(
        root: "/kvs/1/", namesDatabase: false, scope: .private)

    /// The documents of the caller.
    package static let documents = GatewayService(
        root: "/documents/1/", namesDatabase: false, scope: .private)

    /// What the caller's key-value store and documents have in common.
    package static let ubiquity = GatewayService(root: "/ubiquity/1/", namesDatabase: false)

    /// Names of the database service stand alone; those of other services follow the service's
    /// first word.
    func label(of name: String) -> String {
        if self == .database { return name }
        return "\(self.root.dropFirst().prefix { $0 != "/" })/\(name)"
    }
}
