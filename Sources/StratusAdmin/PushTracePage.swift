import StratusHTTP
import StratusIdentity
import StratusModel
import StratusPush
import StratusRuntime

/// What this node remembers of its recent pushes: from a change to each device's verdict.
enum PushTracePage {
    static let countMax = 1_000

    static let route = AdminRoute(
        "GET", PushPages.place + "/trace",
        answer: "recent pushes of this node: each with its times and its verdict; by `?record=`, "
            + "`?event=`, `?user=`, at most `?limit=` (1 to 1,000, else 100)"
    ) { try await Self.trace($0, in: $0.container()) }

    private static func trace(
        _ exchange: AdminExchange, in container: ContainerReference
    ) async throws -> HTTPResponse {
        let query = exchange.query
        var ask = PushTrail.Ask(
            container: container, record: query?["record"], subscriber: query?["user"])
        if let text = query?["event"] {
            guard let event = UInt64(text) else {
                throw AdminRefusal.bad("'event' must be the number of an event")
            }
            ask.event = event
        }
        if let text = query?["limit"] {
            guard let limit = Int(text), (1...Self.countMax).contains(limit) else {
                throw AdminRefusal.bad("'limit' must be a number from 1 to \(Self.countMax)")
            }
            ask.countMax = limit
        }
        let entries = await (try exchange.push).trace(ask)
        var json = JSONWriter()
        json.object {
            $0.key("pushes")
            $0.array { array in
                for entry in entries { array.object { Self.write(entry, to: &$0) } }
            }
        }
        return AdminAnswer.json(json.finish())
    }

    private static func write(_ entry: PushTrail.Entry, to json: inout JSONWriter) {
        let change = entry.change
        json.member("event", Int64(clamping: change.event))
        json.member("database", entry.target.database.scope.name)
        json.member("zone", change.zone)
        if let record = change.record { json.member("record", record) }
        json.member("subscription", change.subscription)
        json.member("user", entry.target.subscriber)
        json.member("device", Self.name(entry.target.token))
        json.member("lane", entry.lane)
        if let time = change.savedAt { json.member("saved", WallTime.text(time)) }
        json.member("matched", WallTime.text(entry.matchedAt))
        if let time = entry.sentAt { json.member("sent", WallTime.text(time)) }
        json.member("sendings", entry.sendCount)
        if let verdict = entry.verdict { json.member("verdict", verdict) }
        if let time = entry.verdictAt { json.member("judged", WallTime.text(time)) }
        if let time = entry.settledAt { json.member("settled", WallTime.text(time)) }
    }

    /// The first half of the keyed hash that names a device: no address, and no credential.
    static func name(_ token: Bytes) -> String {
        Hexadecimal.text(token.prefix(8))
    }
}
