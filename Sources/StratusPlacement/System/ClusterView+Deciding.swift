import StratusCoding
package import StratusModel

/// Decides how a command changes the view, or why it does nothing. No rows here: `SystemState`
/// writes those that ``Change`` names.
extension ClusterView {
    enum Change: Sendable, Equatable {
        case node(NodeID)
        case replicas(GroupID)
        case move(GroupID)
        case certificate(Bytes)
    }

    /// Live nodes of a cluster.
    package static let nodeCountMax = 1_000
    static let nameLengthMax = 255

    /// Applies the part of `command` that concerns the view; forming and tokens do not.
    mutating func apply(_ command: SystemCommand) throws(SystemRefusal) -> ([Change], NodeID?) {
        switch command {
        case .form, .addToken, .revokeToken: return ([], nil)
        case .join(let node, _):
            let (id, changes) = try self.join(node)
            return (changes, id)
        case .announce(let node): return (try self.announce(node), nil)
        case .drain(let node, let leaves, let accepted):
            return (try self.drain(node, leavesWhenEmpty: leaves, accepted: accepted), nil)
        case .undrain(let node): return (try self.undrain(node), nil)
        case .remove(let node, let accepted):
            return (try self.remove(node, accepted: accepted), nil)
        case .configure(let node, let weight, let rack):
            return (try self.configure(node, weight: weight, rack: rack), nil)
        case .beginMove(let move): return (try self.begin(move), nil)
        case .fenceMove(let group, let number, let index):
            return (try self.fence(group, number, at: index), nil)
        case .finishMove(let group, let number): return (self.finish(group, number), nil)
        case .abandonMove(let group, let number, let index):
            return (try self.abandon(group, number, at: index), nil)
        case .raiseFeatureLevel(let level): return (try self.raise(level), nil)
        case .recover(let recovery): return (try self.recover(recovery), nil)
        case .withdrawCertificate(let fingerprint):
            return (try self.withdraw(fingerprint), nil)
        case .restoreCertificate(let fingerprint): return (try self.restore(fingerprint), nil)
        }
    }

    // MARK: Certificates

    private mutating func withdraw(_ fingerprint: Bytes) throws(SystemRefusal) -> [Change] {
        guard fingerprint.count == Self.fingerprintSize else { throw SystemRefusal(.badRequest) }
        if self.withdrawn.contains(fingerprint) { return [] }
        guard self.withdrawn.count < Self.withdrawnCountMax else {
            throw SystemRefusal(.tooMany, limit: Self.withdrawnCountMax)
        }
        self.withdrawn.append(fingerprint)
        self.withdrawn.sort { Bytes.isOrdered($0, before: $1) }
        return [.certificate(fingerprint)]
    }

    private mutating func restore(_ fingerprint: Bytes) throws(SystemRefusal) -> [Change] {
        guard fingerprint.count == Self.fingerprintSize else { throw SystemRefusal(.badRequest) }
        guard self.withdrawn.contains(fingerprint) else { return [] }
        self.withdrawn.removeAll { $0 == fingerprint }
        return [.certificate(fingerprint)]
    }

    /// - Returns: nil where the formation cannot be meant.
    package static func formed(by formation: Formation) -> ClusterView? {
        let nodes = formation.nodes
        guard PlacementTable.isPartitionCount(formation.partitionCount),
            (1...Formation.replicaCountMax).contains(formation.replicaCount),
            !nodes.isEmpty, nodes.count <= Self.nodeCountMax,
            nodes.allSatisfy({ $0.state == .active && Self.isSound($0) && $0.weight > 0 }),
            Set(nodes.map(\.id)).count == nodes.count,
            Set(nodes.map(\.name)).count == nodes.count,
            Set(nodes.map(\.address)).count == nodes.count,
            formation.converted.map({
                $0.featureLevel > 0 && nodes.count == 1
                    && $0.master.count <= Formation.masterSizeMax.raw
            }) ?? true
        else { return nil }
        return ClusterView(
            settings: ClusterSettings(forming: formation), nodes: nodes,
            systemReplicas: Formation.systemReplicas(of: nodes.map(\.id)),
            table: .initial(
                nodes: nodes.compactMap(\.forPlacement),
                partitionCount: formation.partitionCount, replicaCount: formation.replicaCount),
            moves: [])
    }

    private static func isSound(_ node: ClusterNode) -> Bool {
        func fits(_ text: String) -> Bool { text.utf8.count <= Self.nameLengthMax }
        return !node.name.isEmpty && !node.address.isEmpty && fits(node.name)
            && fits(node.address) && fits(node.rack) && node.weight <= PlacementNode.weightMax
            && node.key.count <= 64
    }

