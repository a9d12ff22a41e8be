package import StratusModel

/// Stores copies that somebody found on another disk: of bodies that members lack, or that are
/// called lost.
///
/// Whatever is sound under a name is right, because no two bodies have the same name. A copy is held
/// against the body's row before anybody gets it. A body is called lost no more only once a majority
/// of the members has all of it again.
package struct BodyAdoption: Sendable {
    /// What is asked of the partition that the body belongs to.
    package struct Partition: Sendable {
        package var members: @Sendable () async -> BodyMembers?
        /// Says that a body is lost no more, with the time that its copies were stored under and
        /// the members that have all of it.
        package var find: @Sendable (BodyID, Int64, [CopyHolding]) async -> Finding

        package init(
            members: @escaping @Sendable () async -> BodyMembers?,
            find: @escaping @Sendable (BodyID, Int64, [CopyHolding]) async -> Finding
        ) {
            self.members = members
            self.find = find
        }
    }

    package enum Finding: Sendable, Equatable {
        case found
        /// No row names it any more.
        case gone
        /// The members changed, or nobody leads now: ask them anew.
        case again
        case failed
    }

    /// What members have of a body.
    package struct Look: Sendable, Equatable {
        package var manifest: BodyManifest
        package var members: BodyMembers
        /// Those that say that they do not have all of it. One that does not answer is not among
        /// them: it takes nothing now.
        fileprivate(set) package var lacking: Set<NodeID>

        /// Whether copies of it are of use.
        package var isWanted: Bool { self.manifest.isLost || !self.lacking.isEmpty }
    }

    package enum Result: String, Sendable, Equatable {
        /// Every member has all of it.
        case held
        /// It was called lost, and is no more.
        case found
        /// Members still lack some of it: a chunk was not among the copies, or a member is away.
        case incomplete
        /// It was deleted meanwhile.
        case gone
    }

    private let carrier: any CopyCarrier
    private let partition: Partition
    private let now: @Sendable () -> MonotonicTime
    private let sleep: @Sendable (Duration) async -> Void

    private static let putPatience = Duration.seconds(10)
    private static let confirmPatience = Duration.seconds(2)
    private static let findTriesMax = 5
    private static let findPause = Duration.milliseconds(300)

    package init(
        by carrier: any CopyCarrier, in partition: Partition,
        now: @escaping @Sendable () -> MonotonicTime,
        sleep: @escaping @Sendable (Duration) async -> Void
    ) {
        self.carrier = carrier
        self.partition = partition
        self.now = now
        self.sleep = sleep
    }

    /// Nil: it is not known who the members are.
    package func look(at manifest: BodyManifest) async -> Look? {
        guard let members = await self.partition.members() else { return nil }
        let answers = await self.carrier.confirmations(
            of: manifest.body, chunkCount: UInt32(manifest.chunks.count), by: members,
            deadline: self.now() + Self.confirmPatience)
        let lacking = answers.filter { if case .refused = $0.answer { true } else { false } }
        return Look(
            manifest: manifest, members: members, lacking: Set(lacking.map(\.node)))
    }

    /// Whether the copy is the one that the body's row describes.
    package static func isSound(_ bytes: Bytes, _ ordinal: UInt32, of manifest: BodyManifest)
        -> Bool
    {
        guard Int(ordinal) < manifest.chunks.count else { return false }
        let chunk = manifest.chunks[Int(ordinal)]
        return bytes.count == Int(chunk.storedSize) && CopyKeeper.checksum(bytes) == chunk.crc
    }

    /// Gives a sound copy to all members that lack some of the body. One that does not answer is
    /// asked no more.
    ///
    /// - Returns: whether one of them has it now.
    package func put(_ bytes: Bytes, _ ordinal: UInt32, _ look: inout Look, orphanAfter: Int64)
        async -> Bool
    {
        let copy = StoredCopy(
            name: look.manifest.name(of: ordinal), orphanAfterMilliseconds: orphanAfter,
            bytes: bytes)
        let (group, nodes) = (look.members.group, look.lacking.sorted())
        let deadline = self.now() + Self.putPatience
        let answers = await withTaskGroup(of: (NodeID, CopyAnswer).self) { tasks in
            for node in nodes {
                tasks.addTask {
                    (
                        node,
                        await self.carrier.put(copy, of: group, on: node, deadline: deadline)
                    )
                }
            }
            var answers: [(NodeID, CopyAnswer)] = []
            for await answer in tasks { answers.append(answer) }
            return answers
        }
        var isStored = false
        for (node, answer) in answers {
            switch answer {
            case .stored: isStored = true
            case .silent: look.lacking.remove(node)
            case .refused: break
            }
        }
        return isStored
    }

    /// All copies that there are have been put.
    package func finish(_ look: Look, orphanAfter: Int64) async -> Result {
        for number in 1...Self.findTriesMax {
            guard let members = await self.partition.members() else { return .incomplete }
            let holders = await self.carrier.holders(
                of: look.manifest.body, chunkCount: UInt32(look.manifest.chunks.count),
                among: members, deadline: self.now() + Self.confirmPatience)
            let nodes = Set(holders.map(\.node))
            guard look.manifest.isLost else {
                return members.all.isSubset(of: nodes) ? .held : .incomplete
            }
            guard members.isMajority(nodes) else { return .incomplete }
            switch await self.partition.find(look.manifest.body, orphanAfter, holders) {
            case .found: return .found
            case .gone: return .gone
            case .failed: return .incomplete
            case .again: if number < Self.findTriesMax { await self.sleep(Self.findPause) }
            }
        }
        return .incomplete
    }
}
