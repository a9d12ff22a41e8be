import StratusAdminModel
import StratusCluster
import StratusContainers
import StratusHTTP
import StratusIdentity
import StratusModel
import StratusPlacement
import StratusRuntime

/// The changes that administrators make to the cluster. Every change is a line in the log.
struct ClusterChanges {
    let cluster: any ClusterControl
    let exchange: AdminExchange

    private static let tokenSecondsMax: Int64 = 30 * 86_400
    private static let node = "/v1/cluster/nodes/{node}"
    private static let certificate = "/v1/cluster/certificates/{fingerprint}"
    private static let partition = "/v1/cluster/partitions/{partition}"
    private static let revision = "the cluster's revision"

    static let routes: [AdminRoute] = [
        Self.route(
            "GET", "/v1/cluster/upgrade", answer: "the feature levels of cluster and nodes"
        ) { changes in
            AdminAnswer.json(UpgradeAnswer(UpgradeStanding(try await changes.view())))
        },
        Self.route("POST", "/v1/cluster/upgrade", answer: Self.revision) { changes in
            try await changes.finalise()
        },
        Self.route(
            "POST", "/v1/cluster/join-tokens", body: "validSeconds",
            answer: "a token that lets one node in, shown this once"
        ) { try await $0.makeToken($0.body()) },
        Self.route("PUT", Self.node, body: "weight, rack", answer: Self.revision) {
            try await $0.configure($0.body())
        },
        Self.route(
            "POST", Self.node + "/drain", body: "leave, accept", answer: Self.revision
        ) { changes in
            let body: NodeRemovalBody = try await changes.body()
            let node = try await changes.node()
            return try await changes.change(
                .drain(
                    node.id, leavesWhenEmpty: body.leaves,
                    acceptedReplicaCount: body.acceptedCount))
        },
        Self.route("POST", Self.node + "/undrain", answer: Self.revision) { changes in
            let node = try await changes.node()
            return try await changes.change(.undrain(node.id))
        },
        Self.route(
            "POST", Self.node + "/remove", body: "accept", answer: Self.revision
        ) { changes in
            let body: NodeRemovalBody = try await changes.body()
            let node = try await changes.node()
            return try await changes.change(
                .remove(node.id, acceptedLossCount: body.acceptedCount))
        },
        Self.route(
            "GET", "/v1/cluster/certificates",
            answer: "the withdrawn certificates: whose, since when, and by whom"
        ) { changes in
            try await changes.certificates()
        },
        Self.route(
            "POST", Self.certificate + "/withdraw", body: "of", answer: Self.revision
        ) { changes in
            let body: CertificateBody = try await changes.body()
            let holder = (body.holder ?? "").filter { !$0.isWhitespace }.prefix(64)
            return try await changes.change(
                .withdrawCertificate(try changes.fingerprint()),
                remark: holder.isEmpty ? "" : Self.holderMark + holder)
        },
        Self.route("POST", Self.certificate + "/restore", answer: Self.revision) { changes in
            try await changes.change(.restoreCertificate(try changes.fingerprint()))
        },
        Self.route(
            "POST", Self.partition + "/move", body: "from, to", answer: Self.revision
        ) { try await $0.move($0.body()) },
        Self.route(
            "POST", Self.partition + "/leader", body: "to", answer: "the name of the new leader"
        ) { try await $0.transfer($0.body()) },
    ]

    private static func route(
        _ method: String, _ template: String, body: String = "", answer: String,
        run: @escaping @Sendable (Self) async throws -> HTTPResponse
    ) -> AdminRoute {
        AdminRoute(method, template, need: .cluster, body: body, answer: answer) { exchange in
            let changes = Self(cluster: try exchange.cluster, exchange: exchange)
            do {
                return try await run(changes)
            } catch let failure as NodeControlFailure {
                throw exchange.refusal(of: failure)
            }
        }
    }

    private func body<Body: NamedMembers>() async throws -> Body { try await self.exchange.body() }

    private func configure(_ body: NodeWeightBody) async throws -> HTTPResponse {
        try await self.change(
            .configure(
                try await self.node().id, weight: body.weight.map { UInt32(clamping: $0) },
                rack: body.rack))
    }

    private func view() async throws -> ClusterView {
        guard let view = try await self.cluster.view() else {
            throw AdminRefusal(503, .notFormed, "the cluster is not formed yet")
        }
        return view
    }

    /// A member by its name; a removed one may have had the same.
    private func node() async throws -> ClusterNode {
        try Self.node(self.exchange.parameter("node"), in: try await self.view())
    }

    private static func node(_ name: String, in view: ClusterView) throws -> ClusterNode {
        guard
            let node = view.nodes.first(where: { $0.name == name && $0.isMember })
                ?? view.nodes.last(where: { $0.name == name })
        else {
            throw AdminRefusal(404, .noSuchNode, "there is no node '\(name)'")
        }
        return node
    }

