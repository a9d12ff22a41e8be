import StratusCoding
package import StratusConsensus
package import StratusModel
package import StratusStorage

/// The reference state of one partition: rows in memory, a last commit, and a copy on the medium that a
/// checkpoint brings forward. Behaves to a replica as the store on disk does, crashes included.
package final class SimulatedPartition: PartitionState {
    package struct Saved: Sendable, Equatable {
        package var rows = MemoryRowStore()
        package var position = AppliedPosition.start
    }

    private var now: Saved
    /// What an error falls back to, and a process crash leaves.
    package private(set) var committed: Saved
    /// What a power cut leaves.
    package private(set) var medium: Saved
    private var application = CommandApplication(RegisterState())
    private let initialConfiguration: Configuration
    private let node: NodeID
    private let bugs: PlantedBugs
    /// Whether the next entry fails to apply, drawn anew each time.
    package var failsOneIn: UInt64 = 0
    private var random: SeededGenerator
    /// Told of every entry and the digest after it.
    package var observer: ((Entry, StateDigest) -> Void)?

    package init(
        _ saved: Saved, medium: Saved, initialConfiguration: Configuration, node: NodeID,
        seed: UInt64, bugs: PlantedBugs
    ) {
        self.now = saved
        self.committed = saved
        self.medium = medium
        self.initialConfiguration = initialConfiguration
        self.node = node
        self.random = SeededGenerator(seed: seed)
        self.bugs = bugs
    }

    package var applied: LogIndex { self.now.position.index }
    package var durable: LogIndex { self.medium.position.index }
    package var digest: StateDigest { self.now.position.digest }

    /// What the rows stand for, for consensus to start from.
    package var identity: SnapshotIdentity {
        let position = self.now.position
        return SnapshotIdentity(
            index: position.index, term: position.term, time: position.time,
            configuration: Self.configuration(position) ?? self.initialConfiguration,
            digest: position.digest)
    }

    private static func configuration(_ position: AppliedPosition) -> Configuration? {
        position.configuration.isEmpty
            ? nil : try? Configuration(decoding: position.configuration)
    }

    package func apply(_ entries: ArraySlice<Entry>, into outcomes: inout [Outcome])
        throws(StoreError)
    {
        for entry in entries {
            precondition(entry.index == self.applied.next, "applied out of order")
            if self.failsOneIn > 0, self.random.next() % self.failsOneIn == 0 {
                throw StoreError(.io, "a planned fault")
            }
            outcomes.append(try self.apply(entry))
            self.observer?(entry, self.digest)
        }
    }

    private func apply(_ entry: Entry) throws(StoreError) -> Outcome {
        var outcome = Outcome(.none)
        if entry.kind == .configuration { self.now.position.configuration = entry.payload }
        if entry.kind == .command {
            do throws(DecodingError) {
                var command = try Command(decoding: entry.payload)
                if self.bugs.contains(.deadlineIgnored) { command.deadlineMilliseconds = .max }
                var rows = DigestingRows(self.now.rows, self.now.position.digest)
                self.now.rows = MemoryRowStore()
                let position = EntryPosition(index: entry.index, time: entry.time)
                outcome = try! self.application.apply(command, at: position, over: &rows)
                if self.bugs.contains(.applyDependsOnReplica), entry.index.raw % 7 == 0 {
                    let planted = [UInt8(truncatingIfNeeded: self.node.raw)]
                    rows.put(.job, Bytes("planted".utf8).span.bytes, planted.span.bytes)
                }
                self.now.rows = rows.rows
                self.now.position.digest = rows.digest
            } catch {
                outcome = Outcome(.unreadable)
            }
        }
        self.now.position.index = entry.index
        self.now.position.term = entry.term
        self.now.position.time = entry.time
        return outcome
    }

    package func commit() throws(StoreError) { self.committed = self.now }

    package func reset() throws(StoreError) -> LogIndex {
        self.now = self.committed
        self.application.forget()
        return self.applied
    }

    /// Copies the last commit to the medium.
    package func checkpoint() { self.medium = self.committed }

    package func answer(_ query: Query) throws(StoreError) -> QueryAnswer {
        try self.application.state.answer(query, over: self.now.rows)
    }

    // MARK: Snapshots

    package func snapshot() throws(StoreError) -> any SnapshotSource {
        var chunks: [Bytes] = []
        var writer = ByteWriter()
        for table in Table.all {
            if table == .request, self.bugs.contains(.identityForgottenOnSnapshot) { continue }
            for row in self.now.rows.rows(table) {
                writer.write(table.rawValue)
                writer.write(prefixed: row.key)
                writer.write(prefixed: row.row)
                if writer.bytes.count > 256 {
                    chunks.append(writer.bytes)
                    writer = ByteWriter()
                }
            }
        }
        chunks.append(writer.bytes)
        chunks.append(self.now.position.encoded())
        return SimulatedSnapshot(chunks)
    }

    package func install(_ identity: SnapshotIdentity, from source: any SnapshotSource)
        throws(StoreError)
    {
        var chunks: [Bytes] = []
        while let chunk = try source.next() { chunks.append(chunk) }
        do throws(DecodingError) {
            var rows = DigestingRows(MemoryRowStore(), .empty)
            for chunk in chunks.dropLast() {
                var reader = ByteReader(chunk)
                while !reader.isAtEnd {
                    let table = Table(rawValue: try reader.byte())
                    let (key, row) = (try reader.prefixed(), try reader.prefixed())
                    rows.put(table, key.span.bytes, row.span.bytes)
                }
            }
            let position = try AppliedPosition(decoding: chunks.last ?? [])
            let isWhole =
                rows.digest == identity.digest && position.index == identity.index
            // A bug that mixes streams or forgets rows must not be saved by this check.
            guard
                isWhole || self.bugs.contains(.mixedSnapshotStreams)
                    || self.bugs.contains(.identityForgottenOnSnapshot)
            else { throw DecodingError(.malformed, at: 0) }
            var saved = Saved(rows: rows.rows, position: position)
            saved.position.index = identity.index
            saved.position.term = identity.term
            saved.position.digest = rows.digest
            saved.position.configuration = identity.configuration.encoded()
            self.now = saved
        } catch {
            throw StoreError(.corrupt, "a snapshot that does not add up")
        }
        self.application.forget()
        self.committed = self.now
        // The database is swapped for a whole one that was synced before.
        self.medium = self.now
    }
}

