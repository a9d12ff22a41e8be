package import StratusModel
package import StratusRuntime
package import StratusSealing

/// Stores bodies on a majority of a partition's members, and reads them from any. The gateway's
/// view of all that keeps copies. No body is ever whole in memory.
package protocol BodyService: Sendable {
    /// Takes the plain bytes of a body to the disks of a majority, sealed.
    ///
    /// - Throws: and then nothing refers to what was stored, and it goes by itself.
    func write(_ source: any RequestBody, _ plan: BodyPlan) async throws(BodyFailure)
        -> WrittenBody
    /// The plain bytes of a range that lies within the body.
    func read(_ plan: BodyReadPlan) -> any ResponseBody
    /// The first bytes of the range are there: what cannot be read at all is known before the head
    /// of an answer leaves.
    func begin(_ plan: BodyReadPlan) async -> BodyBeginning
    /// Asks the members which of them have all of a body that was written, and since when by their
    /// logs of now: the leader did not count those that were named before.
    func confirm(_ body: WrittenBody, at members: BodyMembers, deadline: MonotonicTime)
        async throws(BodyFailure) -> [CopyHolding]
    /// Forgets a body that was written and that nothing names, nor will.
    func discard(_ body: BodyID, at members: BodyMembers)
}

/// Whether the first bytes of a body could be read.
package enum BodyBeginning: Sendable {
    case ready(any ResponseBody)
    case failed(Failure)

    package enum Failure: Sendable, Equatable {
        /// Every member says that it lacks a chunk, or has one that is not sound.
        case absent
        /// Some member did not answer, and it may have what the others lack.
        case unreachable
    }
}

/// The members of a partition that are to keep a body.
package struct BodyMembers: Sendable, Equatable {
    package var group: GroupID
    /// Every voter, and who is to become one.
    package var all: Set<NodeID>
    /// The voters; in a joint configuration the incoming ones as a second set.
    package var voterSets: [Set<NodeID>]

    package init(group: GroupID, all: Set<NodeID>, voterSets: [Set<NodeID>]) {
        self.group = group
        self.all = all
        self.voterSets = voterSets
    }

    /// Whether they are a majority of each set of voters.
    func isMajority(_ nodes: Set<NodeID>) -> Bool {
        self.voterSets.allSatisfy { $0.intersection(nodes).count * 2 > $0.count }
    }
}

/// How and where a body is to be written.
package struct BodyPlan: Sendable {
    package var members: BodyMembers
    package var body: BodyID
    /// A time of the partition's log: copies that no row names by then are orphans.
    package var orphanAfterMilliseconds: Int64
    package var sealer: BodySealer
    package var keyVersion: UInt32
    package var sizeMax: UInt64
    package var checksumPrefix: Bytes
    package var compresses = true
    /// Whether a SHA-256 is wanted.
    package var hashes = true
    package var chunkSize = AssetLimits.chunkSizeDefault
    package var deadline: MonotonicTime

    package init(
        members: BodyMembers, body: BodyID, orphanAfterMilliseconds: Int64, sealer: BodySealer,
        keyVersion: UInt32, sizeMax: UInt64, checksumPrefix: Bytes, deadline: MonotonicTime
    ) {
        self.members = members
        self.body = body
        self.orphanAfterMilliseconds = orphanAfterMilliseconds
        self.sealer = sealer
        self.keyVersion = keyVersion
        self.sizeMax = sizeMax
        self.checksumPrefix = checksumPrefix
        self.deadline = deadline
    }
}

/// A body on the disks of a majority, which no row names yet.
package struct WrittenBody: Sendable, Equatable {
    package var body: BodyID
    package var sums: BodySums
    package var chunkSize: UInt32
    package var keyVersion: UInt32
    package var chunks: [BodyManifest.Chunk]
    package var storers: [CopyHolding]
}

/// Which bytes of which body are to be read.
package struct BodyReadPlan: Sendable {
    package var manifest: BodyManifest
    package var members: BodyMembers
    package var range: Range<UInt64>
    package var sealer: BodySealer
    package var deadline: MonotonicTime
    /// Held while bytes are in memory.
    package var share: TransferBuffers.Share?

    package init(
        manifest: BodyManifest, members: BodyMembers, range: Range<UInt64>, sealer: BodySealer,
        deadline: MonotonicTime, share: TransferBuffers.Share? = nil
    ) {
        self.manifest = manifest
        self.members = members
        self.range = range
        self.sealer = sealer
        self.deadline = deadline
        self.share = share
    }
}

/// Why a body was not written.
package enum BodyFailure: Error, Sendable, Equatable {
    /// The body is larger than the plan allows.
    case tooLarge
    /// The client went away, was too slow, or broke the framing.
    case cutShort
    /// No majority stored it: try again later.
    case noMajority
    case deadline
}
