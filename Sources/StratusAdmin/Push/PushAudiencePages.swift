import StratusAdminModel
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
        ) { try await Self.send($0, $0.body(), in: $0.container()) },
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
        let devices = try await exchange.push.devices(of: user, in: container)
        return AdminAnswer.json(Listing(devices.map { PushDeviceRow($0) }))
    }

    private static func send(
        _ exchange: AdminExchange, _ body: PushSendBody, in container: ContainerReference
    ) async throws -> HTTPResponse {
        let user = try Self.user(body.user)
        let name = body.device ?? ""
        guard name.utf8.count <= 32,
            name.utf8.allSatisfy({ Character(Unicode.Scalar($0)).isHexDigit })
        else { throw AdminRefusal.bad("'device' must be hexadecimal digits, as 'devices' shows") }
        guard let alert = body.alert, (1...Self.alertSizeMax).contains(alert.utf8.count)
        else {
            throw AdminRefusal.bad("'alert' must be a text of at most \(Self.alertSizeMax) bytes")
        }
        // Before it leaves: what cannot be noted is not done.
        try await exchange.note(
            "push send", name.isEmpty ? "a device of \(user)" : name, container)
        switch try await exchange.push.send(alert, to: name, of: user, in: container) {
        case .unknown: throw AdminRefusal.missing("device")
        case .ambiguous:
            throw AdminRefusal(
                409, .ambiguous, "more than one device has such a name: give more of it")
        case .refused(let why): throw AdminRefusal(409, .notTold, why)
        case .sent(let device, let lane, let isAccepted, let answer):
            return AdminAnswer.json(
                PushSendAnswer {
                    $0.device = PushTracePage.name(device)
                    $0.lane = lane
                    $0.isAccepted = isAccepted
                    $0.answer = answer
                })
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
        let explanation = try await exchange.push.explain(
            PushQuestion(
                container: container, user: user, isPublic: database == "public",
                zone: query?["zone"] ?? ZoneID.defaultName, record: record, change: change))
        return AdminAnswer.json(
            PushExplanationAnswer {
                $0.reaches = explanation.reaches
                $0.recordFound = explanation.hasRecord
                $0.subscriptions = explanation.findings.map { finding in
                    PushExplanationAnswer.Subscription {
                        $0.subscription = finding.subscription
                        $0.kind = finding.kind
                        $0.fires = finding.fires
                        $0.why = finding.why
                    }
                }
                $0.isCut = explanation.isCut
                $0.devices = explanation.devices.map { PushDeviceRow($0) }
            })
    }
}

extension PushDeviceRow {
    init(_ device: PushDevice) {
        self.init()
        self.device = PushTracePage.name(device.token)
        self.kind = device.kind.rawValue
        self.apnsEnvironment = device.environment?.name
        self.topic = device.topic.isEmpty ? nil : device.topic
        self.registered = device.registeredAt.map { WallTime.text($0) }
        self.expires = device.expiresAt.map { WallTime.text($0) }
        self.moved = WallTime.text(device.movedAt)
        self.behind = Int64(clamping: device.behind)
        self.trouble = device.trouble
    }
}
