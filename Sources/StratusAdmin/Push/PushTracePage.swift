import StratusAdminModel
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
        return AdminAnswer.json(Listing(entries.map { PushTraceRow($0) }))
    }

    /// The first half of the keyed hash that names a device: no address, and no credential.
    static func name(_ token: Bytes) -> String {
        Hexadecimal.text(token.prefix(8))
    }
}

extension PushTraceRow {
    init(_ entry: PushTrail.Entry) {
        let change = entry.change
        self.init()
        self.event = Int64(clamping: change.event)
        self.database = entry.target.database.scope.name
        self.zone = change.zone
        self.record = change.record
        self.subscription = change.subscription
        self.user = entry.target.subscriber
        self.device = PushTracePage.name(entry.target.token)
        self.lane = entry.lane
        self.saved = change.savedAt.map { WallTime.text($0) }
        self.matched = WallTime.text(entry.matchedAt)
        self.sent = entry.sentAt.map { WallTime.text($0) }
        self.sendings = Int64(entry.sendCount)
        self.verdict = entry.verdict
        self.judged = entry.verdictAt.map { WallTime.text($0) }
        self.settled = entry.settledAt.map { WallTime.text($0) }
    }
}
