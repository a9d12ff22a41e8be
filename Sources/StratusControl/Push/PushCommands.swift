import StratusAdminModel
import StratusCommandLine
import StratusHTTP
import StratusModel
import StratusProcess
import StratusRuntime

/// `stratusctl push`: the keys by which a container sends to push providers, and what a node sends.
struct PushCommands: AdminConversation {
    let context: ControlContext

    init(_ context: ControlContext) { self.context = context }

    func push(_ rest: String = "") throws(AdminClient.Failure) -> String {
        try self.context.requireContainer()
        return self.place("/push" + rest)
    }

    private func keys() async throws(AdminClient.Failure) -> AdminClient.Answer {
        try await self.ask("GET", try self.push())
    }

    // MARK: APNs

    func addKey() async throws(AdminClient.Failure) -> ExitCode {
        let place = try self.push("/apns")
        let pem: Bytes
        do throws(SmallFile.Failure) {
            pem = try SmallFile.read(self.invocation.value("key-file"), limit: .kibibytes(16))
        } catch { throw Failure(.missingInput, error.description) }
        let answer = try await self.ask(
            "POST", place,
            APNsKeyBody {
                $0.team = self.invocation.value("team")
                $0.key = self.invocation.value("key-id")
                $0.topics = self.invocation.value("topics").split(separator: ",").map(String.init)
                $0.privateKey = String(decoding: pem, as: UTF8.self)
            })
        return self.tell(answer, said: "added")
    }

    func listKeys() async throws(AdminClient.Failure) -> ExitCode {
        try self.tell(try await self.keys()) { (keys: PushKeysAnswer) in
            TextTable.text(keys.apns)
        }
    }

    func removeKey() async throws(AdminClient.Failure) -> ExitCode {
        let names = self.encoded("team") + "/" + self.encoded("key-id")
        return self.tell(
            try await self.ask("DELETE", try self.push("/apns/" + names)), said: "removed")
    }

    func check() async throws(AdminClient.Failure) -> ExitCode {
        let answer = try await self.ask(
            "POST", try self.push("/apns/check"),
            APNsCheckBody {
                $0.topic = self.invocation["topic"]
                $0.apnsEnvironment = self.invocation["apns-environment"]
            })
        let checks: Listing<APNsCheckRow> = try answer.read()
        _ = self.show(
            self.isJSON ? self.context.stamp(answer.text) + "\n" : TextTable.text(checks.rows))
        return checks.rows.allSatisfy(\.isGood) ? .success : .refused
    }

    // MARK: Web Push

    func createVAPID() async throws(AdminClient.Failure) -> ExitCode {
        try await self.makeVAPID(isFirst: true)
    }

    func rotateVAPID() async throws(AdminClient.Failure) -> ExitCode {
        try await self.makeVAPID(isFirst: false)
    }

    private func makeVAPID(isFirst: Bool) async throws(AdminClient.Failure) -> ExitCode {
        let known = (try await self.keys().read() as PushKeysAnswer).vapid
        if isFirst, !known.isEmpty {
            throw Failure(
                .usage, "the container has a key: 'stratusctl push vapid rotate' makes the next")
        }
        guard isFirst || !known.isEmpty else {
            throw Failure(
                .usage, "the container has no key: 'stratusctl push vapid create' makes one")
        }
        let answer = try await self.ask(
            "POST", try self.push("/vapid"),
            VAPIDBody { $0.contact = self.invocation["contact"] ?? known.last?.contact ?? "" })
        return try self.tell(answer) { (made: VAPIDKeyRow) in made.publicKey + "\n" }
    }

    func showVAPID() async throws(AdminClient.Failure) -> ExitCode {
        try self.tell(try await self.keys()) { (keys: PushKeysAnswer) in
            TextTable.text(keys.vapid)
        }
    }

    // MARK: Sending

    func pause() async throws(AdminClient.Failure) -> ExitCode { try await self.set(true) }
    func resume() async throws(AdminClient.Failure) -> ExitCode { try await self.set(false) }

    private func set(_ isPaused: Bool) async throws(AdminClient.Failure) -> ExitCode {
        let answer = try await self.ask(
            "POST", try self.push("/pause"), PauseBody { $0.isPaused = isPaused })
        return self.tell(answer, said: isPaused ? "paused" : "resumed")
    }

    func status() async throws(AdminClient.Failure) -> ExitCode {
        try self.tell(try await self.ask("GET", "/v1/push")) { (status: PushStatusAnswer) in
            "devices that are worked on: \(status.active), that wait: \(status.parked)\n"
                + TextTable.text(status.lanes)
        }
    }

    func trace() async throws(AdminClient.Failure) -> ExitCode {
        let terms = ["record", "event", "user", "limit"].compactMap { name in
            self.invocation[name].map { "\(name)=\(PercentCoding.encode($0))" }
        }
        return try await self.table(
            of: PushTraceRow.self,
            try self.push("/trace" + (terms.isEmpty ? "" : "?" + terms.joined(separator: "&"))))
    }
}