    private static func group(_ name: String, in view: ClusterView) throws -> GroupID {
        if name == "system" { return .system }
        if let number = UInt16(name), Int(number) < view.table.partitionCount {
            return PartitionID(number).group
        }
        throw AdminRefusal(
            404, .noSuchPartition,
            "partitions are 'system' and 0 to \(view.table.partitionCount - 1)")
    }

    private static func word(for outcome: SystemOutcome) -> String {
        switch outcome {
        case .done(let revision): "done, revision \(revision)"
        case .joined(let id, let revision): "joined as \(id), revision \(revision)"
        case .refused(let refusal): "refused: \(refusal.explanation)"
        }
    }

    /// - Parameters:
    ///   - obstacle: what stands in the way of a move, in an operator's words.
    ///   - remark: what the audit trail says beside the change.
    private func change(
        _ command: SystemCommand, obstacle: String? = nil, remark: String = ""
    ) async throws -> HTTPResponse {
        let outcome = try await self.cluster.change(command)
        self.exchange.log.warning(
            "cluster changed by an administrator",
            [
                "request": .text(self.exchange.request.identity.uuid),
                "peer": .text(self.exchange.request.peer), "by": .text(self.exchange.actor),
                "change": .text("\(ChangeWords(command, in: self.cluster.lastView))"),
                "outcome": .text(Self.word(for: outcome)),
            ])
        switch outcome {
        case .refused(let refusal):
            if refusal.reason == .moveImpossible, let obstacle {
                return AdminAnswer.error(409, .refused, obstacle)
            }
            return Self.answer(refusal)
        case .done(let revision), .joined(_, let revision):
            await self.exchange.noteAfterwards(
                "cluster change", "\(ChangeWords(command, in: self.cluster.lastView))\(remark)")
            return AdminAnswer.json(RevisionAnswer(revision))
        }
    }

    // MARK: Upgrades

    /// Raises the cluster to the level of its newest build, once every member has announced it.
    private func finalise() async throws -> HTTPResponse {
        let standing = UpgradeStanding(try await self.view())
        guard standing.lagging.isEmpty else {
            return AdminAnswer.error(
                409, .refused,
                "\(standing.laggingNames) announced a lower feature level than \(standing.newest): install "
                    + "the new release there first, or remove the node")
        }
        guard standing.newest > standing.level else {
            return AdminAnswer.error(
                409, .finalised,
                "the cluster is at feature level \(standing.level) already, which is that of every node"
            )
        }
        return try await self.change(.raiseFeatureLevel(standing.newest.rawValue))
    }

    // MARK: Certificates

    private static let holderMark = " of "

    /// The rows know the fingerprints alone. Who withdrew one, and when, stands in the audit trail.
    private func certificates() async throws -> HTTPResponse {
        let withdrawn = try await self.view().withdrawn.map(ChangeWords.hexadecimal)
        var entries: [AuditTrail.Entry] = []
        if !withdrawn.isEmpty, let directory = self.exchange.services.directory {
            let trail = AuditTrail(store: directory.accounts.store)
            entries = (try? await trail.entries(limit: 1_000)) ?? []
        }
        return AdminAnswer.json(
            WithdrawnAnswer {
                $0.withdrawn = withdrawn
                $0.certificates = withdrawn.map { fingerprint in
                    let words = "withdraw certificate \(fingerprint)"
                    let entry = entries.last { $0.subject.hasPrefix(words) }
                    return WithdrawnAnswer.Certificate {
                        $0.fingerprint = fingerprint
                        $0.at = entry.map { WallTime.text($0.milliseconds) }
                        $0.actor = entry?.actor
                        let rest = entry?.subject.dropFirst(words.count + Self.holderMark.count)
                        $0.holder = rest?.isEmpty == false ? rest.map(String.init) : nil
                    }
                }
            })
    }

    /// As `openssl x509 -fingerprint -sha256` prints it, with or without its colons.
    private func fingerprint() throws -> Bytes {
        let text = self.exchange.parameter("fingerprint").filter { $0 != ":" }
        let digits = text.compactMap(\.hexDigitValue)
        guard digits.count == text.count, digits.count == 2 * ClusterView.fingerprintSize else {
            throw AdminRefusal.bad(
                "a fingerprint is the SHA-256 of a certificate: 64 hexadecimal digits")
        }
        return stride(from: 0, to: digits.count, by: 2).map {
            UInt8(digits[$0] << 4 | digits[$0 + 1])
        }
    }

    // MARK: Tokens

    private func makeToken(_ body: JoinTokenBody) async throws
        -> HTTPResponse
    {
        let seconds = body.validSeconds ?? 3_600
        guard (1...Self.tokenSecondsMax).contains(seconds) else {
            return AdminAnswer.error(
                400, .badRequest, "'validSeconds' must be 1 to \(Self.tokenSecondsMax)")
        }
        let made = try await self.cluster.makeJoinToken(validFor: .seconds(seconds))
        self.exchange.log.warning(
            "join token made by an administrator",
            [
                "request": .text(self.exchange.request.identity.uuid),
                "peer": .text(self.exchange.request.peer), "by": .text(self.exchange.actor),
            ])
        await self.exchange.noteAfterwards("join token", "good for \(seconds) s")
        return AdminAnswer.json(
            JoinTokenAnswer {
                $0.token = made.token
                $0.expiresMilliseconds = made.expiresMilliseconds
            })
    }

