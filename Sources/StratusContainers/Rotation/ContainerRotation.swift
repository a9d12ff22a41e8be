import StratusCluster
import StratusCoding
import StratusIdentity
package import StratusModel
import StratusRecords
import StratusRows

/// Gives a container a newer key and wraps the keys of its databases anew under it, while clients
/// go on. Each call of ``next()`` does a bounded piece.
///
/// The container's row has both keys from the beginning on, so every node reads what is under
/// either. The rotation waits until no command can arrive that was wrapped under the older key.
/// Then it looks through every partition, whatever databases a list may name. After a whole pass
/// that found nothing under the older key it destroys that one.
///
/// The row of the container's key is all that is to be known to go on: a run that was interrupted
/// is followed by one that looks through the partitions again. Several runs at a time wrap under
/// the same key, and hinder each other in nothing.
package struct ContainerRotation: Sendable {
    package struct Progress: Sendable, Equatable {
        /// The version of the key that seals. Nil: the container has none yet, and needs none.
        package var version: UInt32?
        /// Keys of databases that this run has wrapped anew.
        package var keyCount = 0
        /// Push keys and provider tokens that this run has sealed anew.
        package var pushKeyCount = 0
        /// Partitions that were looked through in this pass.
        package var partitionCount = 0
        /// Keys that do not open. The older key stays.
        package var failingCount = 0
        /// When the rotation began that this run goes on with. Nil: it began itself.
        package var resumedMilliseconds: Int64?
        /// How long it still waits for what was begun under the older key.
        package var waitsMilliseconds: Int64 = 0
        /// Whether the older key is destroyed.
        package var isRetired = false

        package init() {}
    }

    private enum Step: Sendable {
        case begin
        case settle(until: MonotonicTime)
        case pushKeys
        case partition(GroupID, after: Bytes?)
        case retire
    }

    /// The longest wait of one piece.
    private static let waitMax = Duration.seconds(1)
    /// Passes through all partitions. The second one finds nothing, unless keys come back.
    private static let passCountMax = 8

    private let container: ContainerReference
    private let keys: DatabaseKeys
    private let pushKeys: PushKeys
    private let store: IdentityStore
    private let retries: Retries
    private var rotating: ContainerKeys.Rotating?
    private var step: Step? = .begin
    /// Keys under the older key that this pass through the partitions has found.
    private var foundCount = 0
    private var passCount = 0
    package private(set) var progress = Progress()
    /// The databases whose keys the last piece could not open.
    package private(set) var failing: [FailingDatabase] = []

    /// Nil: this node has no encryption keys.
    package init?(
        _ directory: Directory, of container: ContainerReference, retries: Retries = Retries()
    ) {
        guard let keys = directory.keys else { return nil }
        self.container = container
        self.keys = keys
        self.store = directory.accounts.store
        self.pushKeys = PushKeys(store: self.store, containers: keys.containers)
        self.retries = retries
    }

    /// One piece.
    ///
    /// - Returns: false at the end.
    /// - Throws: where nothing goes on now. Another run goes on from here.
    package mutating func next() async throws -> Bool {
        self.failing = []
        guard let step = self.step else { return false }
        switch step {
        case .begin: try await self.begin()
        case .settle(let end): try await self.settle(until: end)
        case .pushKeys:
            if let (older, newest) = self.pair {
                self.progress.pushKeyCount += try await self.retries.run { [pushKeys, container] in
                    try await pushKeys.sealAnew(in: container, from: older, to: newest)
                }
            }
            self.step = .partition(GroupID(1), after: nil)
        case .partition(let group, let after): try await self.look(at: group, after: after)
        case .retire: try await self.retire()
        }
        return true
    }

    private var pair: (older: ContainerKeys.Version, newest: ContainerKeys.Version)? {
        guard let rotating = self.rotating, let older = rotating.older else { return nil }
        return (older, rotating.newest)
    }

    private mutating func begin() async throws {
        let rotating = try await self.retries.run { [keys, container] in
            try await keys.containers.beginRotation(of: container)
        }
        self.rotating = rotating
        guard let rotating else {
            self.step = nil
            return
        }
        self.progress.version = rotating.newest.number
        if !rotating.isNew { self.progress.resumedMilliseconds = rotating.sinceMilliseconds }
        self.progress.waitsMilliseconds = rotating.waitsMilliseconds
        self.step = .settle(
            until: self.store.world.now + .milliseconds(rotating.waitsMilliseconds))
    }

    private mutating func settle(until end: MonotonicTime) async throws {
        let now = self.store.world.now
        if now < end {
            try await self.retries.pause(for: min(end - now, Self.waitMax))
        }
        let rest = end - self.store.world.now
        self.progress.waitsMilliseconds = max(0, rest.clampedNanoseconds / 1_000_000)
        if rest <= .zero { self.step = .pushKeys }
    }

    /// One page of a partition.
    private mutating func look(at group: GroupID, after: Bytes?) async throws {
        guard self.store.partitions.hasPartition(group) else {
            // A node that knows of no partition has looked at nothing.
            guard group.raw > 1 else { throw RouteError.notExecuted(retryAfter: .seconds(1)) }
            try self.endPass()
            return
        }
        guard let (older, newest) = self.pair else { return }
        let (store, keys) = (self.store, self.keys)
        let ask = WrappedKeysAsk {
            $0.container = self.container
            $0.check = older.check
            $0.after = after
        }
        let page = try await self.retries.run {
            try await store.plain.ask(ask, at: .group(group))
        }
        self.foundCount += page.items.count
        for item in page.items {
            let rewrapped = try await self.retries.run {
                try await keys.rewrap(item, from: older, to: newest)
            }
            switch rewrapped {
            case .done: self.progress.keyCount += 1
            case .changed: break
            case .closed:
                self.progress.failingCount += 1
                self.failing.append(
                    FailingDatabase(
                        owner: item.database.owner,
                        reason: "its key \(item.version) does not open"))
            }
        }
        if let next = page.next {
            self.step = .partition(group, after: next)
        } else {
            self.progress.partitionCount += 1
            self.step = .partition(GroupID(group.raw + 1), after: nil)
        }
    }

    /// Only a pass that found nothing at all under the older key shows that it may go.
    private mutating func endPass() throws {
        if self.progress.failingCount > 0 {
            self.step = nil
        } else if self.foundCount == 0 {
            self.step = .retire
        } else {
            self.passCount += 1
            guard self.passCount < Self.passCountMax else {
                throw RouteError.refused("there are keys under the older key again and again")
            }
            self.foundCount = 0
            self.progress.partitionCount = 0
            self.step = .partition(GroupID(1), after: nil)
        }
    }

    private mutating func retire() async throws {
        guard let newest = self.rotating?.newest else { return }
        try await self.retries.run { [keys, container] in
            try await keys.containers.retireOlder(than: newest, of: container)
        }
        self.progress.isRetired = true
        self.step = nil
    }
}
