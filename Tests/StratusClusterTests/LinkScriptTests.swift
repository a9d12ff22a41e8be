import StratusCluster
import StratusCoding
import StratusDoubles
import StratusModel
import Synchronization
import Testing

/// Links over an outside that a test plays: what time it is, what arrives, and what does not.
@Suite struct LinkScriptTests {
    /// Its machine lost power after the last byte of our hello: nothing is under way, so no system
    /// finds out.
    @Test func `a peer that takes our hello and never answers is called again`() throws {
        let node = try ScriptedNode()
        node.links.setPeers([.two])
        let first = try #require(node.world.streams.first)
        first.user?.opened(by: .two)
        let said = try first.said()
        #expect(said == [.hello(node.hello(to: 2))])
        node.world.advance(by: .milliseconds(1_900))
        #expect(!first.isClosed && node.world.streams.count == 1)
        node.world.advance(by: .milliseconds(200))
        #expect(first.isClosed)
        node.world.advance(by: .milliseconds(60))
        #expect(node.world.streams.count == 2)
    }

    @Test func `a welcome in time ends the wait for it`() throws {
        let node = try ScriptedNode()
        node.links.setPeers([.two])
        let first = try #require(node.world.streams.first)
        first.user?.opened(by: .two)
        first.hear(.welcome(.two))
        #expect(node.links.isOpen(to: NodeID(2)))
        node.world.advance(by: .seconds(60))
        #expect(node.links.isOpen(to: NodeID(2)) && node.world.streams.count == 1)
    }

    /// Its process was killed between its welcome and our next write.
    @Test func `a link that breaks while it is being opened is opened again`() throws {
        let node = try ScriptedNode()
        node.links.setPeers([.two])
        let first = try #require(node.world.streams.first)
        first.user?.opened(by: .two)
        first.failsToWrite = true
        first.hear(.welcome(.two))
        #expect(!node.links.isOpen(to: NodeID(2)))
        node.world.advance(by: .seconds(1))
        #expect(node.world.streams.count == 2)
        let second = try #require(node.world.streams.last)
        second.user?.opened(by: .two)
        second.hear(.welcome(.two))
        #expect(node.links.isOpen(to: NodeID(2)))
    }

    @Test func `a link for copies is called when there is one, and again after it broke`() throws {
        let node = try ScriptedNode()
        node.links.setPeers([.two])
        let welcome = PeerWelcome.two
        let copy = PeerMessage.copy(.fetched(number: 1, bytes: [1, 2, 3]))
        #expect(node.world.streams.count == 1)
        #expect(node.links.send(copy, to: NodeID(2)))
        node.world.advance(by: .zero)
        #expect(node.world.streams.count == 2)
        // It breaks while it is being opened: what waited is lost, and it pauses.
        let first = try #require(node.world.streams.last)
        first.user?.opened(by: .two)
        first.failsToWrite = true
        first.hear(.welcome(welcome))
        node.world.advance(by: .seconds(1))
        #expect(node.world.streams.count == 2)
        #expect(node.links.send(copy, to: NodeID(2)))
        node.world.advance(by: .zero)
        #expect(node.world.streams.count == 3)
        let second = try #require(node.world.streams.last)
        second.user?.opened(by: .two)
        second.hear(.welcome(welcome))
        let said = try second.said()
        #expect(said.first == .hello(node.hello(to: 2)))
        #expect(said.dropFirst().first == .purpose(.bulk))
        #expect(said.last == copy)
        second.user?.ended(.failed(LinkFailure("reset")))
        node.world.advance(by: .seconds(1))
        // Nobody can be reached: it is refused until the pause is over.
        #expect(node.links.send(copy, to: NodeID(2)))
        node.world.advance(by: .zero)
        let third = try #require(node.world.streams.last)
        third.user?.ended(.failed(LinkFailure("refused", isRefusal: true)))
        #expect(!node.links.send(copy, to: NodeID(2)))
        node.world.advance(by: .seconds(1))
        #expect(node.links.send(copy, to: NodeID(2)))
    }

