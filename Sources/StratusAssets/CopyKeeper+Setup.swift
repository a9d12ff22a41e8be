package import StratusModel

extension CopyKeeper {
    /// What a keeper needs of its node.
    package struct Setup: Sendable {
        /// Opens the store of a partition, or makes one.
        package var openStore: @Sendable (GroupID) throws(StoreError) -> sending any CopyStore
        /// Whether there is one. A partition without assets has none.
        package var hasStore: @Sendable (GroupID) -> Bool
        /// Removes the copies of a partition whose replica is gone.
        package var removeStore: @Sendable (GroupID) throws(StoreError) -> Void
        /// Asks for the bodies that a partition's rows name from a name on. They arrive as
        /// ``RowsEvent/page(from:end:bodies:)``, in order with all other events.
        package var askRows: @Sendable (GroupID, CopyName) -> Void
        /// Makes the rows of a partition durable: copies wait for it to go.
        package var makeDurable: @Sendable (GroupID) -> Void
        /// Gives a partition's log an entry of now: orphans wait for its time to pass.
        package var touch: @Sendable (GroupID) -> Void
        /// The last entry that a replica had applied of which the keeper was told everything, with
        /// its time: what the events say alone may be old, because an entry that does nothing to
        /// bodies makes none.
        package var told: @Sendable (GroupID) -> (index: LogIndex, milliseconds: Int64)? = { _ in
            nil
        }
        /// Says through which entry a replica has every copy. Asked for by
        /// ``RowsEvent/wantsHeld``.
        package var sayHeld: @Sendable (GroupID, LogIndex) -> Void = { _, _ in }
        /// Brings a copy from another member; *absent* only if every other one has said so. Nil:
        /// there can be no other, as on a node alone.
        package var fetch: (@Sendable (CopyName, GroupID) async -> CopyFetch)?
        /// Whether this node may say of a partition that something is lost there: it leads it, so
        /// it knows who the members are.
        package var mayLose: @Sendable (GroupID) -> Bool = { _ in true }
        /// No member has a sound copy of one of the body's chunks: the rows are to say so.
        package var loseBody: @Sendable (GroupID, BodyID) -> Void = { _, _ in }
        /// Whether the disk has more than its reserve.
        package var hasRoom: @Sendable () -> Bool
        package var trouble: @Sendable (GroupID, String) -> Void
        /// For the simulator.
        package var bugs = PlantedBugs()
        package var now: @Sendable () -> MonotonicTime
        package var wallMilliseconds: @Sendable () -> Int64

        package init(
            openStore: @escaping @Sendable (GroupID) throws(StoreError) -> sending any CopyStore,
            hasStore: @escaping @Sendable (GroupID) -> Bool,
            removeStore: @escaping @Sendable (GroupID) throws(StoreError) -> Void,
            askRows: @escaping @Sendable (GroupID, CopyName) -> Void,
            makeDurable: @escaping @Sendable (GroupID) -> Void,
            touch: @escaping @Sendable (GroupID) -> Void,
            hasRoom: @escaping @Sendable () -> Bool = { true },
            trouble: @escaping @Sendable (GroupID, String) -> Void = { _, _ in },
            now: @escaping @Sendable () -> MonotonicTime,
            wallMilliseconds: @escaping @Sendable () -> Int64
        ) {
            self.openStore = openStore
            self.hasStore = hasStore
            self.removeStore = removeStore
            self.askRows = askRows
            self.makeDurable = makeDurable
            self.touch = touch
            self.hasRoom = hasRoom
            self.trouble = trouble
            self.now = now
            self.wallMilliseconds = wallMilliseconds
        }
    }

    /// What is seen of the keeper from outside.
    package struct Figures: Sendable, Equatable {
        package var queueBytes = 0
        package var missingCount = 0
        package var unnamedCount = 0
        package var removedCount = 0
        /// Copies that were brought from other members.
        package var repairedCount = 0
        package var openStoreCount = 0
        /// Partitions that have had missing copies for longer than ``CopyKeeper/missingPatience``.
        package var lackingCount = 0
        /// Partitions whose store failed when it was last used.
        package var failingCount = 0
        /// Partitions whose copies are being read back, or are about to be.
        package var readingBackCount = 0
        /// Partitions whose rows and index are being compared, or are about to be.
        package var comparingCount = 0
        /// Bytes of packs, and how many of them hold copies that were not removed.
        package var packBytes = 0
        package var liveBytes = 0
        /// Bodies that no member had, as this node has told the rows since the start.
        package var lostCount = 0
        /// Copies that were found damaged since the start.
        package var damagedCount = 0

        package init() {}
    }
}
