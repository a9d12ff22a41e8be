import StratusCoding
import StratusModel
import StratusRecords
import StratusRows

/// The smallest state with something to write: it keeps its posted and received letters in rows.
///
/// A letter that begins with "ask" is answered: receiving it leaves a job, and the job posts the
/// answer once the outbox has room.
struct LetterState: ReplicatedState {
    /// The request of a command.
    enum Wish: Equatable {
        /// Like a client's: refused whole when the outbox is full.
        case write([Line])
        case work

        struct Line: Equatable {
            var receiver: GroupID
            var text: String
        }
    }

    static let full: Bytes = [0]
    static let done: Bytes = [1]

    var office: PostOffice

    init(countMax: UInt64 = 4) {
        var bounds = PostOffice.Bounds()
        bounds.countMax = countMax
        self.office = PostOffice(bounds: bounds)
    }

    mutating func forget() {}

    mutating func apply(
        _ command: Command, at position: EntryPosition, over rows: Rows
    ) throws(StoreError) -> Outcome {
        if command.kind == .mail {
            guard let mail = try? MailCommand(decoding: command.body) else {
                return Outcome(.unreadable)
            }
            let outcome = try self.office.apply(mail, at: position.time, over: rows) {
                (mail, sender, rows) throws(StoreError) in
                guard mail.sentAt < position.time else {
                    throw StoreError(.corrupt, "received before it was sent")
                }
                let text = String(decoding: mail.body, as: UTF8.self)
                try Self.append(text, to: Self.inbox(sender), into: rows)
                if text.hasPrefix("ask") {
                    let name = Self.key(0, GroupID(0)) + Self.number(position.time, mail.sequence)
                    try rows.put(
                        .job, (name + Self.key(1, sender)).span.bytes,
                        Bytes("re \(text)".utf8).span.bytes)
                }
                return true
            }
            return Outcome(.decided, body: outcome.encoded())
        }
        switch Self.decode(command.body) {
        case .write(let lines):
            guard try self.office.hasRoom(for: lines.count, over: rows.view) else {
                return Outcome(.decided, body: Self.full)
            }
            for line in lines { try self.post(line, at: position.time, into: rows) }
        case .work:
            var jobs: [(key: Bytes, text: String)] = []
            try rows.scan(
                .job, from: Bytes().span.bytes, to: Bytes().span.bytes, descending: false
            ) { key, row in
                jobs.append(
                    (Bytes(copying: key), String(decoding: Bytes(copying: row), as: UTF8.self)))
                return .next
            }
            for (key, text) in jobs {
                guard try self.office.hasRoom(over: rows.view) else {
                    return Outcome(.decided, body: Self.full)
                }
                let receiver = GroupID(UInt16(key[key.count - 2]) << 8 | UInt16(key[key.count - 1]))
                try rows.remove(.job, key.span.bytes)
                try self.post(
                    Wish.Line(receiver: receiver, text: text), at: position.time, into: rows)
            }
        }
        return Outcome(.decided, body: Self.done)
    }

    private func post(
        _ line: Wish.Line, at time: HybridTime, into rows: Rows
    ) throws(StoreError) {
        try Self.append(line.text, to: Self.outbox(line.receiver), into: rows)
        try self.office.post(
            [PostOffice.Letter(to: line.receiver, Bytes(line.text.utf8))], at: time, into: rows)
    }

    mutating func answer(_ query: Query, over rows: RowView)
        throws(StoreError) -> QueryAnswer
    {
        if query.kind == .mail, let ask = try? OutboxAsk(decoding: query.body) {
            return QueryAnswer(body: try self.office.outbox(ask, over: rows).encoded())
        }
        // Everything posted to a group (0), or received from it (1), one line each.
        let group = GroupID(UInt16(query.body[1]))
        let list = query.body[0] == 0 ? Self.outbox(group) : Self.inbox(group)
        return QueryAnswer(
            body: Bytes(try Self.list(list, over: rows).joined(separator: "\n").utf8))
    }

    // MARK: What is kept

    static func posted(to group: GroupID, over rows: RowView) throws(StoreError)
        -> [String]
    {
        try Self.list(Self.outbox(group), over: rows)
    }

    static func received(from group: GroupID, over rows: RowView)
        throws(StoreError) -> [String]
    {
        try Self.list(Self.inbox(group), over: rows)
    }

    private static func outbox(_ group: GroupID) -> Bytes { Self.key(1, group) }
    private static func inbox(_ group: GroupID) -> Bytes { Self.key(2, group) }

    private static func key(_ kind: UInt8, _ group: GroupID) -> Bytes {
        [kind, UInt8(group.raw >> 8), UInt8(truncatingIfNeeded: group.raw)]
    }

    private static func number(_ time: HybridTime, _ number: UInt64) -> Bytes {
        let numbers = [UInt64(bitPattern: time.milliseconds), UInt64(time.count), number]
        return numbers.flatMap { number in
            (0..<8).map { UInt8(truncatingIfNeeded: number >> (56 - 8 * $0)) }
        }
    }

    private static func list(_ prefix: Bytes, over rows: RowView)
        throws(StoreError) -> [String]
    {
        var lines: [String] = []
        let end = prefix.dropLast() + [prefix[prefix.count - 1] + 1]
        try rows.scan(
            .record, from: prefix.span.bytes, to: Bytes(end).span.bytes, descending: false
        ) { _, row in
            lines.append(String(decoding: Bytes(copying: row), as: UTF8.self))
            return .next
        }
        return lines
    }

    private static func append(
        _ text: String, to prefix: Bytes, into rows: Rows
    ) throws(StoreError) {
        let count = try Self.list(prefix, over: rows.view).count
        let key = prefix + Self.number(.zero, UInt64(count)).suffix(8)
        try rows.put(.record, key.span.bytes, Bytes(text.utf8).span.bytes)
    }

    // MARK: Commands

    static func encode(_ wish: Wish) -> Bytes {
        var writer = ByteWriter()
        if case .write(let lines) = wish {
            for line in lines {
                writer.write(fixed: line.receiver.raw)
                writer.write(text: line.text)
            }
        }
        return writer.bytes
    }

    private static func decode(_ bytes: Bytes) -> Wish {
        var reader = ByteReader(bytes)
        var lines: [Wish.Line] = []
        while let group = try? reader.fixed16(), let text = try? reader.text() {
            lines.append(Wish.Line(receiver: GroupID(group), text: text))
        }
        return lines.isEmpty ? .work : .write(lines)
    }

    static func command(_ wish: Wish, _ identity: RequestIdentity, deadline: Int64 = .max)
        -> Command
    {
        Command(
            kind: .reference, identity: identity, deadlineMilliseconds: deadline,
            container: Bench.container, schemaVersion: 0, principal: Bench.system,
            body: Self.encode(wish))
    }
}
