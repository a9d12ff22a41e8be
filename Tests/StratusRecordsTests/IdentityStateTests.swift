import StratusCoding
import StratusDoubles
import StratusModel
import StratusQuery
import StratusRecords
import StratusRows
import Testing

/// Rows of who is asking: conditions, counters, expiry.
@Suite struct IdentityStateTests {
    /// A partition with a clock in the hand.
    private struct Partition {
        let rows = Rows()
        var state = DataState()
        var time: Int64 = 1_000
        var count: UInt64 = 0

        mutating func apply(
            _ edits: [IdentityCommand.Edit], as kind: Principal.Kind = .system
        ) throws -> IdentityOutcome {
            self.count += 1
            var command = IdentityCommand(edits).enveloped(
                identity: RequestIdentity(high: self.count, low: 0), deadlineMilliseconds: .max)
            command.principal = Principal(kind: kind, userRecordName: "_u")
            let outcome = try self.state.apply(
                command,
                at: EntryPosition(
                    index: LogIndex(self.count),
                    time: HybridTime(milliseconds: self.time)),
                over: self.rows)
            return try IdentityOutcome(decoding: outcome.body)
        }

        mutating func row(_ key: IdentityKey) throws -> IdentityRow? {
            let answer = try self.state.answer(
                IdentityQuery.rows([key]).enveloped(), over: self.rows.view)
            guard case .rows(let rows) = try IdentityAnswer(decoding: answer.body) else {
                return nil
            }
            return rows[0]
        }

        mutating func names(
            _ kind: IdentityKey.Kind, _ home: Bytes, after: Bytes? = nil, limit: Int = 100,
            descending: Bool = false
        ) throws -> [Bytes] {
            let query = IdentityQuery.list(
                kind, home: home, after: after, limit: limit, descending: descending)
            let answer = try self.state.answer(query.enveloped(), over: self.rows.view)
            guard case .list(let listed) = try IdentityAnswer(decoding: answer.body) else {
                return []
            }
            return listed.map(\.name)
        }
    }

    private static let key = IdentityKey(.account, of: [1, 2])
    private static func put(_ text: String, expires: Int64 = 0) -> IdentityCommand.Change {
        .put(body: Bytes(text.utf8), expiresAtMilliseconds: expires)
    }

