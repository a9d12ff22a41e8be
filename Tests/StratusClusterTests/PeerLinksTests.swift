import StratusCluster
import StratusCoding
import StratusDoubles
import StratusModel
import StratusRuntime
import StratusTLS
import Synchronization
import Testing

/// Links over real sockets and real TLS on the loopback interface.
@Suite struct PeerLinksTests {
    @Test func `two nodes hear each other, large and small`() async throws {
        let pair = try await LinkPair.make()
        defer { pair.stop() }
        #expect(await pair.bothOpen())
        let large = Bytes((0..<3_000_000).map { UInt8(truncatingIfNeeded: $0 &* 31) })
        let chunk = ConsensusMessage(
            term: Term(3),
            .append(
                previous: .zero,
                entries: [
                    Entry(
                        index: LogIndex(1), term: Term(3), time: .zero, kind: .command,
                        payload: large)
                ], commit: .zero))
        #expect(pair.one.send(.consensus(GroupID(7), chunk), to: NodeID(2)))
        #expect(pair.two.send(.consensus(GroupID(8), chunk), to: NodeID(1)))
        #expect(
            pair.one.send(
                .consensus(GroupID(9), ConsensusMessage(term: Term(1), .resigned)), to: NodeID(2)))
        let heardByTwo = await pair.heard(by: 2, count: 2)
        #expect(
            heardByTwo == [
                .consensus(GroupID(7), chunk),
                .consensus(GroupID(9), ConsensusMessage(term: Term(1), .resigned)),
            ])
        #expect(await pair.heard(by: 1, count: 1) == [.consensus(GroupID(8), chunk)])
    }

    @Test func `more than a window goes through, as long as the receiver takes it`() async throws {
        var tuning = PeerLinks.Tuning()
        tuning.frames.windowSize = 100_000
        let pair = try await LinkPair.make(tuning: tuning)
        defer { pair.stop() }
        #expect(await pair.bothOpen())
        let body = Query(kind: .reference, body: Bytes(repeating: 5, count: 40_000))
        for number in 0..<50 as Range<UInt64> {
            let request = PeerRequest(
                number: number, group: GroupID(1), epoch: 1, remainingMilliseconds: 1,
                body: .query(body))
            #expect(pair.one.send(.request(request), to: NodeID(2)))
        }
        #expect(await pair.heard(by: 2, count: 50).count == 50)
    }

    @Test func `a message as large as the window goes once a heartbeat has told the last credit`()
        async throws
    {
        var tuning = PeerLinks.Tuning()
        tuning.frames.windowSize = 100_000
        let pair = try await LinkPair.make(tuning: tuning)
        defer { pair.stop() }
        #expect(await pair.bothOpen())
        for (number, size) in [(0, 500), (1, 120_000)] as [(UInt64, Int)] {
            let request = PeerRequest(
                number: number, group: GroupID(1), epoch: 1, remainingMilliseconds: 1,
                body: .query(Query(kind: .reference, body: Bytes(repeating: 5, count: size))))
            #expect(pair.one.send(.request(request), to: NodeID(2)))
        }
        // The first is less than a step of credit, and the second may begin only when all is taken.
        #expect(await pair.heard(by: 2, count: 1).count == 1)
        let heartbeat = PeerMessage.heartbeat(
            NodeHeartbeat(
                incarnation: NodeIncarnation(1), sequence: 1, unsyncedMilliseconds: 0,
                wallMilliseconds: 1, declinesLeadership: false, resigned: []))
        #expect(pair.one.send(heartbeat, to: NodeID(2)))
        let heard = await pair.heard(by: 2, count: 3)
        #expect(heard.contains(heartbeat) && heard.count == 3)
    }

    @Test func `copies take a link of their own, and its bounds`() async throws {
        let pair = try await LinkPair.make()
        defer { pair.stop() }
        #expect(await pair.bothOpen())
        func put(_ number: UInt64) -> PeerMessage {
            let name = CopyName(body: BodyID(UInt128(number)), ordinal: 0)
            return .copy(
                .put(
                    number: number, group: GroupID(1),
                    copy: StoredCopy(
                        name: name, orphanAfterMilliseconds: 5,
                        bytes: Bytes(repeating: 7, count: 300_000))))
        }
        // More than a window. They wait while the link is opened.
        for number in 0..<40 as Range<UInt64> {
            #expect(pair.one.send(put(number), to: NodeID(2)))
        }
        #expect(await pair.heard(by: 2, count: 40).count == 40)
        #expect(pair.one.openCount == 1)
        // What is small goes the ordinary way, on which nothing of that stands before it.
        let answer = PeerMessage.copy(.stored(number: 3, at: LogIndex(8)))
        #expect(pair.two.send(answer, to: NodeID(1)))
        #expect(await pair.heard(by: 1, count: 1) == [answer])
        // The queue is bounded: whoever sends faster than the wire is refused in the end.
        var takenCount = 0
        while takenCount < 20_000, pair.one.send(put(UInt64(takenCount)), to: NodeID(2)) {
            takenCount += 1
        }
        #expect(takenCount < 20_000)
    }

    @Test func `a link is opened again when the peer comes back`() async throws {
        let pair = try await LinkPair.make()
        defer { pair.stop() }
        #expect(await pair.bothOpen())
        await pair.two.stop()
        #expect(await LinkPair.eventually { !pair.one.isOpen(to: NodeID(2)) })
        #expect(!pair.one.send(.taken(0), to: NodeID(2)))
        // Its port is closed, as that of a process that has ended.
        let heard = pair.running[0].heard
        #expect(await LinkPair.eventually { heard.ended.withLock { $0 } == [NodeID(2)] })
        let again = try await LinkPair.node(2, pair.material, port: pair.ports[1], tuning: .init())
        again.links.setPeers(pair.addresses)
        #expect(await LinkPair.eventually { pair.one.isOpen(to: NodeID(2)) })
        await again.links.stop()
        again.loop.stop()
    }

    @Test func `M-18 a node of another cluster is refused, in plain words`() async throws {
        let pair = try await LinkPair.make(clusterOfTwo: ClusterID(high: 9, low: 9))
        defer { pair.stop() }
        let said = await LinkPair.eventually {
            pair.log.lines.withLock { $0 }.contains { $0.contains("this is cluster") }
        }
        #expect(said, "\(pair.log.lines.withLock { $0 })")
        #expect(!pair.one.isOpen(to: NodeID(2)))
    }

    @Test func `X-17 a certificate of another authority is refused`() async throws {
        let pair = try await LinkPair.make(
            authorityOfTwo: try .make(
                commonName: "another", now: 1_700_000_000, validSeconds: 4_000_000_000))
        defer { pair.stop() }
        let said = await LinkPair.eventually {
            !pair.log.lines.withLock { $0 }.filter { $0.contains("TLS untrustedPeer") }.isEmpty
        }
        #expect(said, "\(pair.log.lines.withLock { $0 })")
        #expect(!pair.one.isOpen(to: NodeID(2)) && !pair.two.isOpen(to: NodeID(1)))
    }

    @Test func `X-17 a certificate speaks for the node it names, and for no other`() {
        let own = PeerIdentity(
            cluster: ClusterID(high: 1, low: 2), node: NodeID(1), name: "a",
            data: RequestIdentity(high: 1, low: 1), starts: NodeStarts(first: NodeIncarnation(5)))
        let peers = [PeerAddress(node: NodeID(2), name: "b", host: "h", port: 1)]
        let good = PeerGreeting.hello(
            from: PeerIdentity(
                cluster: own.cluster, node: NodeID(2), name: "b",
                data: RequestIdentity(high: 2, low: 2),
                starts: NodeStarts(first: NodeIncarnation(6))),
            to: NodeID(1))
        func refusal(_ hello: PeerHello, _ name: String?) -> PeerRefusal.Reason? {
            switch PeerGreeting.answer(to: hello, certificateName: name, own: own, peers: peers) {
            case .success: nil
            case .failure(let refusal): refusal.reason
            }
        }
        #expect(refusal(good, "b") == nil)
        #expect(refusal(good, "c") == .unknownNode)
        #expect(refusal(good, nil) == .unknownNode)
        var other = good
        other.receiver = NodeID(3)
        #expect(refusal(other, "b") == .otherNode)
        other = good
        other.node = NodeID(4)
        #expect(refusal(other, "b") == .unknownNode)
        other = good
        other.protocolMin = 4
        other.protocolMax = 5
        #expect(refusal(other, "b") == .noCommonProtocol)
        other.protocolMin = 3
        other.protocolMax = 1
        #expect(refusal(other, "b") == .noCommonProtocol)
        other.protocolMin = 0
        other.protocolMax = 9
        #expect(refusal(other, "b") == nil)
    }

    @Test func `C-41 M-07 S-35 a node without its data is refused by who knew it, and not called`()
        async throws
    {
        let pair = try await LinkPair.make()
        defer { pair.stop() }
        #expect(await pair.bothOpen())
        await pair.two.stop()
        #expect(await LinkPair.eventually { !pair.one.isOpen(to: NodeID(2)) })
        // The same name, certificate and place; nothing remembered, and another directory.
        let wiped = try await LinkPair.node(
            2, pair.material, port: pair.ports[1], tuning: .init(), data: 7)
        wiped.links.setPeers(pair.addresses)
        #expect(await LinkPair.eventually { !wiped.heard.refusals.withLock { $0.isEmpty } })
        #expect(wiped.heard.refusals.withLock { $0.first?.reason } == .otherData)
        #expect(
            await LinkPair.eventually {
                let lines = pair.log.lines.withLock { $0 }
                return lines.contains { $0.contains("gets no messages") }
                    && lines.contains { $0.contains("was refused") }
            })
        #expect(!pair.one.isOpen(to: NodeID(2)) && !wiped.links.isOpen(to: NodeID(1)))
        #expect(!wiped.links.send(.taken(0), to: NodeID(1)))
        // It tries again and again, from another port each time; the log says so once.
        #expect(await LinkPair.eventually { wiped.heard.refusals.withLock { $0.count } >= 4 })
        let told = pair.log.lines.withLock { lines in
            lines.count { $0.hasPrefix("1:") && $0.contains("was refused") }
        }
        #expect(told == 1)
        await wiped.links.stop()
        wiped.loop.stop()
        // With the old data it is heard again.
        let back = try await LinkPair.node(2, pair.material, port: pair.ports[1], tuning: .init())
        back.links.setPeers(pair.addresses)
        #expect(await LinkPair.eventually { pair.one.isOpen(to: NodeID(2)) })
        #expect(await LinkPair.eventually { back.links.isOpen(to: NodeID(1)) })
        await back.links.stop()
        back.loop.stop()
    }
}

