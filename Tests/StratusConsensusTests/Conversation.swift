import StratusCoding
import StratusConsensus
import StratusModel

/// A few replicas of one group: messages are delivered when a trace says so, disks sync when they
/// are told to, and nothing happens by itself. It runs the commands of a trace and reports the
/// messages.
struct Conversation {
    typealias Group = RaftGroup

    private struct Letter { var from: NodeID, to: NodeID, message: ConsensusMessage }
    private struct Disk {
        var hardState = HardState(term: .zero, vote: nil)
        var base = LogPoint.zero
        var baseConfiguration: Configuration
        var snapshot: SnapshotIdentity
        var entries: [Entry] = []
    }
    private struct Replica {
        var group: Group
        var disk: Disk
        /// Written, not yet synced.
        var unsynced: [LogWrite] = []
        var isHeld = false
        var isDown = false
        var electionWake: MonotonicTime?
        var applied = LogIndex.zero
        var snapshotTo: [NodeID: SnapshotIdentity] = [:]
    }

    private var now = MonotonicTime(nanoseconds: 0)
    private var replicas: [NodeID: Replica] = [:]
    private var order: [NodeID] = []
    private var letters: [Letter] = []
    private var cuts: [(NodeID, NodeID)] = []
    private var tuning = RaftTuning()
    private var lines: [String] = []
    private var tokens: UInt64 = 0
    private var isQuiet = false
    private let bugs: PlantedBugs

    init(bugs: PlantedBugs = PlantedBugs()) { self.bugs = bugs }

    /// Runs one command line of a trace and returns what to write below it.
    mutating func run(_ command: String) -> String {
        self.lines = []
        var words = command.split(separator: " ").map(String.init)
        let verb = words.removeFirst()
        var options: [String: String] = [:]
        var plain: [String] = []
        for word in words {
            if let equals = word.firstIndex(of: "=") {
                options[String(word[..<equals])] = String(word[word.index(after: equals)...])
            } else {
                plain.append(word)
            }
        }
        let nodes = plain.compactMap { UInt32($0) }.map { NodeID($0) }
        switch verb {
        case "cluster": self.makeCluster(options)
        case "log": self.setLog(nodes[0], options)
        case "timeout": self.timeOut(nodes[0])
        case "elect":
            self.timeOut(nodes[0])
            self.deliverAll(from: nil, to: nil)
        case "deliver":
            self.deliverAll(from: self.node(options["from"]), to: self.node(options["to"]))
        case "step":
            self.deliverOnce(from: self.node(options["from"]), to: self.node(options["to"]))
        case "drop":
            let (from, to) = (self.node(options["from"]), self.node(options["to"]))
            self.letters.removeAll { Self.matches($0, from, to) }
        case "repeat": self.letters += self.letters
        case "reverse": self.letters.reverse()
        case "cut": for other in nodes.dropFirst() { self.cut(nodes[0], other) }
        case "partition":
            let sides = plain.split(separator: "|").map { $0.map { NodeID(UInt32($0)!) } }
            for (index, side) in sides.enumerated() {
                for other in sides[(index + 1)...].joined() {
                    for node in side { self.cut(node, other) }
                }
            }
        case "heal": self.cuts = []
        case "propose":
            let texts = plain.dropFirst()
            self.tokens += 1
            self.handle(
                nodes[0],
                .proposed(
                    texts.map {
                        Group.Proposal(
                            token: .init(self.tokens), payload: Bytes($0.utf8), wallMilliseconds: 0,
                            heldBy: options["held"].map(self.holdings))
                    }))
        case "read":
            self.tokens += 1
            self.handle(
                nodes[0],
                .readsRequested(
                    [.init(self.tokens)], applied: self.replicas[nodes[0]]?.applied ?? .zero))
        case "members":
            self.tokens += 1
            self.handle(
                nodes[0],
                .configurationProposed(
                    .init(self.tokens), voters: self.list(options["voters"]),
                    learners: self.list(options["learners"]), wallMilliseconds: 0))
        case "holds":
            self.handle(
                nodes[0], .copiesHeld(through: LogIndex(UInt64(options["through"]!)!)))
        case "transfer": self.handle(nodes[0], .transferRequested(to: self.node(options["to"])!))
        case "suspect":
            for node in self.list(options["by"]) { self.handle(node, .suspected(nodes[0])) }
        case "ended":
            for node in self.list(options["by"]) { self.handle(node, .ended(nodes[0])) }
        case "trust": for node in self.list(options["by"]) { self.handle(node, .trusted(nodes[0])) }
        case "decline":
            for node in self.list(options["by"]) { self.handle(node, .declined(nodes[0])) }
        case "restarted":
            for node in self.list(options["by"]) { self.handle(node, .restarted(nodes[0])) }
        case "inhibit": self.handle(nodes[0], .inhibited(.rows))
        case "permit": self.handle(nodes[0], .permitted(.rows))
        case "hold": self.replicas[nodes[0]]?.isHeld = true
        case "sync":
            self.replicas[nodes[0]]?.isHeld = false
            self.sync(nodes[0])
        case "crash":
            self.replicas[nodes[0]]?.isDown = true
            self.replicas[nodes[0]]?.unsynced = []
            self.letters.removeAll { $0.to == nodes[0] }
        case "restart": self.restart(nodes[0])
        case "compact": self.compact(nodes[0], through: LogIndex(UInt64(options["through"]!)!))
        case "wait":
            self.now = self.now + .milliseconds(Int(plain[0])!)
            for node in self.list(options["at"]) { self.handle(node, .woke) }
        case "show": self.show()
        default: self.lines.append("unknown command \(verb)")
        }
        return self.lines.isEmpty ? "ok" : self.lines.joined(separator: "\n")
    }

