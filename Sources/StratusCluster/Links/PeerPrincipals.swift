package import StratusModel

/// Checks that a command from a peer names a principal that a gateway can have established. Pure.
///
/// A node's certificate allows its holder to speak for every user, and this check does not change
/// that. It refuses principals that no gateway sends. So a foreign program with a stolen
/// certificate cannot reach states that no client can make.
package enum PeerPrincipals {
    /// Custom roles of one user.
    static let roleCountMax = 1_000
    private static let nameSizeMax = 255

    /// - Returns: nil for a principal that is good; otherwise what is wrong, in words.
    package static func refusal(of command: Command) -> String? {
        let principal = command.principal
        switch command.kind {
        case .identity, .system, .mail:
            guard principal.kind == .system || principal.kind == .administrator else {
                return "only nodes and administrators send commands of this kind"
            }
        case .records, .reference: break
        }
        return self.refusal(of: principal)
    }

    private static func refusal(of principal: Principal) -> String? {
        let name = principal.userRecordName
        switch principal.kind {
        case .anonymous, .administrator:
            guard name.isEmpty, principal.roles.isEmpty else {
                return "a principal without a user has no name and no roles"
            }
        case .system:
            guard principal.roles.isEmpty else { return "the system has no roles" }
        case .user, .serverKey:
            guard name.utf8.first == UInt8(ascii: "_"), name.utf8.count <= self.nameSizeMax else {
                return "a user's record name begins with '_'"
            }
            guard principal.roles.count <= self.roleCountMax,
                zip(principal.roles, principal.roles.dropFirst()).allSatisfy(<)
            else { return "roles are sorted, and none stands twice" }
        }
        return nil
    }
}
