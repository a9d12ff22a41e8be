import StratusModel
package import StratusSealing

/// The token that tells one Web Push service who sends (RFC 8292).
package struct VAPIDToken: Sendable, Equatable {
    /// RFC 8292 allows a day.
    package static let life: Int64 = 12 * 3_600

    package var text: String
    /// Seconds since 1970.
    package var expiration: Int64
    private let publicPoint: Bytes

    /// - Parameters:
    ///   - origin: of the endpoint: scheme, host, and the port unless it is the scheme's.
    ///   - contact: `mailto:` or `https:`.
    ///   - now: seconds since 1970.
    package init(origin: String, contact: String, signing: SigningKey, at now: Int64) {
        self.expiration = now + Self.life
        self.publicPoint = signing.publicPoint
        self.text = SignedToken.make(
            header: "{\"typ\":\"JWT\",\"alg\":\"ES256\"}",
            claims: "{\"aud\":\(SignedToken.quoted(origin)),\"exp\":\(self.expiration),"
                + "\"sub\":\(SignedToken.quoted(contact))}", signing)
    }

    /// Whether the next one is to be made: in the last quarter of its life, or when the clock went
    /// back.
    package func isDue(at now: Int64) -> Bool {
        self.expiration - now < Self.life / 4 || self.expiration - now > Self.life + 60
    }

    /// The value of `Authorization`.
    package var header: String {
        "vapid t=\(self.text), k=\(Base64URL.encode(self.publicPoint))"
    }
}