    private func position(_ id: NodeID) throws(SystemRefusal) -> Int {
        guard let position = self.nodes.firstIndex(where: { $0.id == id }) else {
            throw SystemRefusal(.unknownNode)
        }
        guard self.nodes[position].isMember else { throw SystemRefusal(.nodeRemoved) }
        return position
    }

    // MARK: Joining

    /// - Returns: the identifier the node has now. The token was looked at before.
    mutating func join(_ node: ClusterNode) throws(SystemRefusal) -> (NodeID, [Change]) {
        guard Self.isSound(node), !node.key.isEmpty, node.weight > 0 else {
            throw SystemRefusal(.badRequest)
        }
        if let known = self.nodes.first(where: { $0.key == node.key }) {
            guard known.isMember else { throw SystemRefusal(.nodeRemoved) }
            return (known.id, [])
        }
        let members = self.nodes.filter(\.isMember)
        guard members.count < Self.nodeCountMax, self.settings.nextNode < .max else {
            throw SystemRefusal(.tooMany, limit: Self.nodeCountMax)
        }
        if members.contains(where: { $0.name == node.name }) { throw SystemRefusal(.nameTaken) }
        if members.contains(where: { $0.address == node.address }) {
            throw SystemRefusal(.addressTaken)
        }
        guard node.featureLevel >= self.settings.featureLevel else {
            throw SystemRefusal(
                .featureLevelTooLow, count: Int(node.featureLevel),
                limit: Int(self.settings.featureLevel))
        }
        let id = NodeID(self.settings.nextNode)
        self.settings.nextNode += 1
        self.nodes.append(
            ClusterNode(
                id: id, state: .joining, name: node.name, address: node.address,
                weight: node.weight, rack: node.rack, featureLevel: node.featureLevel,
                key: node.key))
        return (id, [.node(id)])
    }

    mutating func announce(_ node: ClusterNode) throws(SystemRefusal) -> [Change] {
        let position = try self.position(node.id)
        let known = self.nodes[position]
        guard Self.isSound(node), node.directory != 0 else { throw SystemRefusal(.badRequest) }
        guard known.directory == 0 || known.directory == node.directory,
            known.key.isEmpty || node.key == known.key
        else { throw SystemRefusal(.anotherDirectory) }
        guard node.featureLevel >= self.settings.featureLevel else {
            throw SystemRefusal(
                .featureLevelTooLow, count: Int(node.featureLevel),
                limit: Int(self.settings.featureLevel))
        }
        let others = self.nodes.filter { $0.isMember && $0.id != node.id }
        if others.contains(where: { $0.address == node.address }) {
            throw SystemRefusal(.addressTaken)
        }
        var next = known
        next.address = node.address
        next.incarnation = node.incarnation
        next.directory = node.directory
        next.featureLevel = node.featureLevel
        next.key = node.key
        if next.state == .joining { next.state = .active }
        guard next != known else { return [] }
        self.nodes[position] = next
        return [.node(node.id)]
    }

    // MARK: Leaving

    mutating func drain(_ id: NodeID, leavesWhenEmpty: Bool, accepted: Int?)
        throws(SystemRefusal) -> [Change]
    {
        let position = try self.position(id)
        if self.nodes[position].state != .draining {
            let remaining = self.placementNodes.count { $0.id != id }
            guard remaining > 0 else { throw SystemRefusal(.lastNode) }
            // If there are too few nodes already, removing one that holds nothing makes it no
            // worse.
            let wanted = self.settings.replicaCount
            guard
                remaining >= wanted || accepted == remaining
                    || self.nodes[position].state == .joining
            else { throw SystemRefusal(.tooFewNodes, count: remaining, limit: wanted) }
        }
        var next = self.nodes[position]
        next.state = .draining
        next.leavesWhenEmpty = next.leavesWhenEmpty || leavesWhenEmpty
        guard next != self.nodes[position] else { return [] }
        self.nodes[position] = next
        return [.node(id)]
    }

    mutating func undrain(_ id: NodeID) throws(SystemRefusal) -> [Change] {
        let position = try self.position(id)
        guard self.nodes[position].state == .draining else { return [] }
        self.nodes[position].state = self.nodes[position].directory == 0 ? .joining : .active
        self.nodes[position].leavesWhenEmpty = false
        // A founder that was never heard of was active from the start.
        if self.nodes[position].key.isEmpty { self.nodes[position].state = .active }
        return [.node(id)]
    }

    /// Groups that would have no majority of members left if `id` were gone for good.
    package func groupsLost(without id: NodeID) -> [GroupID] {
        self.groups.filter { group in
            let replicas = self.replicas(of: group)
            guard replicas.contains(id) else { return false }
            let left = replicas.count { $0 != id && self.node($0)?.isMember == true }
            return left < replicas.count / 2 + 1
        }
    }

