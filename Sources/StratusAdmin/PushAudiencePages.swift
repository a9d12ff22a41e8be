import StratusHTTP
import StratusIdentity
import StratusModel
import StratusPush
import StratusRuntime

/// The devices of one user, a push to one of them, and why a change would reach them.
enum PushAudiencePages {
    static let alertSizeMax = 1_024

    static let routes: [AdminRoute] = [
        AdminRoute(
            "GET", PushPages.place + "/devices",
            answer: "the devices and poll tokens of `?user=`, and why one would be told nothing"
        ) { try await Self.devices($0, in: $0.container()) },
        AdminRoute(
            "POST", PushPages.place + "/send", body: "user, alert, device (may be absent)",
            answer: "what the provider said"
        ) { try await Self.send($0, $0.json(), in: $0.container()) },
        AdminRoute(
            "GET", PushPages.place + "/explain",
            answer: "what each subscription of `?user=` says to a `?change=` (create, update or "
                + "delete) of `?record=` in `?zone=` of `?database=` (private or public), and "
                + "the user's devices"
        ) { try await Self.explain($0, in: $0.container()) },
    ]

    private static func user(_ text: String?) throws(AdminRefusal) -> String {
        guard let text, (1...255).contains(text.utf8.count), !text.utf8.contains(0) else {
            throw .bad("'user' must be a user's record name")
        }
        return text
    }

    private static func devices(
        _ exchange: AdminExchange, in container: ContainerReference
    ) async throws -> HTTPResponse {
        let user = try Self.user(exchange.query?["user"])
        try await exchange.requireKnown(container)
        let devices = try await exchange.push.devices(of: user, in: container)
        var json = JSONWriter()
        json.object { Self.write(devices, to: &$0) }
        return AdminAnswer.json(json.finish())
    }

    private static func write(_ devices: [PushDevice], to json: inout JSONWriter) {
        json.member("devices", objects: devices) { json, device in
            json.member("device", PushTracePage.name(device.token))
            json.member("kind", device.kind.rawValue)
            if let environment = device.environment {
                json.member("apnsEnvironment", environment.name)
            }
            if !device.topic.isEmpty { json.member("topic", device.topic) }
            if let time = device.registeredAt {
                json.member("registered", WallTime.text(time))
            }
            if let time = device.expiresAt { json.member("expires", WallTime.text(time)) }
            json.member("moved", WallTime.text(device.movedAt))
            json.member("behind", Int64(clamping: device.behind))
            if let trouble = device.trouble { json.member("trouble", trouble) }
        }
    }

    private static func send(
        _ exchange: AdminExchange, _ body: JSONValue, in container: ContainerReference
    ) async throws -> HTTPResponse {
        let user = try Self.user(body["user"]?.string)
        let name = body["device"]?.string ?? ""
        guard name.utf8.count <= 32,
            name.utf8.allSatisfy({ Character(Unicode.Scalar($0)).isHexDigit })
        else { throw AdminRefusal.bad("'device' must be hexadecimal digits, as 'devices' shows") }
        guard let alert = body["alert"]?.string, (1...Self.alertSizeMax).contains(alert.utf8.count)
        else {
            throw AdminRefusal.bad("'alert' must be a text of at most \(Self.alertSizeMax) bytes")
        }
        try await exchange.requireKnown(container)
        // Before it leaves: what cannot be noted is not done.
        try await exchange.note(
            "push send", name.isEmpty ? "a device of \(user)" : name, container)
        switch try await exchange.push.send(alert, to: name, of: user, in: container) {
        case .unknown: throw AdminRefusal.missing("device")
        case .ambiguous:
            throw AdminRefusal(
                409, "AMBIGUOUS", "more than one device has such a name: give more of it")
        case .refused(let why): throw AdminRefusal(409, "NOT_TOLD", why)
        case .sent(let device, let lane, let isAccepted, let answer):
            var json = JSONWriter()
            json.object {
                $0.member("device", PushTracePage.name(device))
                $0.member("lane", lane)
                $0.member("accepted", isAccepted)
                $0.member("answer", answer)
            }
            return AdminAnswer.json(json.finish())
        }
    }

    private static func explain(
        _ exchange: AdminExchange, in container: ContainerReference
    ) async throws -> HTTPResponse {
        let query = exchange.query
        let user = try Self.user(query?["user"])
        guard let record = query?["record"], (1...255).contains(record.utf8.count) else {
            throw AdminRefusal.bad("'record' must be a record's name")
        }
        guard let change = PushQuestion.Change(rawValue: query?["change"] ?? "update") else {
            throw AdminRefusal.bad("'change' must be 'create', 'update' or 'delete'")
        }
        let database = query?["database"] ?? "private"
        guard ["private", "public"].contains(database) else {
            throw AdminRefusal.bad("'database' must be 'private' or 'public'")
        }
        try await exchange.requireKnown(container)
        let explanation = try await exchange.push.explain(
            PushQuestion(
                container: container, user: user, isPublic: database == "public",
                zone: query?["zone"] ?? ZoneID.defaultName, record: record, change: change))
        var json = JSONWriter()
        json.object {
            $0.member("reaches", explanation.reaches)
            $0.member("recordFound", explanation.hasRecord)
            $0.member("subscriptions", objects: explanation.findings) { json, finding in
                json.member("subscription", finding.subscription)
                json.member("kind", finding.kind)
                json.member("fires", finding.fires)
                json.member("why", finding.why)
            }
            $0.member("cut", explanation.isCut)
            Self.write(explanation.devices, to: &$0)
        }
        return AdminAnswer.json(json.finish())
    }
}
