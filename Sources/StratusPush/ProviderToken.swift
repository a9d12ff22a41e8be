package import StratusSealing

/// The token, signed with a team's key, that the team shows APNs with each push (P-05).
///
/// APNs refuses a token that is older than an hour, and a team that changes its token more often
/// than every 20 minutes. One token serves the whole cluster, and its successor is made once it is
/// 40 minutes old.
package struct ProviderToken: Sendable, Equatable {
    package static let renewalAge: Int64 = 40 * 60
    package static let ageMin: Int64 = 20 * 60

    package var text: String
    /// Seconds since 1970.
    package var issuedAt: Int64

    /// - Parameters:
    ///   - team: ten letters and digits, as Apple gives them; so is `key`, the name of the signing
    ///     key.
    ///   - now: seconds since 1970.
    package init(team: String, key: String, signing: SigningKey, at now: Int64) {
        self.issuedAt = now
        self.text = SignedToken.make(
            header: "{\"alg\":\"ES256\",\"kid\":\(SignedToken.quoted(key))}",
            claims: "{\"iss\":\(SignedToken.quoted(team)),\"iat\":\(now)}", signing)
    }

    /// A token by the value of its `authorization`.
    package init(authorization: String) {
        self.text = String(authorization.dropFirst("bearer ".count))
        self.issuedAt = 0
    }

    /// A token that is kept.
    package init(text: String, issuedAt: Int64) {
        self.text = text
        self.issuedAt = issuedAt
    }

    /// Whether the next one is to be made. A clock that went back by more than a little counts as
    /// age.
    package func isDue(at now: Int64) -> Bool {
        now - self.issuedAt >= Self.renewalAge || self.issuedAt - now > 60
    }

    /// Whether APNs takes another token of this team yet, after it has refused this one (P-06).
    package func mayBeReplaced(at now: Int64) -> Bool {
        now - self.issuedAt >= Self.ageMin || self.issuedAt > now
    }

    /// The value of `authorization`.
    package var header: String { "bearer \(self.text)" }
}