/// Strangers on the peer port that hold connections and prove nothing (security audit 4).
@Suite struct SilentStrangersTests {
    @Test func `security audit 4: a node that restarts joins beside silent strangers`() async throws
    {
        let pair = try await LinkPair.make()
        defer { pair.stop() }
        #expect(await pair.bothOpen())
        await pair.two.stop()
        #expect(await LinkPair.eventually { !pair.one.isOpen(to: NodeID(2)) })
        let strangers = pair.ports.map { SilentStrangers(32, at: $0) }
        defer { for some in strangers { some.leave() } }
        try await Task.sleep(for: .milliseconds(300))
        let again = try await LinkPair.node(2, pair.material, port: pair.ports[1], tuning: .init())
        again.links.setPeers(pair.addresses)
        #expect(
            await LinkPair.eventually(within: .seconds(10)) {
                pair.one.isOpen(to: NodeID(2)) && again.links.isOpen(to: NodeID(1))
            })
        #expect(pair.one.strangersSeen.displaced > 0)
        await again.links.stop()
        again.loop.stop()
    }

    @Test func `security audit 4: a newcomer is answered beside silent strangers`() async throws {
        let pair = try await LinkPair.make()
        defer { pair.stop() }
        #expect(await pair.bothOpen())
        let strangers = SilentStrangers(32, at: pair.ports[0])
        defer { strangers.leave() }
        try await Task.sleep(for: .milliseconds(300))
        let (identity, authority) = try pair.material.certificate(of: 2)
        let client = try TLSContext(
            client: TLSClientConfiguration(
                authorityPEM: authority, identity: identity, minimumVersion: .tls13))
        let join = PeerJoin(
            name: "node-2", address: "h:1", weight: 100, rack: "", featureLevel: 1, token: [1])
        var answer: JoinDialog.Answer = .unreachable("")
        for _ in 0..<10 {
            answer = await JoinDialog.ask(
                join, of: .init(name: "node-1", host: "127.0.0.1", port: pair.ports[0]),
                tls: client, loop: pair.running[1].loop)
            if case .unreachable = answer { continue }
            break
        }
        #expect(answer == .refused(PeerRefusal(.unknownNode, "nobody can join here")))
    }

    @Test func `security audit 10: connections that prove nothing are counted`() async throws {
        var tuning = PeerLinks.Tuning()
        tuning.handshakePatience = .milliseconds(50)
        let pair = try await LinkPair.make(tuning: tuning)
        defer { pair.stop() }
        let strangers = SilentStrangers(1, at: pair.ports[0])
        defer { strangers.leave() }
        #expect(
            await LinkPair.eventually(within: .seconds(10)) { pair.one.strangersSeen.failed >= 3 })
    }
}