    /// Its admission is itself a change of the members.
    @Test func `a newcomer that waits for its answer is not hung up on when the members change`()
        throws
    {
        let node = try ScriptedNode()
        node.links.setPeers([.two])
        let stream = node.call()
        stream.user?.opened(by: LinkCertificate(name: "node-9", fingerprint: [9]))
        stream.hear(.join(.nine))
        let answer = try #require(node.joining.withLock { $0 })
        node.links.setPeers([
            .two, PeerAddress(node: NodeID(9), name: "node-9", host: "h", port: 1),
        ])
        answer(.success(PeerAdmission(node: NodeID(9), view: [1, 2])))
        let said = try stream.said()
        #expect(said == [.admission(PeerAdmission(node: NodeID(9), view: [1, 2]))])
    }

    @Test func `a member that is none any more is not heard`() throws {
        let node = try ScriptedNode()
        node.links.setPeers([.two])
        let stream = node.callByTwo()
        #expect(!stream.isClosed)
        node.links.setPeers([])
        #expect(stream.isClosed)
    }

    // MARK: Withdrawn certificates

    @Test func `links of a certificate that is withdrawn are closed (security audit 9)`() throws {
        let node = try ScriptedNode()
        node.links.setPeers([.two])
        let out = try #require(node.world.streams.first)
        out.user?.opened(by: .two)
        out.hear(.welcome(.two))
        let incoming = node.callByTwo()
        incoming.hear(.starts(NodeStarts(first: NodeIncarnation(2))))
        #expect(node.links.isOpen(to: NodeID(2)) && !incoming.isClosed)
        node.links.setWithdrawn([[9]])
        #expect(node.links.isOpen(to: NodeID(2)) && !incoming.isClosed)
        node.links.setWithdrawn([LinkCertificate.two.fingerprint])
        #expect(!node.links.isOpen(to: NodeID(2)) && incoming.isClosed)
    }

    @Test
    func
        `a withdrawn certificate opens nothing, joins nothing and is not spoken to (security audit 9)`()
        throws
    {
        let node = try ScriptedNode()
        node.links.setPeers([.two])
        node.links.setWithdrawn([LinkCertificate.two.fingerprint])
        // It calls: its hello is refused, by name.
        let incoming = node.callByTwo()
        guard case .refusal(let refusal)? = try incoming.said().first else {
            Issue.record("the hello was not refused")
            return
        }
        #expect(refusal.reason == .notAdmitted && refusal.text.contains("withdrawn"))
        // It is called: nothing is said to it.
        let out = try #require(node.world.streams.first)
        out.user?.opened(by: .two)
        #expect(try out.said().isEmpty && out.isClosed)
        #expect(!node.links.isOpen(to: NodeID(2)))
        // It asks to join, with a token perhaps.
        node.links.setWithdrawn([[9]])
        let stream = node.call()
        stream.user?.opened(by: LinkCertificate(name: "node-9", fingerprint: [9]))
        stream.hear(.join(.nine))
        guard case .refusal(let answer)? = try stream.said().first else {
            Issue.record("it may ask to join")
            return
        }
        #expect(answer.text.contains("withdrawn"))
        #expect(node.joining.withLock { $0 == nil })
        // Restored, it is heard again.
        let again = node.callByTwo()
        guard case .welcome? = try again.said().first else {
            Issue.record("a certificate that is not withdrawn is refused")
            return
        }
    }

    /// A node that fenced itself may still hear of a newer view.
    @Test func `links that have stopped stay closed`() async throws {
        let node = try ScriptedNode()
        node.links.setPeers([.two])
        await node.links.stop()
        let areClosed = node.world.streams.allSatisfy { $0.isClosed }
        #expect(areClosed)
        let count = node.world.streams.count
        node.links.setPeers([.two])
        #expect(node.world.streams.count == count)
        #expect(node.call().isDropped)
    }