    @Test func `conditions decide, and all edits happen or none`() throws {
        var partition = Partition()
        let other = IdentityKey(.session, of: [1, 2], [9])
        #expect(try partition.apply([.init(Self.key, if: .absent, Self.put("a"))]) == .done([1]))
        #expect(try partition.apply([.init(Self.key, if: .absent, Self.put("b"))]) == .conflict(0))
        #expect(
            try partition.apply([
                .init(other, Self.put("s")), .init(Self.key, if: .revision(7), Self.put("b")),
            ]) == .conflict(1))
        #expect(try partition.row(other) == nil)
        #expect(
            try partition.apply([
                .init(other, if: .absent, Self.put("s")),
                .init(Self.key, if: .revision(1), Self.put("b")),
            ]) == .done([1, 2]))
        #expect(try partition.row(Self.key)?.body == Bytes("b".utf8))
        #expect(
            try partition.apply([
                .init(Self.key, if: .present, .require), .init(other, if: .present, .remove),
            ]) == .done([2, 0]))
        #expect(try partition.row(other) == nil && partition.row(Self.key)?.revision == 2)
        #expect(try partition.apply([.init(other, if: .present, .remove)]) == .conflict(0))
        #expect(
            try partition.apply([.init(Self.key, Self.put("x")), .init(Self.key, .remove)])
                == .refused)
    }

    @Test func `a row that expired is as good as gone, and goes`() throws {
        var partition = Partition()
        for name in 0..<20 as Range<UInt8> {
            let key = IdentityKey(.usedLink, of: [5], [name])
            #expect(
                try partition.apply([.init(key, if: .absent, Self.put("", expires: 2_000))])
                    == .done([1]))
        }
        let first = IdentityKey(.usedLink, of: [5], [0])
        #expect(try partition.apply([.init(first, if: .absent, Self.put(""))]) == .conflict(0))
        partition.time = 2_000
        #expect(
            try partition.apply([.init(first, if: .absent, Self.put("", expires: 3_000))])
                == .done([2]))
        for _ in 0..<3 { _ = try partition.apply([.init(Self.key, Self.put("a"))]) }
        #expect(try partition.names(.usedLink, [5]) == [[0]])
        partition.time = 3_000
        _ = try partition.apply([.init(Self.key, Self.put("a"))])
        #expect(try partition.names(.usedLink, [5]).isEmpty)
        // Nothing is left of them but the account's own row.
        #expect(partition.rows.count(.identity) == 1)
    }

    @Test func `a counter lets so many through in a span, exactly`() throws {
        var partition = Partition()
        let key = IdentityKey(.counter, of: [7])
        func attempt() throws -> IdentityOutcome {
            try partition.apply([.init(key, .count(limit: 3, milliseconds: 60_000))])
        }
        for number in 1...3 as ClosedRange<UInt64> { #expect(try attempt() == .done([number])) }
        partition.time = 31_000
        #expect(try attempt() == .limited(retryAfterMilliseconds: 30_000))
        partition.time = 61_000
        #expect(try attempt() == .done([1]))
        #expect(try partition.apply([.init(key, .remove)]) == .done([0]))
        #expect(try attempt() == .done([1]))
    }

    @Test func `rows of a home are listed by name and no other home's`() throws {
        var partition = Partition()
        for (home, name) in [([1], [1]), ([1], [2]), ([1], [3]), ([1, 1], [1]), ([2], [1])]
            as [(Bytes, Bytes)]
        {
            _ = try partition.apply([.init(IdentityKey(.user, of: home, name), Self.put("x"))])
        }
        #expect(try partition.names(.user, [1]) == [[1], [2], [3]])
        #expect(try partition.names(.user, [1], after: [1]) == [[2], [3]])
        #expect(try partition.names(.user, [1], limit: 2, descending: true) == [[3], [2]])
        #expect(try partition.names(.session, [1]).isEmpty)
    }

    @Test func `a user's own command changes nothing here`() throws {
        var partition = Partition()
        for kind in [Principal.Kind.user, .anonymous, .serverKey] {
            #expect(try partition.apply([.init(Self.key, Self.put("a"))], as: kind) == .refused)
        }
        #expect(try partition.row(Self.key) == nil)
    }

    static let command = IdentityCommand([
        .init(
            IdentityKey(.account, of: [1, 2]), if: .absent,
            .put(body: [3], expiresAtMilliseconds: 4)),
        .init(IdentityKey(.session, of: [1], [2]), if: .present, .remove),
        .init(IdentityKey(.address, of: []), if: .revision(300), .require),
        .init(IdentityKey(.counter, of: [9]), .count(limit: 10, milliseconds: 900_000)),
    ])

    @Test func `format 1 reads as it was written`() throws {
        let golden: Bytes = [
            1, 4, 1, 2, 1, 2, 0, 1, 1, 8, 1, 3, 2, 1, 1, 1, 2, 2, 2, 3, 0, 0, 3, 0xAC, 0x02, 3, 4,
            1, 9, 0, 0, 4, 10, 0xC0, 0xEE, 0x6D,
        ]
        #expect(Self.command.encoded() == golden)
        #expect(try IdentityCommand(decoding: golden) == Self.command)
        for outcome in [
            IdentityOutcome.done([1, 0, 300]), .conflict(2), .limited(retryAfterMilliseconds: 77),
            .refused,
        ] { #expect(try IdentityOutcome(decoding: outcome.encoded()) == outcome) }
        #expect(IdentityOutcome.limited(retryAfterMilliseconds: 77).encoded() == [1, 3, 0x9A, 1])
    }

    @Test(arguments: [1, 2, 3] as [UInt64])
    func `bytes that nobody wrote are refused and stop nothing`(seed: UInt64) throws {
        var generator = SeededGenerator(seed: seed)
        let whole = Self.command.encoded()
        for _ in 0..<5_000 {
            var bytes = whole
            for _ in 0..<(1 + generator.next() % 3) {
                bytes[Int(generator.next() % UInt64(bytes.count))] = UInt8(
                    truncatingIfNeeded: generator.next())
            }
            bytes.removeLast(Int(generator.next() % UInt64(bytes.count)))
            _ = try? IdentityCommand(decoding: bytes)
            _ = try? IdentityOutcome(decoding: bytes)
            _ = try? IdentityQuery(decoding: bytes)
            _ = try? IdentityAnswer(decoding: bytes)
        }
    }
}