/// Certificates for two nodes, made once.
struct LinkMaterial: Sendable {
    let authorities: [CertificateAuthority]
    let clusters: [ClusterID]
    let log = LinkLog()

    func certificate(of node: UInt32) throws -> (CertificateAndKey, authority: Bytes) {
        let authority = self.authorities[Int(node - 1)]
        let name = "node-\(node)"
        let issued = try authority.issue(
            .init(
                commonName: name, dnsNames: [name], purpose: .both, now: 1_700_000_000,
                validSeconds: 4_000_000_000))
        return (issued, authority.identity.certificatePEM)
    }
}

final class LinkLog: Sendable {
    let lines = Mutex<[String]>([])
}

/// Two nodes' links and what they heard.
final class LinkPair: Sendable {
    struct Running: Sendable {
        let links: PeerLinks
        let loop: EventLoop
        let heard: LinkHeard
        let port: UInt16
    }

    final class LinkHeard: Sendable {
        let messages = Mutex<[PeerMessage]>([])
        let refusals = Mutex<[PeerRefusal]>([])
        /// Peers whose processes have ended.
        let ended = Mutex<[NodeID]>([])
    }

    let material: LinkMaterial
    let running: [Running]
    var one: PeerLinks { self.running[0].links }
    var two: PeerLinks { self.running[1].links }
    var ports: [UInt16] { self.running.map(\.port) }
    var log: LinkLog { self.material.log }
    var addresses: [PeerAddress] {
        self.running.enumerated().map { index, node in
            PeerAddress(
                node: NodeID(UInt32(index + 1)), name: "node-\(index + 1)", host: "127.0.0.1",
                port: node.port)
        }
    }