    /// All three nodes moved. The view that tells where node 2 is now still has node 3 where it
    /// was.
    @Test
    func `a peer is called where the view has it and where the configuration has it, in turn`()
        throws
    {
        let node = try ScriptedNode()
        let listed = PeerAddress(
            node: NodeID(2), name: "node-2", host: "new", port: 2,
            otherPlace: PeerAddress.Place(host: "old", port: 1))
        node.links.setPeers([listed])
        for host in ["new", "old", "new", "old"] {
            #expect(node.world.streams.last?.peer?.host == host)
            node.world.streams.last?.user?.ended(Self.refused)
            node.world.advance(by: .seconds(1))
        }
        let last = try #require(node.world.streams.last)
        #expect(last.peer?.host == "new")
        last.user?.opened(by: .two)
        last.hear(.welcome(.two))
        // A link that breaks is opened again where it was open.
        last.user?.ended(.failed(LinkFailure("reset")))
        node.world.advance(by: .zero)
        #expect(node.world.streams.last?.peer?.host == "new")
    }

    @Test
    func `a link to a place where the peer may still be outlives a change of the other place`()
        throws
    {
        let node = try ScriptedNode()
        func moved(from old: String, to new: String) -> PeerAddress {
            PeerAddress(
                node: NodeID(2), name: "node-2", host: new, port: 1,
                otherPlace: PeerAddress.Place(host: old, port: 1))
        }
        node.links.setPeers([moved(from: "old", to: "new")])
        let first = try #require(node.world.streams.first)
        first.user?.opened(by: .two)
        first.hear(.welcome(.two))
        node.links.setPeers([moved(from: "new", to: "new")])
        #expect(!first.isClosed && node.links.isOpen(to: NodeID(2)))
        node.links.setPeers([moved(from: "newer", to: "newer")])
        #expect(first.isClosed && node.world.streams.last?.peer?.host == "newer")
    }

    @Test func `a refusal at another place says nothing of the process that was heard`() throws {
        let node = try ScriptedNode()
        node.links.setPeers([
            PeerAddress(
                node: NodeID(2), name: "node-2", host: "new", port: 2,
                otherPlace: PeerAddress.Place(host: "old", port: 1))
        ])
        let first = try #require(node.world.streams.first)
        first.user?.opened(by: .two)
        first.hear(.welcome(.two))
        first.user?.ended(.failed(LinkFailure("reset")))
        node.world.advance(by: .zero)
        node.world.streams.last?.user?.ended(.failed(LinkFailure("no connection in time")))
        node.world.advance(by: .milliseconds(60))
        #expect(node.world.streams.last?.peer?.host == "old")
        node.world.streams.last?.user?.ended(Self.refused)
        #expect(node.ended.withLock { $0 } == [])
    }

    private static let refused = LinkEnd.failed(LinkFailure("refused", isRefusal: true))

    @Test func `a peer whose connection breaks and whose system refuses the next has ended`() throws
    {
        let node = try ScriptedNode()
        node.links.setPeers([.two])
        let first = try #require(node.world.streams.first)
        first.user?.opened(by: .two)
        first.hear(.welcome(.two))
        first.user?.ended(.closed)
        node.world.advance(by: .zero)
        #expect(node.world.streams.count == 2, "called again at once")
        #expect(node.ended.withLock { $0 } == [])
        node.world.streams.last?.user?.ended(Self.refused)
        #expect(node.ended.withLock { $0 } == [NodeID(2)])
        // Once: who goes on refusing is no news.
        node.world.advance(by: .milliseconds(60))
        node.world.streams.last?.user?.ended(Self.refused)
        #expect(node.world.streams.count == 3)
        #expect(node.ended.withLock { $0 } == [NodeID(2)])
    }