    /// `2@5,3@7`: nodes, each with the index it had applied.
    private func holdings(_ text: String) -> [CopyHolding] {
        text.split(separator: ",").map { holding in
            let parts = holding.split(separator: "@").map { UInt64($0)! }
            return CopyHolding(node: NodeID(UInt32(parts[0])), at: LogIndex(parts[1]))
        }
    }

    // MARK: Making

    private mutating func makeCluster(_ options: [String: String]) {
        let count = UInt32(options["nodes"] ?? "3")!
        self.tuning.appendCountMax = Int(options["batch"] ?? "") ?? self.tuning.appendCountMax
        self.tuning.inFlightMessageCountMax =
            Int(options["flights"] ?? "") ?? self.tuning.inFlightMessageCountMax
        self.tuning.tailSizeMax = Int(options["tail"] ?? "") ?? self.tuning.tailSizeMax
        self.tuning.awaitsCopies = options["copies"] != nil
        self.order = (1...count).map { NodeID($0) }
        let voters =
            options["voters"].map { self.list($0) } ?? self.order
        let configuration = Configuration(
            voters: voters, learners: self.list(options["learners"]))
        for node in self.order {
            let identity = SnapshotIdentity(
                index: .zero, term: .zero, configuration: configuration, digest: .empty)
            let disk = Disk(baseConfiguration: configuration, snapshot: identity)
            self.replicas[node] = Replica(group: self.group(node, disk), disk: disk)
        }
        for node in self.order { self.handle(node, .started) }
        self.lines = []
    }

    private func group(_ node: NodeID, _ disk: Disk) -> Group {
        Group(
            group: GroupID(1), node: node,
            recovered: .init(
                hardState: disk.hardState, snapshot: disk.snapshot, base: disk.base,
                baseConfiguration: disk.baseConfiguration, entries: disk.entries),
            tuning: self.tuning, seed: UInt64(node.raw), bugs: self.bugs)
    }

    /// Gives a replica a log by the terms of its entries, as the figures of the thesis draw them.
    private mutating func setLog(_ node: NodeID, _ options: [String: String]) {
        let terms = (options["terms"] ?? "").split(separator: ",").map { UInt64($0)! }
        guard var replica = self.replicas[node] else { return }
        replica.disk.entries = terms.enumerated().map { index, term in
            Entry(
                index: LogIndex(UInt64(index) + 1), term: Term(term),
                time: HybridTime(milliseconds: 0), kind: .command, payload: [])
        }
        replica.disk.hardState = HardState(
            term: Term(UInt64(options["term"] ?? "") ?? terms.last ?? 0), vote: nil)
        replica.group = self.group(node, replica.disk)
        self.replicas[node] = replica
        self.handle(node, .started)
        self.lines = []
    }