    mutating func remove(_ id: NodeID, accepted: Int?) throws(SystemRefusal) -> [Change] {
        guard let position = self.nodes.firstIndex(where: { $0.id == id }) else {
            throw SystemRefusal(.unknownNode)
        }
        guard self.nodes[position].isMember else { return [] }
        guard self.nodes.contains(where: { $0.isMember && $0.id != id }) else {
            throw SystemRefusal(.lastNode)
        }
        let held = self.groups(keptBy: id).count
        if held > 0 {
            let lost = self.groupsLost(without: id).count
            guard accepted == lost else {
                throw SystemRefusal(.holdsReplicas, count: held, limit: lost)
            }
        }
        self.nodes[position].state = .removed
        self.nodes[position].leavesWhenEmpty = false
        return [.node(id)]
    }

    mutating func configure(_ id: NodeID, weight: UInt32?, rack: String?)
        throws(SystemRefusal) -> [Change]
    {
        let position = try self.position(id)
        var next = self.nodes[position]
        if let weight {
            // A weight of 0 would be a drain that nothing checks.
            guard weight > 0, weight <= PlacementNode.weightMax else {
                throw SystemRefusal(.badRequest)
            }
            next.weight = weight
        }
        if let rack { next.rack = rack }
        guard Self.isSound(next) else { throw SystemRefusal(.badRequest) }
        guard next != self.nodes[position] else { return [] }
        self.nodes[position] = next
        return [.node(id)]
    }

    mutating func raise(_ level: UInt32) throws(SystemRefusal) -> [Change] {
        if let lowest = self.nodes.filter(\.isMember).map(\.featureLevel).min(), lowest < level {
            throw SystemRefusal(.featureLevelTooLow, count: Int(lowest), limit: Int(level))
        }
        self.settings.featureLevel = max(self.settings.featureLevel, level)
        return []
    }

    // MARK: Moves

    /// Whether the move changes one replica, from where one is to where one may be.
    private func isPossible(_ move: ReplicaMove) -> Bool {
        guard Int(move.group.raw) <= self.table.partitionCount else { return false }
        let replicas = self.replicas(of: move.group)
        if let from = move.from, !replicas.contains(from) { return false }
        if let to = move.to {
            return !replicas.contains(to) && self.node(to)?.state == .active
        }
        return move.from != nil && replicas.count > 1
    }

    mutating func begin(_ move: ReplicaMove) throws(SystemRefusal) -> [Change] {
        if let current = self.move(of: move.group) {
            if current.from == move.from, current.to == move.to { return [] }
            throw SystemRefusal(.moveInProgress)
        }
        guard self.isPossible(move) else { throw SystemRefusal(.moveImpossible) }
        let place = self.moves.firstIndex { $0.group > move.group } ?? self.moves.endIndex
        self.raiseEpoch()
        var begun = move
        begun.number = self.settings.epoch
        self.moves.insert(begun, at: place)
        return [.move(move.group)]
    }

    mutating func fence(_ group: GroupID, _ number: UInt64, at index: LogIndex)
        throws(SystemRefusal) -> [Change]
    {
        guard let place = self.place(of: group, number) else { throw SystemRefusal(.noSuchMove) }
        guard index > self.moves[place].fence else { return [] }
        self.moves[place].fence = index
        return [.move(group)]
    }

    /// A number that is not the move's is of one that is over: said twice, or late.
    mutating func finish(_ group: GroupID, _ number: UInt64) -> [Change] {
        guard let place = self.place(of: group, number) else { return [] }
        let move = self.moves.remove(at: place)
        var replicas = self.replicas(of: group)
        if let from = move.from { replicas.removeAll { $0 == from } }
        if let to = move.to { replicas.append(to) }
        self.setReplicas(replicas, of: group)
        self.raiseEpoch()
        return [.replicas(group), .move(group)]
    }

    mutating func abandon(_ group: GroupID, _ number: UInt64, at index: LogIndex)
        throws(SystemRefusal) -> [Change]
    {
        guard let place = self.place(of: group, number) else { return [] }
        guard index > self.moves[place].fence else { throw SystemRefusal(.moveInProgress) }
        self.moves.remove(at: place)
        self.raiseEpoch()
        return [.move(group)]
    }

    private func place(of group: GroupID, _ number: UInt64) -> Int? {
        self.moves.firstIndex { $0.group == group && $0.number == number }
    }

    mutating func raiseEpoch() {
        self.settings.epoch += 1
        self.table.epoch = self.settings.epoch
    }
}