    // MARK: Partitions

    private func observation(of group: GroupID, _ view: ClusterView)
        async throws -> GroupObservation
    {
        for node in view.replicas(of: group) {
            if case .observed(let groups)? = await self.cluster.ask(
                .observe(waking: [group]), of: node),
                let seen = groups.first(where: { $0.group == group })
            {
                return seen
            }
        }
        throw AdminRefusal(
            503, .unavailable, "the partition has no leader now: ask again in a moment")
    }

    private func move(_ body: PartitionMoveBody)
        async throws -> HTTPResponse
    {
        let view = try await self.view()
        let group = try Self.group(self.exchange.parameter("partition"), in: view)
        guard let from = body.from, let to = body.to else {
            return AdminAnswer.error(400, .badRequest, "'from' and 'to' must name nodes")
        }
        let (giver, taker) = (try Self.node(from, in: view), try Self.node(to, in: view))
        let held = view.replicas(of: group)
        // What stands in the way, if the system partition refuses.
        let obstacle =
            held.contains(taker.id)
            ? "'\(to)' has a replica of the partition already"
            : held.contains(giver.id)
                ? nil
                : "'\(from)' has no replica of the partition: 'stratusctl partition show' says who has"
        let seen = try await self.observation(of: group, view)
        return try await self.change(
            .beginMove(
                ReplicaMove(
                    group, from: giver.id, to: taker.id, fence: seen.configurationIndex)),
            obstacle: obstacle)
    }

    private func transfer(_ body: PartitionLeaderBody)
        async throws -> HTTPResponse
    {
        let view = try await self.view()
        let group = try Self.group(self.exchange.parameter("partition"), in: view)
        guard let to = body.to else {
            return AdminAnswer.error(400, .badRequest, "'to' must name a node")
        }
        let heir = try Self.node(to, in: view)
        let seen = try await self.observation(of: group, view)
        guard seen.configuration.voters.contains(heir.id) else {
            return AdminAnswer.error(
                409, .refused, "'\(to)' has no replica of the partition that may lead")
        }
        if seen.leader != heir.id {
            guard
                case .done(true)? = await self.cluster.ask(
                    .transfer(group, to: heir.id), of: seen.leader)
            else {
                return AdminAnswer.error(
                    503, .unavailable, "the leader changed in the meantime: ask again")
            }
        }
        await self.exchange.noteAfterwards(
            "partition leader", "\(self.exchange.parameter("partition")) to \(to)")
        return AdminAnswer.json(LeaderAnswer(to))
    }

    // MARK: Answers

    private static func answer(_ refusal: SystemRefusal) -> HTTPResponse {
        var answer = ErrorAnswer(.refused, refusal.explanation)
        // The number by which an operator confirms a refused change, if it may be confirmed.
        let accept: Int? =
            switch refusal.reason {
            case .tooFewNodes: refusal.count
            case .holdsReplicas: refusal.limit
            default: nil
            }
        if let accept { answer.error.reason += "; to do it anyway, accept \(accept)" }
        answer.error.cause = "\(refusal.reason)"
        answer.error.accept = accept.map { Int64($0) }
        return AdminAnswer.json(answer, status: 409)
    }
}

extension NodeRemovalBody {
    fileprivate var acceptedCount: Int? { self.accept.map { Int(clamping: $0) } }
}

extension UpgradeAnswer {
    init(_ standing: UpgradeStanding) {
        self.init()
        self.featureLevel = Int64(standing.level.rawValue)
        self.newestLevel = Int64(standing.newest.rawValue)
        self.buildLevel = Int64(FeatureLevel.build.rawValue)
        self.canFinalise = standing.canFinalise
        self.isFinalised = standing.isFinalised
        self.lagging = standing.lagging.map(\.name)
        self.nodes = standing.members.map { node in
            Node {
                $0.name = node.name
                $0.node = Int64(node.id.raw)
                $0.featureLevel = Int64(node.featureLevel)
            }
        }
    }
}

extension AdminExchange {
    /// What a failure of the cluster answers.
    func refusal(of failure: NodeControlFailure) -> AdminRefusal {
        switch failure {
        case .unavailable:
            AdminRefusal(
                503, .unavailable,
                "the system partition has no leader now: a majority of its replicas is needed")
        case .outcomeUnknown:
            AdminRefusal(
                503, .outcomeUnknown,
                "the system partition did not answer in time: the change may have been made, "
                    + "so check before you repeat it")
        case .overtaken:
            AdminRefusal(409, .overtaken, "somebody else changed it in the meantime: ask again")
        case .refused(let reason): AdminRefusal(409, .refused, reason)
        case .failed(let text): self.failure(text)
        }
    }
}