    private init(_ material: LinkMaterial, _ running: [Running]) {
        self.material = material
        self.running = running
    }

    static func make(
        tuning: PeerLinks.Tuning = .init(), clusterOfTwo: ClusterID? = nil,
        authorityOfTwo: CertificateAuthority? = nil
    ) async throws -> LinkPair {
        let cluster = ClusterID(high: 1, low: 1)
        let authority = try CertificateAuthority.make(
            commonName: "stratus test", now: 1_700_000_000, validSeconds: 4_000_000_000)
        let material = LinkMaterial(
            authorities: [authority, authorityOfTwo ?? authority],
            clusters: [cluster, clusterOfTwo ?? cluster])
        let pair = LinkPair(
            material,
            [
                try await Self.node(1, material, port: 0, tuning: tuning),
                try await Self.node(2, material, port: 0, tuning: tuning),
            ])
        for node in pair.running { node.links.setPeers(pair.addresses) }
        return pair
    }

    static func node(
        _ number: UInt32, _ material: LinkMaterial, port: UInt16, tuning: PeerLinks.Tuning,
        data: UInt64? = nil, starts: NodeStarts? = nil
    ) async throws -> Running {
        let (identity, authority) = try material.certificate(of: number)
        let client = try TLSContext(
            client: TLSClientConfiguration(
                authorityPEM: authority, identity: identity, minimumVersion: .tls13))
        let loop = EventLoop(name: "links-\(number)")
        let heard = LinkHeard()
        let sockets = SocketLinks(
            on: loop,
            certificates: .init(
                server: try TLSContextSource(
                    TLSServerConfiguration(
                        identity: identity,
                        clientCertificates: .required(authorityPEM: authority))),
                client: { client }))
        let links = PeerLinks(
            PeerIdentity(
                cluster: material.clusters[Int(number - 1)], node: NodeID(number),
                name: "node-\(number)",
                data: RequestIdentity(high: data ?? UInt64(number), low: 1),
                starts: starts ?? NodeStarts(first: NodeIncarnation(UInt64(number)))),
            memory: try PeerMemory(in: SimulatedWorld(seed: UInt64(number))), over: sockets,
            tuning: tuning,
            events: .init(
                received: { _, message, receipt in
                    heard.messages.withLock { $0.append(message) }
                    receipt.settle()
                },
                processEnded: { node in heard.ended.withLock { $0.append(node) } },
                refused: { _, refusal in heard.refusals.withLock { $0.append(refusal) } },
                trouble: { peer, what in
                    material.log.lines.withLock { $0.append("\(number): \(peer): \(what)") }
                }))
        let bound = try await sockets.listen(on: .ip("127.0.0.1", port: port), for: links)
        return Running(links: links, loop: loop, heard: heard, port: bound.port ?? 0)
    }

    func bothOpen() async -> Bool {
        await Self.eventually { self.one.openCount == 1 && self.two.openCount == 1 }
    }

    func heard(by node: Int, count: Int) async -> [PeerMessage] {
        let heard = self.running[node - 1].heard
        _ = await Self.eventually { heard.messages.withLock { $0.count } >= count }
        return heard.messages.withLock { $0 }
    }

    /// Asks again and again until the answer is yes, or the patience ends.
    static func eventually(
        within patience: Duration = .seconds(120), _ body: @Sendable () -> Bool
    ) async -> Bool {
        let end = ContinuousClock.now + patience
        while ContinuousClock.now < end {
            if body() { return true }
            try? await Task.sleep(for: .milliseconds(10))
        }
        return body()
    }

    func stop() {
        for node in self.running {
            Task {
                await node.links.stop()
                node.loop.stop()
            }
        }
    }
}
