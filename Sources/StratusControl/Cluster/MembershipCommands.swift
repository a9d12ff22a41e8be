import StratusAdminModel
import StratusCommandLine
import StratusHTTP
import StratusModel
import StratusProcess
import StratusRuntime

/// `stratusctl` where it changes the cluster, or waits for it to change.
struct MembershipCommands: AdminConversation {
    let context: ControlContext

    init(_ context: ControlContext) { self.context = context }

    /// For a look at the cluster, of which many follow one another while nodes come and go.
    private static let patience = Duration.seconds(15)
    /// For a change: the node waits this long itself for the system partition's leader, so that one
    /// attempt is enough to say that there is none.
    private static let changePatience = Duration.seconds(5)

    // MARK: Asking

    private func value(_ name: String) -> String { self.invocation.value(name) }

    private func cluster() async throws(AdminClient.Failure) -> ClusterAnswer {
        try await self.insist("GET", "/v1/cluster", for: Self.patience).read()
    }

    @discardableResult
    private func change(_ path: String) async throws(AdminClient.Failure) -> AdminClient.Answer {
        try await self.insist("POST", path, for: Self.changePatience)
    }

    @discardableResult
    private func change(_ path: String, _ body: some NamedMembers, method: String = "POST")
        async throws(AdminClient.Failure) -> AdminClient.Answer
    {
        try await self.insist(method, path, body: body.json, for: Self.changePatience)
    }

    private func body(leaves: Bool = false) throws(AdminClient.Failure) -> NodeRemovalBody {
        var body = NodeRemovalBody()
        body.leaves = leaves
        if let text = self.invocation["accept"] {
            guard let number = Int64(text), number >= 0 else {
                throw Failure(.usage, "'--accept' takes the number that the refusal named")
            }
            body.accept = number
        }
        return body
    }

    private func node(_ positional: String, _ action: String = "") throws(AdminClient.Failure)
        -> String
    {
        let name = self.value(positional)
        guard NodeName.isName(name) else {
            throw Failure(.usage, "'\(name)' is not a node's name")
        }
        return "/v1/cluster/nodes/\(name)\(action)"
    }

    private func partition(_ action: String) -> String {
        let name = self.value("PARTITION").filter { $0.isLetter || $0.isNumber }
        return "/v1/cluster/partitions/\(name)/\(action)"
    }

    private func say(_ text: String) -> ExitCode { self.show(DoneAnswer(), text + "\n") }

    // MARK: Certificates and tokens

    private func certificate(_ action: String) -> String {
        let digits = self.value("FINGERPRINT").filter(\.isHexDigit).lowercased()
        return "/v1/cluster/certificates/\(digits.isEmpty ? "none" : digits)/\(action)"
    }

    func withdrawCertificate() async throws(AdminClient.Failure) -> ExitCode {
        try await self.change(
            self.certificate("withdraw"), CertificateBody { $0.holder = self.invocation["of"] })
        return self.say("withdrawn: no peer takes this certificate any more")
    }

    func restoreCertificate() async throws(AdminClient.Failure) -> ExitCode {
        try await self.change(self.certificate("restore"))
        return self.say("restored: peers take this certificate again")
    }

    func listCertificates() async throws(AdminClient.Failure) -> ExitCode {
        let answer = try await self.ask("GET", "/v1/cluster/certificates")
        return try self.tell(answer) { (listed: WithdrawnAnswer) in
            listed.certificates.isEmpty ? "none\n" : TextTable.text(listed.certificates)
        }
    }

    func joinToken() async throws(AdminClient.Failure) -> ExitCode {
        let seconds = (self.invocation.duration("valid") ?? .seconds(3_600)).components.seconds
        let made: JoinTokenAnswer = try await self.change(
            "/v1/cluster/join-tokens", JoinTokenBody { $0.validSeconds = seconds }
        ).read()
        if !self.isJSON {
            Terminal.write(
                "Valid for one node, for \(DurationText.write(.seconds(seconds))).\n",
                to: Terminal.errors)
        }
        return self.show(made, made.token + "\n")
    }

    // MARK: Nodes

    func drain() async throws(AdminClient.Failure) -> ExitCode {
        try await self.change(try self.node("NODE", "/drain"), try self.body())
        return try await self.waitUntilEmpty("NODE", isRemoved: false)
    }

    func undrain() async throws(AdminClient.Failure) -> ExitCode {
        try await self.change(try self.node("NODE", "/undrain"))
        return self.say("undrained: its share of the replicas moves back to it")
    }

