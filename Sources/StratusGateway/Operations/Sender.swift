import StratusIdentity
import StratusModel

/// Who acts: the sender of a request, as its credentials say.
struct Sender: Sendable {
    let authentication: Authentication

    var principal: Principal { self.authentication.principal }
    /// The user's record name in the container; empty for an app without a user.
    var name: String { self.principal.userRecordName }
    /// Nil for the development users and for server-to-server keys.
    var account: AccountID? { self.authentication.account }
    var webAuthToken: String? { self.authentication.webAuthToken }
    /// Whether the app may receive people's names.
    var receivesNames: Bool { self.authentication.receivesNames }
    var signed: Authentication.Signed? { self.authentication.signed }
}
