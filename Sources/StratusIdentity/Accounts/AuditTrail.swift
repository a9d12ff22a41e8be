import StratusCoding
package import StratusModel
import StratusRecords
import StratusSealing

/// The log of administrators' actions, one entry after the other.
///
/// Every entry carries a keyed hash over itself and the one before. Nobody without the cluster's
/// secret can change, drop or insert one without ``verify()`` noticing.
///
/// | bytes  | entry, format 1                                           |
/// | ------ | --------------------------------------------------------- |
/// | 1      | format, 1                                                 |
/// | signed | milliseconds                                              |
/// | text   | actor: where the request came from                        |
/// | text   | action: `token create`                                    |
/// | text   | subject: what it was about; never a secret                |
/// | 32     | HMAC over the hash before and everything above            |
package struct AuditTrail: Sendable {
    package struct Entry: Sendable, Equatable {
        package var number: UInt64
        package var milliseconds: Int64
        package var actor: String
        package var action: String
        package var subject: String
        var chain: Bytes
    }

    private static let home = ShardKey.account("audit")
    private let store: IdentityStore

    package init(store: IdentityStore) { self.store = store }

    package func note(actor: String, action: String, subject: String) async throws(RouteError) {
        for _ in 0..<64 {
            let last = try await self.last()
            var entry = Entry(
                number: (last?.number ?? 0) + 1, milliseconds: self.store.now, actor: actor,
                action: action, subject: String(subject.prefix(500)), chain: [])
            entry.chain = self.chain(entry, after: last?.chain ?? [])
            let outcome = try await self.store.submit(
                [
                    .init(
                        IdentityKey(.audit, of: [], Self.name(entry.number)), if: .absent,
                        .put(body: Self.content(entry) + entry.chain, expiresAtMilliseconds: 0))
                ], to: Self.home)
            if case .done = outcome { return }
        }
        throw .notExecuted(retryAfter: .seconds(1))
    }

    /// The newest entries, the oldest of them first.
    package func entries(limit: Int) async throws(RouteError) -> [Entry] {
        try await self.read(limit: limit, descending: true).reversed()
    }

    /// How many entries there are, and the first that does not follow from the one before it.
    package func verify() async throws(RouteError) -> (count: Int, broken: UInt64?) {
        var chain: Bytes = []
        var count = 0
        for entry in try await self.all() {
            count += 1
            guard entry.number == UInt64(count),
                SHA256.areEqual(entry.chain, self.chain(entry, after: chain))
            else { return (count, entry.number) }
            chain = entry.chain
        }
        return (count, nil)
    }

    private func all() async throws(RouteError) -> [Entry] {
        var entries: [Entry] = []
        for listed in try await self.store.list(.audit, of: [], at: Self.home, countMax: 1_000_000)
        {
            entries.append(try Self.decode(listed))
        }
        return entries
    }

    private func last() async throws(RouteError) -> Entry? {
        try await self.read(limit: 1, descending: true).first
    }

    private func read(limit: Int, descending: Bool) async throws(RouteError) -> [Entry] {
        var entries: [Entry] = []
        for listed in try await self.store.page(
            .audit, of: [], at: Self.home, limit: limit, descending: descending)
        {
            entries.append(try Self.decode(listed))
        }
        return entries
    }

    private func chain(_ entry: Entry, after before: Bytes) -> Bytes {
        self.store.keys.chain(before, Self.name(entry.number) + Self.content(entry))
    }

    private static func name(_ number: UInt64) -> Bytes {
        withUnsafeBytes(of: number.bigEndian) { Bytes($0) }
    }

    private static func content(_ entry: Entry) -> Bytes {
        var writer = ByteWriter(reserving: 128)
        writer.write(1 as UInt8)
        writer.write(signed: entry.milliseconds)
        writer.write(text: entry.actor)
        writer.write(text: entry.action)
        writer.write(text: entry.subject)
        return writer.bytes
    }

    private static func decode(_ listed: IdentityAnswer.Listed) throws(RouteError) -> Entry {
        guard listed.name.count == 8 else { throw .unreadableRow }
        var reader = ByteReader(listed.row.body)
        do {
            try reader.identityFormat(1)
            return Entry(
                number: listed.name.reduce(0) { $0 << 8 | UInt64($1) },
                milliseconds: try reader.signed(), actor: try reader.text(),
                action: try reader.text(), subject: try reader.text(),
                chain: try reader.raw(32))
        } catch { throw .unreadableRow }
    }
}