    func remove() async throws(AdminClient.Failure) -> ExitCode {
        if self.invocation.flag("now") {
            try await self.change(try self.node("NODE", "/remove"), try self.body())
            return self.say("removed")
        }
        try await self.change(try self.node("NODE", "/drain"), try self.body(leaves: true))
        return try await self.waitUntilEmpty("NODE", isRemoved: true)
    }

    func weight() async throws(AdminClient.Failure) -> ExitCode {
        guard let weight = Int64(self.value("WEIGHT")), (1...100_000).contains(weight) else {
            throw Failure(.usage, "the weight must be a whole number from 1 to 100000")
        }
        try await self.change(
            try self.node("NODE"),
            NodeWeightBody {
                $0.weight = weight
                $0.rack = self.invocation["rack"]
            }, method: "PUT")
        return self.say("changed: replicas move until every node has its share")
    }

    func replace() async throws(AdminClient.Failure) -> ExitCode {
        let new = self.value("NEW")
        let cluster = try await self.cluster()
        guard
            let successor = cluster.nodes.first(where: { $0.name == new && $0.state == "active" }),
            successor.wasHeard
        else {
            throw Failure(
                .refused, "'\(new)' is not an active node of the cluster: let it join first")
        }
        try await self.change(try self.node("OLD", "/drain"), try self.body(leaves: true))
        return try await self.waitUntilEmpty("OLD", isRemoved: true)
    }

    /// Until the node holds nothing, with progress. Interrupting it stops the waiting and nothing
    /// else.
    private func waitUntilEmpty(_ positional: String, isRemoved: Bool)
        async throws(AdminClient.Failure) -> ExitCode
    {
        let name = self.value(positional)
        if self.invocation.flag("no-wait") { return self.say("begun") }
        var bar = ProgressBar(
            "Moving replicas off \(name)", isTerminal: Terminal.isTerminal(Terminal.errors),
            width: Terminal.width)
        let clock = ContinuousClock()
        let start = clock.now
        var total: Int?
        while true {
            let cluster = try await self.cluster()
            let node = cluster.nodes.last { $0.name == name }
            let held = cluster.replicaCount(of: node?.node ?? 0)
            total = max(total ?? held, held)
            if let line = bar.update(
                done: (total ?? 0) - held, total: total, unit: "replicas",
                elapsed: clock.now - start)
            {
                Terminal.write(line, to: Terminal.errors)
            }
            let isGone = node?.isMember != true
            if isRemoved ? isGone : held == 0 {
                if let clear = bar.finish() { Terminal.write(clear, to: Terminal.errors) }
                return self.say(
                    isRemoved ? "removed: stop the node" : "drained: it holds no replicas")
            }
            try? await Task.sleep(for: .milliseconds(200))
        }
    }

    // MARK: Partitions

    func showPartition() async throws(AdminClient.Failure) -> ExitCode {
        let cluster = try await self.cluster()
        let health: ClusterHealthAnswer = try await self.insist(
            "GET", "/v1/cluster/health", for: Self.patience
        ).read()
        guard let view = PartitionView(self.value("PARTITION"), cluster, health) else {
            throw Failure(.refused, "there is no partition '\(self.value("PARTITION"))'")
        }
        return self.show(view, view.text)
    }

    func moveLeader() async throws(AdminClient.Failure) -> ExitCode {
        try await self.change(
            self.partition("leader"), PartitionLeaderBody { $0.to = self.value("to") })
        return self.say("\(self.value("to")) leads partition \(self.value("PARTITION"))")
    }

    func movePartition() async throws(AdminClient.Failure) -> ExitCode {
        try await self.change(
            self.partition("move"),
            PartitionMoveBody {
                $0.from = self.value("from")
                $0.to = self.value("to")
            })
        if self.invocation.flag("no-wait") { return self.say("begun") }
        let name = self.value("PARTITION")
        var bar = ProgressBar(
            "Moving partition \(name)", isTerminal: Terminal.isTerminal(Terminal.errors),
            width: Terminal.width)
        let clock = ContinuousClock()
        let start = clock.now
        var count = 0
        while try await self.cluster().moves.contains(where: { $0.partition == name }) {
            count += 1
            if let line = bar.update(
                done: count, total: nil, unit: "looks", elapsed: clock.now - start)
            {
                Terminal.write(line, to: Terminal.errors)
            }
            try? await Task.sleep(for: .milliseconds(200))
        }
        if let clear = bar.finish() { Terminal.write(clear, to: Terminal.errors) }
        return self.say("moved")
    }
}
