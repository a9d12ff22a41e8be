import StratusAdminModel
import StratusHTTP
import StratusModel
import StratusRuntime

/// `/v1/assets/wanted` and `/v1/assets/adopt`: copies from another disk come back.
enum AssetAdoptionPages {
    static let adoptPath = "/v1/assets/adopt"
    static let bodyCountMax = 256

    static let routes: [AdminRoute] = [
        AdminRoute(
            "POST", "/v1/assets/wanted", need: .node,
            body: "`partition`, and `bodies`: names of up to 256 bodies",
            answer:
                "for each body, in their order, whether copies of it are wanted: a file is lost, or "
                + "a member lacks some; it may end sooner"
        ) { try await Self.wanted($0) },
        AdminRoute(
            "POST", Self.adoptPath, need: .node, isLong: true,
            body:
                "copies of the body of `?partition=` and `?body=`: 4 bytes with the number of each, "
                + "4 with its size, little-endian, and its bytes",
            answer: "how many were taken, and what became of the body"
        ) { try await Self.adopt($0) },
    ]

    private static func wanted(_ exchange: AdminExchange) async throws -> HTTPResponse {
        let asked: WantedBody = try await exchange.body()
        let group = try Self.group(asked.partition)
        guard (1...Self.bodyCountMax).contains(asked.bodies.count) else {
            throw AdminRefusal.bad("'bodies' must name 1 to \(Self.bodyCountMax) bodies")
        }
        let bodies = try asked.bodies.map { try Self.body($0) }
        let needs: [BodyNeed?]
        do throws(NodeControlFailure) {
            needs = try await exchange.control.needs(of: bodies, in: group)
        } catch { throw Self.refusal(error, exchange) }
        return AdminAnswer.json(
            Listing(
                zip(bodies, needs).map { body, need in
                    WantedRow {
                        $0.body = String(body.raw, radix: 16)
                        $0.isKnown = need != nil
                        guard let need else { return }
                        $0.isWanted = need.isWanted
                        $0.isLost = need.isLost
                        $0.chunks = Int64(need.chunkCount)
                    }
                }))
    }

    private static func adopt(_ exchange: AdminExchange) async throws -> HTTPResponse {
        let group = try Self.group(exchange.query?["partition"].flatMap { Int64($0) })
        let body = try Self.body(exchange.query?["body"])
        let adopted: AdoptedBody
        do throws(NodeControlFailure) {
            adopted = try await exchange.control.adopt(
                body, in: group, CopyFrames(exchange.request.body))
        } catch { throw Self.refusal(error, exchange) }
        if adopted.takenCount > 0 {
            await exchange.noteAfterwards(
                "assets adopt", "body \(String(body.raw, radix: 16)): \(adopted.state.rawValue)")
        }
        return AdminAnswer.json(
            AdoptedAnswer {
                $0.state = adopted.state.rawValue
                $0.taken = Int64(adopted.takenCount)
                $0.unsound = Int64(adopted.unsoundCount)
            })
    }

    /// Partitions are numbered from 0, and the system group comes before them.
    private static func group(_ partition: Int64?) throws(AdminRefusal) -> GroupID {
        guard let partition, (0..<Int64(UInt16.max)).contains(partition) else {
            throw .bad("'partition' must be the number of a partition")
        }
        return GroupID(UInt16(partition + 1))
    }

    private static func body(_ text: String?) throws(AdminRefusal) -> BodyID {
        guard let text, text.utf8.count <= 32, let raw = UInt128(text, radix: 16) else {
            throw .bad("a body is named by up to 32 hexadecimal digits")
        }
        return BodyID(raw)
    }

    private static func refusal(_ failure: NodeControlFailure, _ exchange: AdminExchange)
        -> AdminRefusal
    {
        switch failure {
        case .refused(let reason): .bad(reason)
        case .failed(let reason): exchange.failure(reason)
        case .unavailable, .outcomeUnknown, .overtaken:
            AdminRefusal(
                503, .tryAgainLater,
                "the partition does not answer now: what was taken stays, so try again later")
        }
    }
}
