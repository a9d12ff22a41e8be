import StratusAdminModel
package import StratusCluster
package import StratusModel
package import StratusRuntime

/// A node as administrators see and change it. Assembled in StratusNode; a test brings its own.
package protocol NodeControl: Sendable {
    func status() async -> NodeStatus
    /// What the node says of itself to whoever looks into a problem. It holds no secret.
    func supportFiles() async -> [SupportFile]
    /// Every key, in the order of the file; secrets are not among the values.
    func configuration() -> [ConfiguredValue]
    /// The files of records that this node keeps.
    func copies() async -> CopyStatus
    /// Begins to read every copy of files back.
    ///
    /// - Returns: how many partitions have some here.
    func verifyCopies() async -> Int
    /// Begins to compare rows, index and packs of files.
    ///
    /// - Returns: how many partitions have a replica here.
    func auditCopies() async -> Int
    /// Copies that rows and index do not agree on, by partition and name.
    ///
    /// - Parameter last: behind which they begin.
    func copyDifferences(after last: CopyDifference?, limit: Int) async -> [CopyDifference]
    /// What members have of bodies of one partition, in their order; nil: no row names it. It may
    /// end sooner, and tells of one at least.
    func needs(of bodies: [BodyID], in group: GroupID) async throws(NodeControlFailure)
        -> [BodyNeed?]
    /// Stores copies of a body that were found on another disk.
    func adopt(_ body: BodyID, in group: GroupID, _ copies: CopyFrames)
        async throws(NodeControlFailure) -> AdoptedBody
    /// Reads copies of a body on this node, no faster than everything is read back.
    func checkCopies(of body: BodyID, _ ordinals: Range<UInt32>, in group: GroupID) async
        -> CopyChecking
    /// What is left to do on this node about what was erased.
    func remains() async -> NodeRemains
    var logLevel: LogLevel { get }
    /// Holds until the next SIGHUP or restart.
    func setLogLevel(_ level: LogLevel)
    /// A container's schema in one environment; an empty one of version 0 where there is none yet.
    func schema(of container: ContainerReference) async throws(NodeControlFailure) -> Schema
    /// Replaces the schema. The version must be the successor of the present one: if somebody else
    /// was faster, their schema stays and the caller is told.
    func install(_ schema: Schema, of container: ContainerReference)
        async throws(NodeControlFailure)
}

extension NodeControl {
    package func remains() async -> NodeRemains { NodeRemains() }
    package func needs(of _: [BodyID], in _: GroupID) async throws(NodeControlFailure)
        -> [BodyNeed?]
    {
        throw .unavailable
    }
    package func adopt(_: BodyID, in _: GroupID, _: CopyFrames)
        async throws(NodeControlFailure) -> AdoptedBody
    {
        throw .unavailable
    }
    package func checkCopies(
        of body: BodyID, _ ordinals: Range<UInt32>, in group: GroupID
    ) async -> CopyChecking { .elsewhere }
}

/// Why an administrator's wish was not carried out.
package enum NodeControlFailure: Error, Sendable, Equatable {
    /// Nothing happened; it may be asked again.
    case unavailable
    /// It may have happened: look before asking again.
    case outcomeUnknown
    /// Somebody else changed the same thing meanwhile.
    case overtaken
    /// It contradicts what there is; nothing happened. In words for the administrator.
    case refused(String)
    /// Damage, or an answer of a newer version.
    case failed(String)
}

/// One key of the configuration as it is in force.
package struct ConfiguredValue: Sendable, Equatable {
    package var key: String
    /// The value as it would stand in the file; nil if there is none.
    package var value: String?
    /// `default`, a file with line and column, a variable, or an option.
    package var origin: String
    package var reloads: Bool

    package init(key: String, value: String?, origin: String, reloads: Bool) {
        self.key = key
        self.value = value
        self.origin = origin
        self.reloads = reloads
    }
}

/// The files of records on one node at one moment: copies of their chunks, in packs.
package struct CopyStatus: Sendable, Equatable {
    /// Bytes of packs, and how many of them hold copies that were not removed.
    package var packBytes = 0
    package var liveBytes = 0
    /// Copies that rows name and this node lacks.
    package var missingCount = 0
    /// Copies that no row names: uploads under way, and what they left.
    package var unnamedCount = 0
    /// Since the start of the node: found damaged, brought from other nodes, let go.
    package var damagedCount = 0
    /// Files that no node had a sound copy of.
    package var lostCount = 0
    package var repairedCount = 0
    package var removedCount = 0
    /// Partitions that have lacked copies for over a minute.
    package var lackingCount = 0
    /// Partitions whose copies cannot be read or written.
    package var failingCount = 0
    /// Partitions that are being read back, or wait for it.
    package var readingBackCount = 0
    /// Partitions whose rows and index are being compared, or wait for it.
    package var comparingCount = 0

    package init() {}
}

/// A node at one moment.
package struct NodeStatus: Sendable, Equatable {
    package struct Partition: Sendable, Equatable {
        package var name: String
        package var applied: UInt64
        package var durable: UInt64
        /// Nil when it serves; otherwise why not.
        package var problem: String?

        package init(name: String, applied: UInt64, durable: UInt64, problem: String? = nil) {
            self.name = name
            self.applied = applied
            self.durable = durable
            self.problem = problem
        }
    }

    package var version: String
    /// Name and version of every library in use.
    package var libraries: [(name: String, version: String)]
    package var startedAtMilliseconds: Int64
    package var uptime: Duration
    package var dataDirectory: String
    /// Whether its files are sealed.
    package var isSealed = false
    package var clientURLs: [String]
    package var adminURL: String
    package var residentBytes: Int
    package var requestsInFlight: Int
    package var droppedLogLines: UInt64
    /// Why it is not ready; empty when it is.
    package var notReady: [Health.Reason]
    /// Conditions that somebody should look at although the node is ready.
    package var warnings: [Health.Reason] = []
    /// The space of the disk that holds the data; nil if the disk does not report it.
    package var disk: DiskSpace?
    /// The space to keep free there.
    package var reserve = ByteCount(0)
    package var partitions: [Partition]

    package init(
        version: String, libraries: [(name: String, version: String)],
        startedAtMilliseconds: Int64, uptime: Duration, dataDirectory: String,
        clientURLs: [String], adminURL: String, residentBytes: Int, requestsInFlight: Int,
        droppedLogLines: UInt64, notReady: [Health.Reason], partitions: [Partition]
    ) {
        self.version = version
        self.libraries = libraries
        self.startedAtMilliseconds = startedAtMilliseconds
        self.uptime = uptime
        self.dataDirectory = dataDirectory
        self.clientURLs = clientURLs
        self.adminURL = adminURL
        self.residentBytes = residentBytes
        self.requestsInFlight = requestsInFlight
        self.droppedLogLines = droppedLogLines
        self.notReady = notReady
        self.partitions = partitions
    }

    package static func == (one: Self, other: Self) -> Bool {
        StatusAnswer(one) == StatusAnswer(other)
    }
}
