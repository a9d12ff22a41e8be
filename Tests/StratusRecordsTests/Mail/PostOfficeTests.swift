import StratusCoding
import StratusModel
import StratusRows
import Testing

@testable import StratusQuery
@testable import StratusRecords

/// One partition's mail, by hand.
@Suite struct PostOfficeTests {
    static let here = GroupID(3)
    static let there = GroupID(258)
    static let far = GroupID(.max)

    private let rows = Rows()
    private var office = PostOffice()
    private var received: [String] = []

    private mutating func post(
        _ texts: String..., to receiver: GroupID = Self.there, at time: Int64
    )
        throws
    {
        try self.office.post(
            texts.map { PostOffice.Letter(to: receiver, Bytes($0.utf8)) },
            at: HybridTime(milliseconds: time, count: 7), into: self.rows)
    }

    private mutating func apply(_ command: MailCommand, at time: Int64 = 9_000) throws
        -> MailOutcome
    {
        var texts: [String] = []
        let outcome = try self.office.apply(
            command, at: HybridTime(milliseconds: time), over: self.rows
        ) { mail, _, _ in
            let text = String(decoding: mail.body, as: UTF8.self)
            if text == "from the future" { return false }
            texts.append(text)
            return true
        }
        self.received += texts
        return outcome
    }

    private func bag(
        _ numbers: ClosedRange<UInt64>, from sender: GroupID = Self.there
    ) -> MailCommand {
        .deliver(
            MailBag(
                MailRoute(from: sender, to: Self.here),
                numbers.map {
                    Mail(
                        sequence: $0, sentAt: HybridTime(milliseconds: Int64($0)),
                        body: Bytes("m\($0)".utf8))
                }))
    }

    private func release(_ through: UInt64, of receiver: GroupID = Self.there)
        -> MailCommand
    {
        .release(
            MailReceipt(
                MailRoute(from: Self.here, to: receiver), through: through,
                at: HybridTime(milliseconds: 5)))
    }

    @Test mutating func `mail waits by receiver, in the order in which it was posted`() throws {
        try self.post("a", "b", at: 10)
        try self.post("x", to: Self.far, at: 11)
        try self.post("c", at: 12)
        let outbox = try self.office.outbox(OutboxAsk(), over: self.rows.view)
        #expect(outbox.waitingCount == 4 && outbox.waitingSize == 4 && !outbox.hasMore)
        #expect(outbox.piles.map(\.receiver) == [Self.there, Self.far])
        #expect(outbox.piles[0].mails.map(\.sequence) == [1, 2, 3])
        #expect(outbox.piles[0].mails.map(\.sentAt.milliseconds) == [10, 10, 12])
        #expect(outbox.piles[0].mails.allSatisfy { $0.sentAt.count == 7 })
        #expect(outbox.piles[1].mails.map(\.body) == [Bytes("x".utf8)])

        let few = try self.office.outbox(
            OutboxAsk(bagCountMax: 1, mailCountMax: 2), over: self.rows.view)
        #expect(few.hasMore && few.piles.map(\.mails.count) == [2])
        let rest = try self.office.outbox(OutboxAsk(except: [Self.there]), over: self.rows.view)
        #expect(rest.piles.map(\.receiver) == [Self.far] && !rest.hasMore)
        let none = try self.office.outbox(
            OutboxAsk(except: [Self.there, Self.far]), over: self.rows.view)
        #expect(none.piles.isEmpty && !none.hasMore)
    }

