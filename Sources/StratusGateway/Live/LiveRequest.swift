import StratusHTTP
import StratusModel
import StratusSealing

/// What a client wants to follow, and from where on: the parameters of `live`.
///
/// An event's ID says where the whole stream stands: one part for each feed, in the order of the
/// request, with commas between. A part is the feed's token; `-` for a feed that has ended; empty
/// for one that has told nothing.
struct LiveRequest: Sendable, Equatable {
    /// One thing that a stream follows.
    enum Feed: Sendable, Equatable {
        case zone(String)
        /// The zones of the database.
        case zones
        /// The notifications of a poll token.
        case notifications(String)
    }

    /// Where a feed stands.
    enum Place: Sendable, Equatable {
        /// At the beginning of a zone or of the database; of notifications, where the token is.
        case start
        /// Behind a token. An empty one means the end, as in `changes/zone`.
        case after(String)
        case ended
    }

    var feeds: [Feed]
    var places: [Place]
    /// Whether the client goes on where another stream ended.
    var isResumed: Bool

    static let zoneCountMax = 16
    private static let ended = "-"

    /// - Parameter lastEventID: what a browser sends by itself when it connects again.
    init(_ query: URLQuery, lastEventID: String?) throws(InputRefusal) {
        let zones = query.values(of: "zone")
        guard zones.count <= Self.zoneCountMax else {
            throw .tooMany(key: "zone", count: zones.count, limit: Self.zoneCountMax)
        }
        guard Set(zones.map { Bytes($0.utf8) }).count == zones.count, !zones.contains("") else {
            throw .unexpectedInput(key: "zone")
        }
        self.feeds = zones.map { .zone($0) }
        let tokens = query.values(of: "syncToken")
        guard tokens.isEmpty || tokens.count == zones.count else {
            throw .unexpectedInput(key: "syncToken")
        }
        // They go into the IDs of events, where a comma or the end of a line means something else.
        let isPlain = { (token: String) in
            token.utf8.allSatisfy { (0x21...0x7E).contains($0) && $0 != UInt8(ascii: ",") }
        }
        guard tokens.allSatisfy(isPlain) else { throw .unexpectedInput(key: "syncToken") }
        guard query["databaseSyncToken"].map(isPlain) ?? true else {
            throw .unexpectedInput(key: "databaseSyncToken")
        }
        self.places = tokens.isEmpty ? zones.map { _ in .start } : tokens.map { .after($0) }
        switch query["database"] {
        case nil, "0", "false": break
        case "1", "true":
            self.feeds.append(.zones)
            self.places.append(query["databaseSyncToken"].map { .after($0) } ?? .start)
        default: throw .unexpectedInput(key: "database")
        }
        if let token = query["token"] {
            self.feeds.append(.notifications(token))
            self.places.append(.start)
        }
        guard !self.feeds.isEmpty else { throw .missingKey("zone") }
        let given = lastEventID ?? query["lastEventID"] ?? ""
        self.isResumed = !given.isEmpty
        guard self.isResumed else { return }
        let parts = given.split(separator: ",", omittingEmptySubsequences: false)
        guard parts.count == self.feeds.count else { throw .unexpectedInput(key: "Last-Event-ID") }
        for (index, part) in parts.enumerated() {
            switch part {
            // What the request itself says of this feed still counts.
            case "": break
            case Self.ended[...]: self.places[index] = .ended
            default: self.places[index] = .after(String(part))
            }
        }
    }

    static func id(of places: [Place]) -> String {
        places.map { place in
            switch place {
            case .start: ""
            // Caught up, and nothing told yet: the request says so again.
            case .after(let token): token
            case .ended: Self.ended
            }
        }.joined(separator: ",")
    }
}
