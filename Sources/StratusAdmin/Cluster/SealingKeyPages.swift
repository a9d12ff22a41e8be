import StratusAdminModel
import StratusContainers
import StratusHTTP
import StratusIdentity
import StratusModel
import StratusRecords
import StratusRuntime

/// The keys that tokens are sealed with: only their numbers and states, never the keys themselves.
enum SealingKeyPages {
    static let routes: [AdminRoute] = [
        AdminRoute(
            "GET", "/v1/sealing-keys",
            answer: "the keys, with their states"
        ) { try await Self.listSealingKeys($0) },
        AdminRoute(
            "POST", "/v1/sealing-keys",
            answer: "the number of the new key"
        ) { try await Self.rotateSealingKey($0) },
        AdminRoute(
            "POST", "/v1/sealing-keys/revocation", body: "before, or all",
            answer: "how many keys were revoked"
        ) { try await Self.revokeSealingKeys($0, $0.body()) },
    ]

    private static func listSealingKeys(_ exchange: AdminExchange) async throws -> HTTPResponse {
        let keys = try await exchange.directory.sealingKeys.read()
        return AdminAnswer.json(
            Listing(
                keys.map { key in
                    SealingKeyRow {
                        $0.number = Int64(clamping: key.number)
                        $0.state = key.isRevoked ? "revoked" : key.isSealing ? "seals" : "opens"
                        // The first comes from the secret and is as old as that.
                        if key.madeMilliseconds != 0 {
                            $0.made = WallTime.text(key.madeMilliseconds)
                        }
                    }
                }))
    }

    private static func rotateSealingKey(_ exchange: AdminExchange) async throws -> HTTPResponse {
        let number = try await Self.rotated(exchange)
        await exchange.noteAfterwards("sealing-key rotate", "\(number)")
        return Self.answer(number: number, revokedCount: 0)
    }

    /// `{"before": 3}`, or `{"all": true}` for a new key and the end of every other.
    private static func revokeSealingKeys(_ exchange: AdminExchange, _ body: SealingKeyBody)
        async throws -> HTTPResponse
    {
        let number: UInt64
        if body.all {
            number = try await Self.rotated(exchange)
        } else if let given = body.before, given > 0 {
            number = UInt64(given)
        } else {
            throw AdminRefusal(
                400, .badRequest, "the body must be {\"before\": NUMBER} or {\"all\": true}")
        }
        guard let count = try await exchange.directory.sealingKeys.revoke(before: number) else {
            throw AdminRefusal.missing("live sealing key to continue with")
        }
        await exchange.noteAfterwards("sealing-key revoke", "before \(number)")
        return Self.answer(number: number, revokedCount: count)
    }

    private static func rotated(_ exchange: AdminExchange) async throws -> UInt64 {
        switch try await exchange.directory.sealingKeys.rotate() {
        case .made(let number): return number
        case .tooMany:
            throw AdminRefusal(
                409, .tooManyKeys,
                "\(SealingKeyRing.liveCountMax) keys already open tokens: revoke older ones first"
            )
        }
    }

    private static func answer(number: UInt64, revokedCount: Int) -> HTTPResponse {
        AdminAnswer.json(
            SealingKeyAnswer {
                $0.number = Int64(clamping: number)
                $0.revoked = Int64(revokedCount)
            })
    }
}