    /// Core audit, beside 3: each break of an open link was followed by a call at once, without
    /// end.
    @Test func `a link that opens and breaks each time is called more and more seldom`() throws {
        let node = try ScriptedNode()
        node.links.setPeers([.two])
        var played = 0
        /// Every link opens and breaks a millisecond later.
        func callsWithin(_ milliseconds: Int) -> Int {
            let before = node.world.streams.count
            for _ in 0..<milliseconds {
                if played < node.world.streams.count {
                    let stream = node.world.streams[played]
                    played += 1
                    stream.user?.opened(by: .two)
                    stream.hear(.welcome(.two))
                    node.world.advance(by: .milliseconds(1))
                    stream.user?.ended(.failed(LinkFailure("reset")))
                } else {
                    node.world.advance(by: .milliseconds(1))
                }
            }
            return node.world.streams.count - before
        }
        #expect(callsWithin(1_000) <= 8)
        #expect(callsWithin(10_000) <= 21, "one at once and one later, in a second")
        // One that lasts makes the next break a first one.
        node.world.advance(by: .seconds(2))
        let last = try #require(node.world.streams.last)
        last.user?.opened(by: .two)
        last.hear(.welcome(.two))
        node.world.advance(by: .seconds(2))
        let count = node.world.streams.count
        last.user?.ended(.failed(LinkFailure("reset")))
        node.world.advance(by: .zero)
        #expect(node.world.streams.count == count + 1, "called again at once")
    }

    @Test func `a link that merely breaks, or was never open, tells nothing of the peer's process`()
        throws
    {
        let node = try ScriptedNode()
        node.links.setPeers([.two])
        node.world.streams.first?.user?.ended(Self.refused)
        #expect(node.ended.withLock { $0 } == [], "it was never open")
        node.world.advance(by: .milliseconds(60))
        let second = try #require(node.world.streams.last)
        second.user?.opened(by: .two)
        second.hear(.welcome(.two))
        second.user?.ended(.failed(LinkFailure("reset")))
        node.world.advance(by: .zero)
        node.world.streams.last?.user?.ended(.failed(LinkFailure("no connection in time")))
        #expect(node.ended.withLock { $0 } == [], "nobody refused")
    }

    @Test func `a peer that refuses connections and is still heard has not ended`() throws {
        let node = try ScriptedNode()
        node.links.setPeers([.two])
        let first = try #require(node.world.streams.first)
        first.user?.opened(by: .two)
        first.hear(.welcome(.two))
        let incoming = node.callByTwo()
        incoming.hear(.starts(.two))
        first.user?.ended(.closed)
        node.world.advance(by: .zero)
        node.world.streams.last?.user?.ended(Self.refused)
        #expect(node.ended.withLock { $0 } == [])
        incoming.user?.ended(.closed)
        node.world.advance(by: .milliseconds(60))
        node.world.streams.last?.user?.ended(Self.refused)
        #expect(node.ended.withLock { $0 } == [NodeID(2)])
    }