    @Test mutating func `mail is received once, and a gap is waited for`() throws {
        let time = HybridTime(milliseconds: 9_000)
        #expect(try self.apply(self.bag(2...3)) == .received(through: 0, at: time))
        #expect(try self.apply(self.bag(1...2)) == .received(through: 2, at: time))
        #expect(try self.apply(self.bag(1...2)) == .received(through: 2, at: time))
        #expect(try self.apply(self.bag(2...4)) == .received(through: 4, at: time))
        // Another sender counts for itself.
        #expect(
            try self.apply(self.bag(1...1, from: Self.far)) == .received(through: 1, at: time))
        #expect(self.received == ["m1", "m2", "m3", "m4", "m1"])
    }

    @Test mutating func `what this version cannot read stays, and what follows waits behind it`()
        throws
    {
        func mail(_ number: UInt64, _ text: String) -> Mail {
            Mail(sequence: number, sentAt: .zero, body: Bytes(text.utf8))
        }
        let bag = MailBag(
            MailRoute(from: Self.there, to: Self.here),
            [mail(1, "m1"), mail(2, "from the future"), mail(3, "m3")])
        for _ in 0..<2 {
            #expect(
                try self.apply(.deliver(bag))
                    == .received(through: 1, at: HybridTime(milliseconds: 9_000)))
        }
        #expect(self.received == ["m1"])
    }

    @Test mutating func `what was received is let go, and nothing else`() throws {
        try self.post("a", "bb", "c", at: 10)
        try self.post("x", to: Self.far, at: 11)
        #expect(try self.apply(self.release(2)) == .released)
        #expect(try self.apply(self.release(2)) == .released)
        #expect(try self.apply(self.release(1)) == .released)
        var outbox = try self.office.outbox(OutboxAsk(), over: self.rows.view)
        #expect(outbox.piles.map { $0.mails.map(\.sequence) } == [[3], [1]])
        #expect(outbox.waitingCount == 2 && outbox.waitingSize == 2)
        #expect(try self.apply(self.release(.max, of: Self.far)) == .released)
        #expect(try self.apply(self.release(.max)) == .released)
        outbox = try self.office.outbox(OutboxAsk(), over: self.rows.view)
        #expect(outbox == Outbox())
        // And the numbers go on.
        try self.post("d", at: 20)
        #expect(
            try self.office.outbox(OutboxAsk(), over: self.rows.view).piles[0].mails[0].sequence
                == 4)
    }

    @Test mutating func `an outbox is full by count or by bytes, and has room again`() throws {
        self.office = PostOffice(
            bounds: {
                var bounds = PostOffice.Bounds()
                bounds.countMax = 3
                bounds.sizeMax = 10
                return bounds
            }())
        // Alone any mail has room: one that is larger than all of it must get out too.
        #expect(try self.office.hasRoom(size: 50, over: self.rows.view))
        try self.post("123456", at: 1)
        #expect(try self.office.hasRoom(size: 4, over: self.rows.view))
        #expect(try !self.office.hasRoom(size: 5, over: self.rows.view))
        #expect(try self.office.hasRoom(for: 2, over: self.rows.view))
        #expect(try !self.office.hasRoom(for: 3, over: self.rows.view))
        _ = try self.apply(self.release(1))
        #expect(try self.office.hasRoom(for: 3, size: 10, over: self.rows.view))
    }

    @Test mutating func `a release lets go so much in one entry and no more`() throws {
        for round in 0..<30 {
            try self.office.post(
                (0..<50).map { PostOffice.Letter(to: Self.there, Bytes("\($0)".utf8)) },
                at: HybridTime(milliseconds: Int64(round)), into: self.rows)
        }
        #expect(try self.apply(self.release(1_500)) == .released)
        let outbox = try self.office.outbox(OutboxAsk(), over: self.rows.view)
        #expect(outbox.waitingCount == 1_500 - 1_024)
        #expect(outbox.piles[0].mails[0].sequence == 1_025)
    }

    @Test
    mutating func `a recovered sender gives no number again, and its receiver takes the jump`()
        throws
    {
        try self.post("a", "b", at: 10)
        try self.post("x", to: Self.far, at: 10)
        var receiver = PostOfficeTests()
        func carry(_ receiver: inout PostOfficeTests) throws {
            let piles = try self.office.outbox(OutboxAsk(), over: self.rows.view).piles
            for pile in piles where pile.receiver == Self.there {
                let bag = MailBag(
                    MailRoute(from: Self.here, to: Self.there), pile.mails)
                _ = try receiver.apply(.deliver(bag))
            }
        }
        try carry(&receiver)
        // Numbers 3 and 4 were given, received, and are lost here.
        _ = try receiver.apply(self.bag(3...4, from: Self.here))
        try self.office.recover(over: self.rows)
        try self.post("c", at: 20)
        try self.post("d", to: GroupID(77), at: 20)
        try carry(&receiver)
        try carry(&receiver)
        #expect(receiver.received == ["a", "b", "m3", "m4", "c"])
        let numbers = try self.office.outbox(OutboxAsk(), over: self.rows.view).piles.map {
            $0.mails.map(\.sequence)
        }
        #expect(numbers == [[1 << 40 | 1], [1, 2, 1 << 40 | 1], [1]])
        // Nobody else's number may be passed over.
        _ = try receiver.apply(self.bag(9...9, from: Self.here))
        _ = try receiver.apply(self.bag((1 << 40 | 3)...(1 << 40 | 3), from: Self.here))
        #expect(receiver.received.count == 5)
    }

    @Test mutating func `a recovered receiver begins where its sender has come to`() throws {
        _ = try self.apply(self.bag(1...2))
        try self.office.recover(over: self.rows)
        // 3 to 5 were received and let go, and are lost here; of the other sender everything was.
        _ = try self.apply(self.bag(6...7))
        _ = try self.apply(self.bag(4...5, from: Self.far))
        #expect(self.received == ["m1", "m2", "m6", "m7", "m4", "m5"])
        _ = try self.apply(self.bag(9...9))
        _ = try self.apply(self.bag(7...8))
        #expect(self.received.suffix(1) == ["m8"])
    }

    @Test mutating func `the rows of mail are laid out as ever`() throws {
        try self.post("a", "bc", at: 1_700_000_000_000)
        try self.post("x", to: Self.far, at: 1_700_000_000_001)
        _ = try self.apply(self.bag(1...3))
        _ = try self.apply(self.release(1))
        var writer = ByteWriter()
        try self.rows.scan(
            .mail, from: Bytes().span.bytes, to: Bytes().span.bytes, descending: false
        ) { key, row in
            writer.write(prefixed: Bytes(copying: key))
            writer.write(prefixed: Bytes(copying: row))
            return .next
        }
        let bytes = GoldenTests.hexadecimal(writer.bytes)
        #expect(
            bytes == (try GoldenTests.golden("mail-rows-1", now: writer.bytes)), "now \(bytes)")
    }

    static let commands: [(name: String, command: MailCommand)] = [
        (
            "mail-deliver-1",
            .deliver(
                MailBag(
                    MailRoute(from: Self.here, to: Self.there),
                    [
                        Mail(
                            sequence: 299,
                            sentAt: HybridTime(milliseconds: 1_700_000_000_000, count: 9),
                            body: [1, 2, 0xFF]),
                        Mail(
                            sequence: 300,
                            sentAt: HybridTime(milliseconds: 1_700_000_000_000, count: 300),
                            body: []),
                    ]))
        ),
        (
            "mail-release-1",
            .release(
                MailReceipt(
                    MailRoute(from: Self.there, to: Self.far), through: 70_000,
                    at: HybridTime(milliseconds: -1, count: .max)))
        ),
    ]

    @Test(arguments: Self.commands.map(\.name))
    func `mail commands read and write as ever`(name: String) throws {
        let command = try #require(Self.commands.first { $0.name == name }).command
        let bytes = GoldenTests.hexadecimal(command.encoded())
        #expect(
            bytes == (try GoldenTests.golden(name, now: command.encoded())), "now \(bytes)")
        #expect(
            try MailCommand(decoding: GoldenTests.bytes(try GoldenTests.golden(name))) == command)
    }

    @Test func `what is said about mail comes back as it was, and no bytes trap`() throws {
        let outcomes: [MailOutcome] = [
            .received(through: .max, at: HybridTime(milliseconds: 5, count: 6)), .released,
            .refused,
        ]
        for outcome in outcomes {
            #expect(try MailOutcome(decoding: outcome.encoded()) == outcome)
        }
        let ask = OutboxAsk(except: [Self.here, Self.far], bagCountMax: 3, mailCountMax: 5)
        #expect(try OutboxAsk(decoding: ask.encoded()) == ask)
        let outbox = Outbox(
            piles: [Outbox.Pile(Self.far, [Mail(sequence: 1, sentAt: .zero, body: [9])])],
            waitingCount: 4, waitingSize: 5, hasMore: true)
        #expect(try Outbox(decoding: outbox.encoded()) == outbox)
        var random = SeededGenerator(seed: 1)
        let samples =
            Self.commands.map { $0.command.encoded() } + outcomes.map { $0.encoded() }
            + [ask.encoded(), outbox.encoded()]
        for _ in 0..<2_000 {
            var bytes = samples.randomElement(using: &random)!
            for _ in 0..<Int.random(in: 1...4, using: &random) {
                bytes[Int.random(in: 0..<bytes.count, using: &random)] = .random(
                    in: 0...255, using: &random)
            }
            if Bool.random(using: &random) {
                bytes = Bytes(bytes.prefix(Int.random(in: 0...bytes.count, using: &random)))
            }
            _ = try? MailCommand(decoding: bytes)
            _ = try? MailOutcome(decoding: bytes)
            _ = try? OutboxAsk(decoding: bytes)
            _ = try? Outbox(decoding: bytes)
        }
    }
}