    private mutating func restart(_ node: NodeID) {
        guard var replica = self.replicas[node] else { return }
        replica.isDown = false
        replica.isHeld = false
        replica.unsynced = []
        replica.group = self.group(node, replica.disk)
        self.replicas[node] = replica
        self.handle(node, .started)
        self.lines = []
    }

    private mutating func compact(_ node: NodeID, through index: LogIndex) {
        guard var replica = self.replicas[node],
            let identity = replica.group.snapshotIdentity(
                at: index, time: .zero, digest: .empty)
        else { return self.lines.append("\(node.raw) has no such entry") }
        replica.disk.snapshot = identity
        replica.disk.base = LogPoint(index: identity.index, term: identity.term)
        replica.disk.baseConfiguration = identity.configuration
        replica.disk.entries.removeAll { $0.index <= index }
        self.replicas[node] = replica
        self.handle(node, .released(through: index))
    }

    // MARK: Carrying out

    private mutating func handle(_ node: NodeID, _ event: Group.Event) {
        guard var replica = self.replicas[node], !replica.isDown else { return }
        var actions: [Group.Action] = []
        replica.group.handle(event, at: self.now, into: &actions)
        self.replicas[node] = replica
        for action in actions { self.carryOut(action, at: node) }
        // Only now: a log never answers before the actions around the write are carried out.
        if self.replicas[node]?.isHeld == false { self.sync(node) }
    }

    private mutating func carryOut(_ action: Group.Action, at node: NodeID) {
        switch action {
        case .persist(let write):
            self.replicas[node]?.unsynced.append(write)
        case .send(let message, let to):
            self.letters.append(Letter(from: node, to: to, message: message))
        case .sendFromLog(let to, let term, let previous, let through, let commit):
            let entries =
                self.replicas[node]?.disk.entries.filter {
                    $0.index > previous.index && $0.index <= through
                } ?? []
            let message = ConsensusMessage(
                term: term, .append(previous: previous, entries: entries, commit: commit))
            self.letters.append(Letter(from: node, to: to, message: message))
            self.handle(
                node,
                .sentFromLog(
                    to: to, through: entries.last?.index,
                    size: entries.reduce(0) { $0 + $1.cost }))
        case .wake: break
        case .apply(let through):
            self.replicas[node]?.applied = through
            self.lines.append("\(node.raw) applies through \(through)")
        case .accepted(_, let point): self.lines.append("\(node.raw) appends \(point)")
        case .refused(_, let refusal): self.lines.append("\(node.raw) refuses: \(refusal)")
        case .readReady(_, let index): self.lines.append("\(node.raw) may read at \(index)")
        case .roleChanged(let role, let term, let leader):
            let following = role == .follower ? leader.map { " of \($0.raw)" } ?? "" : ""
            self.lines.append("\(node.raw) is \(role)\(following) in term \(term)")
        case .sendSnapshot(let to, let term):
            guard let identity = self.replicas[node]?.disk.snapshot else { return }
            let chunk = SnapshotChunk(identity: identity, sequence: 0, isLast: true, bytes: [])
            let message = ConsensusMessage(term: term, .snapshotChunk(chunk))
            self.letters.append(Letter(from: node, to: to, message: message))
        case .snapshotAcknowledged, .stopSnapshot, .keepRows, .reached: break
        case .receiveChunk(let chunk, _): self.handle(node, .snapshotArrived(chunk.identity))
        case .install(let identity):
            self.lines.append("\(node.raw) installs \(identity.index)@\(identity.term)")
            self.replicas[node]?.disk.snapshot = identity
            self.replicas[node]?.disk.base = LogPoint(index: identity.index, term: identity.term)
            self.replicas[node]?.disk.baseConfiguration = identity.configuration
            self.replicas[node]?.disk.entries = []
            self.handle(node, .snapshotInstalled(identity))
        case .alarm(let alarm): self.lines.append("\(node.raw) ALARM \(alarm)")
        }
    }