    /// Nobody has to tell it twice; but a member that only was not known yet must not be late.
    @Test func `who is told that it is no member asks less and less often, until the peer calls`()
        throws
    {
        let node = try ScriptedNode()
        node.links.setPeers([.two])
        func answerAll() {
            for stream in node.world.streams where !stream.isClosed {
                stream.user?.opened(by: .two)
                stream.hear(
                    .refusal(PeerRefusal(.unknownNode, "node-1 is not a member of this cluster")))
            }
        }
        func callsWithin(_ seconds: Int) -> Int {
            let before = node.world.streams.count
            for _ in 0..<(10 * seconds) {
                answerAll()
                node.world.advance(by: .milliseconds(100))
            }
            return node.world.streams.count - before
        }
        #expect((5...8).contains(callsWithin(60)), "1, 2, 4, 8, 16 and 32 s")
        _ = callsWithin(60)
        #expect((10...14).contains(callsWithin(600)), "once a minute, or a little more often")
        let said = node.troubles.withLock { $0 }
        #expect(
            said == [
                "refused us: node-1 is not a member of this cluster",
                "still says that this node is not a member: from now on this node asks it once "
                    + "in 60 s",
            ])
        // The other one took us in: it opens its own link.
        let before = node.world.streams.count
        let call = node.callByTwo()
        call.hear(.starts(.two))
        #expect(node.world.streams.count == before + 1)
        let last = try #require(node.world.streams.last)
        last.user?.opened(by: .two)
        last.hear(.welcome(.two))
        #expect(node.links.isOpen(to: NodeID(2)))
    }

    @Test func `S-17 nobody is heard, and breaks no connection, before it has said its starts`()
        throws
    {
        let node = try ScriptedNode()
        node.links.setPeers([.two])
        let old = node.callByTwo()
        old.hear(.starts(.two))
        let heartbeat = PeerMessage.heartbeat(
            NodeHeartbeat(
                incarnation: NodeIncarnation(2), sequence: 1, unsyncedMilliseconds: 0,
                wallMilliseconds: 1, declinesLeadership: false, resigned: []))
        old.hear(heartbeat)
        let other = node.callByTwo()
        other.hear(heartbeat)
        #expect(node.heard.withLock { $0 } == [heartbeat])
        #expect(other.isClosed && !old.isClosed)
        #expect(node.changes.withLock { $0 } == [])
    }

    /// Messages that arrive late on a connection are older than those of a later one, whether or
    /// not that is still open.
    @Test(arguments: [true, false])
    func `a connection is not heard once a later one of its node was`(isLaterAlive: Bool) throws {
        let node = try ScriptedNode()
        node.links.setPeers([.two])
        let old = node.callByTwo()
        let new = node.callByTwo()
        new.hear(.starts(.two))
        if !isLaterAlive { new.user?.ended(.closed) }
        let changes = node.changes.withLock { $0 }
        old.hear(.starts(.two))
        let late = PeerMessage.consensus(GroupID(1), ConsensusMessage(term: Term(1), .resigned))
        old.hear(late)
        #expect(old.isClosed && node.heard.withLock { $0 } == [])
        #expect(node.changes.withLock { $0 } == changes)
        if isLaterAlive {
            new.hear(late)
            #expect(!new.isClosed && node.heard.withLock { $0 } == [late])
        }
        // The next one is heard.
        let next = node.callByTwo()
        next.hear(.starts(.two))
        next.hear(late)
        #expect(node.heard.withLock { $0.last } == late)
    }

    @Test func `S-17 an older copy is refused by who heard a later start, however often it starts`()
        throws
    {
        let node = try ScriptedNode()
        node.links.setPeers([.two])
        func comes(with starts: NodeStarts) throws -> [PeerMessage] {
            let call = node.callByTwo()
            call.hear(.starts(starts))
            return try call.said()
        }
        var starts = NodeStarts(first: NodeIncarnation(2))
        var copy = starts
        starts.add(NodeIncarnation(3))
        #expect(try comes(with: starts).count == 1)
        for start in 0..<5 as Range<UInt64> {
            let said = try comes(with: copy)
            guard case .refusal(let refusal) = said.last else {
                Issue.record("start \(start) of the copy is heard: \(said)")
                continue
            }
            #expect(refusal.reason == .olderCopy)
            #expect(refusal.text.contains("start 2 of its data directory"))
            copy.add(NodeIncarnation(10 + start))
        }
        starts.add(NodeIncarnation(4))
        #expect(try comes(with: starts).count == 1)
    }

    /// Another peer may have been away when it was heard last, and would count it.
    @Test func `S-17 a node that is told that it is an older copy talks to nobody any more`() throws
    {
        let node = try ScriptedNode()
        let three = PeerAddress(node: NodeID(3), name: "node-3", host: "three", port: 1)
        node.links.setPeers([.two, three])
        for (stream, peer) in zip(node.world.streams, ["node-2", "node-3"]) {
            stream.user?.opened(by: LinkCertificate(name: peer, fingerprint: [2]))
            stream.hear(.welcome(.two))
        }
        #expect(node.links.openCount == 2)
        let first = try #require(node.world.streams.first)
        let said = try first.said()
        #expect(
            said == [.hello(node.hello(to: 2)), .starts(NodeStarts(first: NodeIncarnation(1)))])
        first.hear(.refusal(PeerRefusal(.olderCopy, "an older copy")))
        #expect(node.links.openCount == 0)
        node.world.advance(by: .seconds(600))
        let areClosed = node.world.streams.allSatisfy { $0.isClosed }
        #expect(areClosed && node.world.streams.count == 2)
        #expect(node.call().isDropped)
        #expect(node.troubles.withLock { $0 } == ["refused us: an older copy"])
    }

    @Test
    func `a peer that calls anew has broken its old connection, and who waits for it is told`()
        throws
    {
        let node = try ScriptedNode()
        node.links.setPeers([.two])
        let old = node.callByTwo()
        old.hear(.starts(.two))
        #expect(node.changes.withLock { $0 } == [])
        let new = node.callByTwo()
        new.hear(.starts(.two))
        #expect(old.isClosed && !new.isClosed)
        #expect(node.changes.withLock { $0 } == [false])
    }

    /// It started anew at an address where it does not find us yet. It takes our questions, since
    /// we call it, and its answers have nowhere to go.
    @Test func `who waits for a peer is told once its own link is heard`() throws {
        let node = try ScriptedNode()
        node.links.setPeers([.two])
        let ours = try #require(node.world.streams.first)
        ours.user?.opened(by: .two)
        ours.hear(.welcome(.two))
        #expect(node.links.isOpen(to: NodeID(2)))
        let theirs = node.callByTwo()
        #expect(node.returned.withLock { $0 } == [], "it is not heard before it has said all")
        theirs.hear(.starts(.two))
        #expect(node.returned.withLock { $0 } == [NodeID(2)])
        #expect(!theirs.isClosed && node.links.isOpen(to: NodeID(2)))
    }
}

