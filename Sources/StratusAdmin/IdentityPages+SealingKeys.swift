import StratusGateway
import StratusHTTP
import StratusIdentity
import StratusModel
import StratusRuntime

/// The keys that tokens are sealed with: only their numbers and states, never the keys themselves.
extension IdentityPages {
    private var ring: SealingKeyRing { self.people.authenticator.sealingKeys }

    func listSealingKeys() async throws -> HTTPResponse {
        let keys = try await self.ring.read()
        var json = JSONWriter()
        json.object {
            $0.key("keys")
            $0.array { array in
                for key in keys {
                    array.object {
                        $0.member("number", Int64(clamping: key.number))
                        $0.member(
                            "state",
                            key.isRevoked ? "revoked" : key.isSealing ? "seals" : "opens")
                        // The first comes from the secret and is as old as that.
                        if key.madeMilliseconds != 0 {
                            $0.member("made", WallTime.text(key.madeMilliseconds))
                        }
                    }
                }
            }
        }
        return AdminAnswer.json(json.finish())
    }

    func rotateSealingKey() async throws -> HTTPResponse {
        let number = try await self.rotated()
        try await self.note("sealing-key rotate", "\(number)", nil)
        return Self.answer(number: number, revokedCount: 0)
    }

    /// `{"before": 3}`, or `{"all": true}` for a new key and the end of every other.
    func revokeSealingKeys(_ body: JSONValue?) async throws -> HTTPResponse {
        let number: UInt64
        if body?["all"]?.bool == true {
            number = try await self.rotated()
        } else if let given = body?["before"]?.int64, given > 0 {
            number = UInt64(given)
        } else {
            throw Refusal(
                status: 400, code: "BAD_REQUEST",
                reason: "{\"before\": NUMBER} is wanted, or {\"all\": true}")
        }
        guard let count = try await self.ring.revoke(before: number) else {
            throw Refusal.missing("live sealing key to go on with")
        }
        try await self.note("sealing-key revoke", "before \(number)", nil)
        return Self.answer(number: number, revokedCount: count)
    }

    private func rotated() async throws -> UInt64 {
        switch try await self.ring.rotate() {
        case .made(let number): return number
        case .tooMany:
            throw Refusal(
                status: 409, code: "TOO_MANY_KEYS",
                reason: "\(SealingKeyRing.liveCountMax) keys open tokens already: revoke older ones"
            )
        }
    }

    private static func answer(number: UInt64, revokedCount: Int) -> HTTPResponse {
        var json = JSONWriter()
        json.object {
            $0.member("number", Int64(clamping: number))
            $0.member("revoked", revokedCount)
        }
        return AdminAnswer.json(json.finish())
    }
}