    private mutating func sync(_ node: NodeID) {
        guard var replica = self.replicas[node] else { return }
        let writes = replica.unsynced
        guard !writes.isEmpty else { return }
        replica.unsynced = []
        for write in writes {
            if let hardState = write.hardState { replica.disk.hardState = hardState }
            if let from = write.truncateFrom {
                replica.disk.entries.removeAll { $0.index >= from }
            }
            replica.disk.entries += write.entries
        }
        let last = replica.disk.entries.last
        self.replicas[node] = replica
        self.handle(
            node,
            .durable(
                through: last?.index ?? replica.disk.base.index,
                term: last?.term ?? replica.disk.base.term, hardState: replica.disk.hardState))
    }

    private mutating func timeOut(_ node: NodeID) {
        // Far enough for any election timer, and for nobody else's, since only this node is woken.
        self.now = self.now + .milliseconds(500)
        self.handle(node, .woke)
    }

    // MARK: Delivering

    private static func matches(_ letter: Letter, _ from: NodeID?, _ to: NodeID?) -> Bool {
        (from == nil || letter.from == from) && (to == nil || letter.to == to)
    }

    private mutating func deliverAll(from: NodeID?, to: NodeID?) {
        var budget = 400
        while let position = self.letters.firstIndex(where: { Self.matches($0, from, to) }) {
            self.deliver(self.letters.remove(at: position))
            budget -= 1
            if budget == 0 { return self.lines.append("… and so on without end") }
        }
    }

    /// Delivers what is on its way now, and nothing that is said in answer.
    private mutating func deliverOnce(from: NodeID?, to: NodeID?) {
        let now = self.letters.filter { Self.matches($0, from, to) }
        self.letters.removeAll { Self.matches($0, from, to) }
        for letter in now { self.deliver(letter) }
    }

    private mutating func deliver(_ letter: Letter) {
        let arrow = "\(letter.from.raw) → \(letter.to.raw)  "
        let isCut = self.cuts.contains { $0 == (letter.from, letter.to) }
        if isCut || self.replicas[letter.to]?.isDown != false {
            self.lines.append(arrow + "✗ \(letter.message)")
            return
        }
        self.lines.append(arrow + "\(letter.message)")
        // Through the codec, so that a trace speaks of what a peer would really hear.
        let heard = try! ConsensusMessage(decoding: letter.message.encoded())
        precondition(heard == letter.message, "the codec changed \(letter.message)")
        self.handle(letter.to, .received(heard, from: letter.from))
    }

    private mutating func cut(_ one: NodeID, _ other: NodeID) {
        self.cuts.append((one, other))
        self.cuts.append((other, one))
    }

    // MARK: Showing

    private mutating func show() {
        for node in self.order {
            guard let replica = self.replicas[node] else { continue }
            if replica.isDown {
                self.lines.append("\(node.raw): down")
                continue
            }
            let group = replica.group
            var terms: [String] = []
            var index = group.log.base.index
            while index < group.log.last {
                index = index.next
                terms.append("\(group.log.term(at: index)!)")
            }
            let base = group.log.base.index > .zero ? "(\(group.log.base)) " : ""
            let configuration = group.configuration
            func names(_ nodes: [NodeID]) -> String {
                nodes.map { "\($0.raw)" }.joined(separator: ",")
            }
            var members = names(configuration.voters)
            if configuration.isJoint { members += "+" + names(configuration.incoming) }
            if !configuration.learners.isEmpty {
                members += " learners " + names(configuration.learners)
            }
            self.lines.append(
                "\(node.raw): \(group.role) term \(group.term) log \(base)"
                    + terms.joined(separator: " ")
                    + " commit \(group.commit) durable \(group.durable) of \(members)")
        }
    }

    private func node(_ text: String?) -> NodeID? {
        text.flatMap { UInt32($0) }.map { NodeID($0) }
    }

    private func list(_ text: String?) -> [NodeID] {
        (text ?? "").split(separator: ",").map { NodeID(UInt32($0)!) }
    }
}