/// A node's links in a scripted world, and what they told it.
final class ScriptedNode {
    let world = ScriptedLinkWorld()
    let links: PeerLinks
    let joining: Captured<PeerLinks.Events.JoinAnswer?>
    let changes: Captured<[Bool]>
    let troubles: Captured<[String]>
    let heard: Captured<[PeerMessage]>
    /// Peers whose processes have ended.
    let ended: Captured<[NodeID]>
    /// Peers whose own links were heard.
    let returned: Captured<[NodeID]>
    private let own = PeerIdentity(
        cluster: ClusterID(high: 1, low: 1), node: NodeID(1), name: "node-1",
        data: RequestIdentity(high: 1, low: 1), starts: NodeStarts(first: NodeIncarnation(1)))

    init() throws {
        let joining = Captured<PeerLinks.Events.JoinAnswer?>(nil)
        let changes = Captured<[Bool]>([])
        let troubles = Captured<[String]>([])
        self.joining = joining
        self.changes = changes
        let heard = Captured<[PeerMessage]>([])
        self.troubles = troubles
        self.heard = heard
        let ended = Captured<[NodeID]>([])
        self.ended = ended
        let returned = Captured<[NodeID]>([])
        self.returned = returned
        self.links = PeerLinks(
            self.own, memory: try PeerMemory(in: SimulatedWorld(seed: 1)), over: self.world,
            events: .init(
                received: { _, message, receipt in
                    heard.withLock { $0.append(message) }
                    receipt.settle()
                },
                linkChanged: { _, isOpen in changes.withLock { $0.append(isOpen) } },
                returned: { node in returned.withLock { $0.append(node) } },
                processEnded: { node in ended.withLock { $0.append(node) } },
                joining: { _, _, answer in joining.withLock { $0 = answer } },
                trouble: { _, what in troubles.withLock { $0.append(what) } }))
    }

    func hello(to node: UInt32) -> PeerHello {
        PeerGreeting.hello(from: self.own, to: NodeID(node))
    }

    /// Somebody connects.
    func call() -> ScriptedStream {
        let stream = ScriptedStream()
        self.links.accept(ScriptedSeed(stream: stream))
        return stream
    }

    /// Node 2 connects and says who it is.
    func callByTwo() -> ScriptedStream {
        let stream = self.call()
        stream.user?.opened(by: .two)
        stream.hear(.hello(.two))
        return stream
    }
}

final class Captured<Value: Sendable>: Sendable {
    private let value: Mutex<Value>
    init(_ value: Value) { self.value = Mutex(value) }
    func withLock<Result: Sendable>(_ body: @Sendable (inout Value) -> Result) -> Result {
        self.value.withLock { body(&$0) }
    }
}

