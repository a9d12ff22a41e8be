import StratusHTTP
import StratusModel
import StratusRuntime
import Testing
import WireScenarios

@testable import StratusGateway

/// A client of one live stream, without a socket.
final class LiveClient {
    struct Event {
        var name = ""
        var id: String?
        var data: JSON
    }

    let response: HTTPResponse
    private let stream: (any ResponseBody)?
    /// The last ID, as a browser keeps it.
    private(set) var lastID: String?

    /// - Parameter target: a path with its parameters.
    init(_ handler: Gateway, _ target: String, lastEventID: String? = nil) async {
        let parts = target.split(separator: "?", maxSplits: 1).map(String.init)
        var headers: HeaderFields = ["Host": "ck.example.org", "Accept": "text/event-stream"]
        if let lastEventID { headers.set("Last-Event-ID", lastEventID) }
        self.response = await handler.respond(
            to: HTTPRequest(
                head: RequestHead(
                    method: "GET", path: parts[0], query: parts.count == 2 ? parts[1] : nil,
                    headers: headers), body: CollectedBody([]), peer: "test",
                identity: handler.kernel.world.drawIdentity(), patience: .held))
        self.lastID = lastEventID
        if case .stream(let stream, let length) = self.response.body {
            self.stream = stream
            #expect(length == nil)
            #expect(self.response.headers["Content-Type"] == "text/event-stream")
            #expect(self.response.headers["Cache-Control"] == "no-store")
        } else {
            self.stream = nil
        }
    }

    var status: Int { self.response.status }

    /// The text of the next piece; nil: the stream has ended.
    func piece() async throws -> String? {
        guard let bytes = try await self.stream?.next() else { return nil }
        return String(decoding: bytes, as: UTF8.self)
    }

    /// The next event. Comments and settings are passed over.
    func event() async throws -> Event? {
        while let piece = try await self.piece() {
            #expect(piece.hasSuffix("\n\n") && !piece.contains("\r"))
            var event = Event(data: .null)
            for line in piece.split(separator: "\n") {
                let parts = line.split(separator: ": ", maxSplits: 1).map(String.init)
                switch parts[0] {
                case "event": event.name = parts[1]
                case "id": event.id = parts[1]
                case "data": event.data = try JSON(parsing: Array(parts[1].utf8))
                case "retry", ":": break
                default: Issue.record("a line of no event: \(line)")
                }
            }
            if let id = event.id { self.lastID = id }
            if !event.name.isEmpty { return event }
        }
        return nil
    }

    func required() async throws -> Event { try #require(try await self.event()) }

    /// Whether nothing comes for a while. The stream has then ended, as its client has.
    func isQuiet() async throws -> Bool {
        let waiting = Task { try await self.event() == nil }
        try await Task.sleep(for: .milliseconds(60))
        waiting.cancel()
        return try await waiting.value
    }
}

extension LiveClient: @unchecked Sendable {}
