/// Operations whose paths begin alike: `/<root>/<container>/<environment>/`, then perhaps a
/// database, then the operation's name.
package struct GatewayService: Sendable, Hashable {
    /// The root path, with a slash at both ends.
    package let root: String
    /// Whether a database follows the environment. Where none does, the public one is meant.
    package let namesDatabase: Bool

    package init(root: String, namesDatabase: Bool) {
        precondition(root.count > 2 && root.first == "/" && root.last == "/")
        self.root = root
        self.namesDatabase = namesDatabase
    }

    /// CloudKit Web Services.
    package static let database = GatewayService(root: "/database/1/", namesDatabase: true)

    /// What belongs to a device of a user: the tokens of notifications.
    package static let device = GatewayService(root: "/device/1/", namesDatabase: false)

    /// Names of the database service stand alone; those of other services follow the service's
    /// first word.
    func label(of name: String) -> String {
        if self == .database { return name }
        return "\(self.root.dropFirst().prefix { $0 != "/" })/\(name)"
    }
}