/// `@unchecked`: a test plays it in one thread.
final class ScriptedLinkWorld: LinkWorld, @unchecked Sendable {
    private(set) var now = MonotonicTime(nanoseconds: 0)
    private(set) var streams: [ScriptedStream] = []
    private var timers: [(at: MonotonicTime, action: () -> Void)] = []

    func advance(by duration: Duration) {
        let end = self.now + duration
        while let next = self.timers.indices.filter({ self.timers[$0].at <= end }).min(by: {
            self.timers[$0].at < self.timers[$1].at
        }) {
            let timer = self.timers.remove(at: next)
            self.now = max(self.now, timer.at)
            timer.action()
        }
        self.now = end
    }

    func schedule(at time: MonotonicTime, _ action: @escaping () -> Void) {
        self.timers.append((time, action))
    }

    func submit(_ block: @escaping @Sendable () -> Void) { self.timers.append((self.now, block)) }

    func perform(_ block: @escaping @Sendable () -> Void) { block() }

    func connect(to peer: PeerAddress, within patience: Duration, user: any LinkStreamUser)
        -> any LinkStream
    {
        let stream = ScriptedStream()
        stream.user = user
        stream.peer = peer
        self.streams.append(stream)
        return stream
    }
}

final class ScriptedStream: LinkStream {
    weak var user: (any LinkStreamUser)?
    /// Who is called; nil for a connection that somebody else opened.
    var peer: PeerAddress?
    private(set) var isClosed = false
    /// The next write fails, and its user hears of it at once.
    var failsToWrite = false
    private var output: Bytes = []
    /// Nobody has taken the connection.
    var isDropped: Bool { self.user == nil }

    func wantsToSend() {
        if self.failsToWrite, !self.isClosed {
            self.failsToWrite = false
            self.isClosed = true
            self.user?.ended(.failed(LinkFailure("reset")))
            return
        }
        var filled: Bytes = []
        repeat {
            filled = []
            if !self.isClosed { self.user?.fill(&filled) }
            self.output.append(contentsOf: filled)
        } while !filled.isEmpty
    }

    func close() { self.isClosed = true }

    /// The peer says something.
    func hear(_ message: PeerMessage) {
        var frames = PeerFrameQueue()
        _ = frames.add(message.encoded(), message.priority)
        var bytes: Bytes = []
        frames.fill(&bytes, sizeMax: .max)
        self.user?.received(bytes)
    }

    /// The messages sent to the peer.
    func said() throws -> [PeerMessage] {
        var reader = PeerFrameReader()
        var messages: [PeerFrameReader.Message] = []
        try reader.take(self.output, into: &messages)
        return try messages.map { try PeerMessage(decoding: $0.bytes) }
    }
}

private struct ScriptedSeed: LinkSeed {
    let stream: ScriptedStream
    var origin: String { "somewhere:1" }

    func open(within patience: Duration, user: any LinkStreamUser) throws(LinkFailure)
        -> any LinkStream
    {
        self.stream.user = user
        return self.stream
    }
}

extension PeerAddress {
    fileprivate static let two = PeerAddress(
        node: NodeID(2), name: "node-2", host: "two", port: 1)
}

extension LinkCertificate {
    fileprivate static let two = LinkCertificate(name: "node-2", fingerprint: [2])
}

extension PeerWelcome {
    fileprivate static let two = PeerWelcome(
        protocolVersion: 1, incarnation: NodeIncarnation(2), featureLevel: 1,
        data: RequestIdentity(high: 2, low: 1))
}

extension PeerHello {
    fileprivate static let two = PeerGreeting.hello(
        from: PeerIdentity(
            cluster: ClusterID(high: 1, low: 1), node: NodeID(2), name: "node-2",
            data: RequestIdentity(high: 2, low: 1), starts: NodeStarts(first: NodeIncarnation(2))),
        to: NodeID(1))
}

extension NodeStarts {
    fileprivate static let two = NodeStarts(first: NodeIncarnation(2))
}

extension PeerJoin {
    fileprivate static let nine = PeerJoin(
        name: "node-9", address: "nine:1", weight: 1, rack: "", featureLevel: 1, token: [1])
}
