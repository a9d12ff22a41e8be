import StratusCommandLine
import StratusHTTP
import StratusProcess

/// `stratusctl encryption-key`: the master keys, and what is wrapped under them.
struct EncryptionKeyCommands: AdminConversation {
    let invocation: Invocation
    let client: AdminClient
    let isJSON: Bool

    /// Slices that one command asks for: a hundred containers each.
    private static let sliceCountMax = 1_000

    static let definition = CommandDefinition(
        "encryption-key", "The keys that files and encrypted fields are sealed under",
        subcommands: [
            CommandDefinition(
                "list", "The master keys, and how many containers' keys each of them wraps",
                discussion: [
                    "Speaks of the node that is asked. A master key that wraps nothing can be "
                        + "retired: put its version into keys.retiredMasters, and remove its file."
                ]),
            CommandDefinition(
                "rotate", "Wrap the keys of all containers under the master key that seals",
                discussion: [
                    "Use this once every node has been started with the key in keys.masterFiles, "
                        + "and with its version as keys.sealingMaster. Clients notice nothing. If it "
                        + "is interrupted, run it again."
                ]),
            CommandDefinition(
                "check", "Open the key of every container",
                discussion: [
                    "Exit code 1 if the node that is asked cannot open one of them."
                ]),
        ])

    static func serves(_ path: [String]) -> Bool { path.first == "encryption-key" }

    func run() async throws(AdminClient.Failure) -> ExitCode {
        if self.invocation.path.last == "rotate" { return try await self.rotate() }
        var masters: [(version: Int64, state: String, count: Int64)] = []
        var failing: [(container: String, environment: String, reason: String)] = []
        var without: Int64 = 0
        try await self.slices { (start) throws(AdminClient.Failure) in
            try await self.ask("GET", "/v1/encryption-keys?from=\(start)")
        } _: { root in
            for master in ClusterFacts.array(root, "masters") {
                guard let version = master["version"]?.int64 else { continue }
                let count = master["containers"]?.int64 ?? 0
                if let known = masters.firstIndex(where: { $0.version == version }) {
                    masters[known].count += count
                } else {
                    masters.append((version, master["state"]?.string ?? "", count))
                }
            }
            for one in ClusterFacts.array(root, "failing") {
                failing.append(
                    (
                        one["container"]?.string ?? "", one["environment"]?.string ?? "",
                        one["reason"]?.string ?? ""
                    ))
            }
            without += root["withoutKey"]?.int64 ?? 0
        }
        masters.sort { $0.version < $1.version }
        let isCheck = self.invocation.path.last == "check"
        let shown = self.show(
            self.isJSON
                ? Self.json(masters, failing, without)
                : Self.text(masters, failing, without, isCheck: isCheck))
        guard shown == .success, isCheck else { return shown }
        return failing.isEmpty ? .success : .refused
    }

    private static func json(
        _ masters: [(version: Int64, state: String, count: Int64)],
        _ failing: [(container: String, environment: String, reason: String)], _ without: Int64
    ) -> String {
        var json = JSONWriter()
        json.object {
            $0.key("masters")
            $0.array { array in
                for master in masters {
                    array.object {
                        $0.member("version", master.version)
                        $0.member("state", master.state)
                        $0.member("containers", master.count)
                    }
                }
            }
            $0.member("withoutKey", without)
            $0.key("failing")
            $0.array { array in
                for one in failing {
                    array.object {
                        $0.member("container", one.container)
                        $0.member("environment", one.environment)
                        $0.member("reason", one.reason)
                    }
                }
            }
        }
        return String(decoding: json.finish(), as: UTF8.self) + "\n"
    }

    private static func text(
        _ masters: [(version: Int64, state: String, count: Int64)],
        _ failing: [(container: String, environment: String, reason: String)], _ without: Int64,
        isCheck: Bool
    ) -> String {
        var text = ""
        if !isCheck {
            var table = TextTable([
                .init("MASTER", alignsRight: true), .init("STATE"),
                .init("CONTAINERS", alignsRight: true),
            ])
            for master in masters {
                table.append(["\(master.version)", master.state, "\(master.count)"])
            }
            text += table.write()
            if without > 0 { text += "containers without a key yet: \(without)\n" }
        }
        for one in failing {
            text += "cannot open the key of \(one.container) (\(one.environment)): \(one.reason)\n"
        }
        if isCheck, failing.isEmpty {
            let count = masters.reduce(0) { $0 + $1.count }
            text += "the keys of \(count) containers open\n"
        }
        return text
    }

    private func rotate() async throws(AdminClient.Failure) -> ExitCode {
        var wrapped: Int64 = 0
        var version: Int64 = 0
        try await self.slices { (start) throws(AdminClient.Failure) in
            var json = JSONWriter()
            json.object { $0.member("from", start) }
            return try await self.ask("POST", "/v1/encryption-keys/rotation", body: json.finish())
        } _: { root in
            wrapped += root["wrapped"]?.int64 ?? 0
            version = root["version"]?.int64 ?? version
        }
        if self.isJSON {
            var json = JSONWriter()
            json.object {
                $0.member("version", version)
                $0.member("wrapped", wrapped)
            }
            return self.show(String(decoding: json.finish(), as: UTF8.self) + "\n")
        }
        return self.show("\(wrapped) containers' keys are now wrapped under master \(version)\n")
    }

    /// Asks for one slice of the containers after the other: `next` in an answer is where the next
    /// one begins.
    private func slices(
        _ ask: (Int64) async throws(AdminClient.Failure) -> AdminClient.Answer,
        _ take: (JSONValue) -> Void
    ) async throws(AdminClient.Failure) {
        var from: Int64? = 0
        for _ in 0..<Self.sliceCountMax {
            guard let start = from else { break }
            let root = try self.document(try await ask(start))
            take(root)
            from = root["next"]?.int64
        }
    }
}