/// Rows that keep the digest with every change, as the store on disk does.
private struct DigestingRows: RowStore {
    var rows: MemoryRowStore
    var digest: StateDigest

    init(_ rows: consuming MemoryRowStore, _ digest: StateDigest) {
        self.rows = rows
        self.digest = digest
    }

    func row(_ table: Table, _ key: borrowing RawSpan) -> Bytes? { self.rows.row(table, key) }

    func scan(
        _ table: Table, from: borrowing RawSpan, to: borrowing RawSpan, descending: Bool,
        _ body: (borrowing RawSpan, borrowing RawSpan) -> ScanStep
    ) { self.rows.scan(table, from: from, to: to, descending: descending, body) }

    mutating func put(_ table: Table, _ key: borrowing RawSpan, _ row: borrowing RawSpan) {
        self.subtract(table, key)
        self.digest.add(
            key.withUnsafeBytes { key in row.withUnsafeBytes { RowHash.of(table, key, $0) } })
        self.rows.put(table, key, row)
    }

    mutating func remove(_ table: Table, _ key: borrowing RawSpan) {
        self.subtract(table, key)
        self.rows.remove(table, key)
    }

    private mutating func subtract(_ table: Table, _ key: borrowing RawSpan) {
        guard let old = self.rows.row(table, key) else { return }
        self.digest.subtract(
            key.withUnsafeBytes { key in
                old.withUnsafeBytes { RowHash.of(table, key, $0) }
            })
    }
}

private final class SimulatedSnapshot: SnapshotSource {
    private let chunks: [Bytes]
    private var position = 0
    init(_ chunks: [Bytes]) { self.chunks = chunks }
    func next() -> Bytes? {
        guard self.position < self.chunks.count else { return nil }
        defer { self.position += 1 }
        return self.chunks[self.position]
    }
}
