import StratusCoding
package import StratusModel
package import StratusStorage

/// The real partition store of one replica, observed: it reports every entry it applies, the
/// outcome and the digest after it.
package final class ObservedPartition: PartitionState {
    package let store: PartitionStore<SimulatedState>
    private let observer: (Entry, Outcome, StateDigest) -> Void
    private let installing: (SnapshotIdentity, _ applied: LogIndex) -> Void

    package init(
        _ store: PartitionStore<SimulatedState>,
        observer: @escaping (Entry, Outcome, StateDigest) -> Void,
        installing: @escaping (SnapshotIdentity, _ applied: LogIndex) -> Void
    ) {
        self.store = store
        self.observer = observer
        self.installing = installing
    }

    package var applied: LogIndex { self.store.applied }
    package var durable: LogIndex { self.store.durable }
    package var digest: StateDigest { self.store.digest }

    package func apply(_ entries: ArraySlice<Entry>, into outcomes: inout [Outcome])
        throws(StoreError)
    {
        // One by one, for the digest after each; the store still keeps them in one transaction.
        for position in entries.indices {
            let count = outcomes.count
            try self.store.apply(entries[position...position], into: &outcomes)
            guard outcomes.count > count else { return }
            self.observer(
                entries[position], outcomes.last ?? Outcome(.none), self.store.digest)
        }
    }

    package var newer: NewerEntry? { self.store.newer }
    package func reading(of command: Command) -> CommandReading {
        self.store.reading(of: command)
    }
    package func holdings(in command: Command) -> [CopyHolding]? {
        self.store.holdings(in: command)
    }
    package var mustReset: Bool { self.store.mustReset }
    package func publish() throws(StoreError) { try self.store.publish() }
    package func flushIfDue(at now: MonotonicTime) throws(StoreError) -> MonotonicTime? {
        // Slices follow each other as on a busy thread: entries come between them.
        try self.store.flushIfDue(at: now).map { max($0, now + .milliseconds(4)) }
    }
    package var isFull: Bool { self.store.isFull }
    package func noteDigest() { self.store.noteDigest() }
    package func takeDigests() -> [NotedDigest] { self.store.takeDigests() }
    package func commit() throws(StoreError) { try self.store.commit() }
    package func reset() throws(StoreError) -> LogIndex { try self.store.reset() }
    package func answer(_ query: Query) throws(StoreError) -> QueryAnswer {
        try self.store.answer(query)
    }
    package func snapshot() throws(StoreError) -> any SnapshotSpooling {
        try self.store.snapshot()
    }
    package func check() throws(StoreError) -> any ViewWork { try self.store.check() }
    package var wrongRows: WrongRows? { self.store.wrongRows }
    package func mark(_ wrong: WrongRows) throws(StoreError) { try self.store.mark(wrong) }
    package func makeSpool() throws(StoreError) -> any SnapshotSpool { try self.store.makeSpool() }
    package func install(_ identity: SnapshotIdentity, from source: any SnapshotSource)
        throws(StoreError) -> any SnapshotWork
    {
        self.installing(identity, self.store.applied)
        return try self.store.install(identity, from: source)
    }
    package func rebuild(reading entries: @escaping (LogIndex) throws(StoreError) -> [Entry])
        throws(StoreError) -> any RebuildWork
    { try self.store.rebuild(reading: entries) }
}
