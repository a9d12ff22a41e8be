import StratusCoding
package import StratusModel
package import StratusRows

/// The mail of one partition, in its rows: what it has posted to others and what it has received.
///
/// Pure, and kept nowhere but in the rows: whoever applies the same entries has the same mail. A
/// state posts while it applies; it gives what comes in to ``receive(_:at:over:_:)`` together with
/// how one mail is applied.
///
/// Invariants:
/// - Of one route every number is posted once, from 1 without a gap, and received once, in that
///   order.
/// - A mail waits in its sender's rows until an entry that is later than its receipt lets it go.
/// - Receiving posts nothing: what a mail asks for is done at once or left to a job. A full outbox
///   therefore never keeps mail from being received, and two partitions that wait for each other
///   cannot come to a stop.
package struct PostOffice: Sendable {
    /// The limits of one partition's outbox. They are equal on every replica, because whether a
    /// command is refused depends on them.
    package struct Bounds: Sendable, Equatable {
        package var countMax: UInt64 = 10_000
        package var sizeMax: UInt64 = 16 << 20
        package init() {}
    }

    /// The largest body of one mail.
    package static let bodySizeMax = 64 << 10

    package let bounds: Bounds

    private let bugs: PlantedBugs

    package init(bounds: Bounds = Bounds(), bugs: PlantedBugs = PlantedBugs()) {
        self.bounds = bounds
        self.bugs = bugs
    }

    // MARK: Sending

    /// A mail to post, before it is known whether the change that posts it happens.
    package struct Letter: Sendable, Equatable {
        package var receiver: GroupID
        package var body: Bytes

        package init(to receiver: GroupID, _ body: Bytes) {
            self.receiver = receiver
            self.body = body
        }
    }

    /// Whether a client's command, or a job, may post so much more. Who receives mail never asks.
    package func hasRoom(
        for count: Int = 1, size: Int = 0, over rows: RowView
    ) throws(StoreError) -> Bool {
        let office = try Self.office(over: rows)
        return office.waitingCount + UInt64(count) <= self.bounds.countMax
            && (office.waitingCount == 0
                || office.waitingSize + UInt64(size) <= self.bounds.sizeMax)
    }

    /// Posts letters, in their order, as part of the entry that is applied at `time`.
    package func post(
        _ letters: [Letter], at time: HybridTime, into rows: Rows
    ) throws(StoreError) {
        if letters.isEmpty { return }
        var office = try Self.office(over: rows.view)
        for letter in letters {
            precondition(
                letter.body.count <= Self.bodySizeMax, "a mail of \(letter.body.count) bytes")
            let key = MailKeys.posted(to: letter.receiver)
            var route = try Self.route(key, over: rows.view) ?? office.unposted
            let isUsedAgain =
                self.bugs.contains(.mailNumberUsedAgain) && office.waitingCount == 0
                && route.last > 0
            if !isUsedAgain { route.last += 1 }
            try rows.put(.mail, key, route.encoded())
            try rows.put(
                .mail, MailKeys.waiting(for: letter.receiver, route.last),
                Mail(sequence: route.last, sentAt: time, body: letter.body).encodedRow())
            office.waitingCount += 1
            office.waitingSize += UInt64(letter.body.count)
        }
        try rows.put(.mail, MailKeys.office, office.encoded())
    }

    // MARK: Applying

    /// Decides a mail command: at its receiver, or its sender.
    ///
    /// - Parameter deliver: applies one mail, which is the next of its route; it posts nothing.
    ///   False: this version cannot read it. It stays where it is, and so does what comes after it.
    package func apply(
        _ command: MailCommand, at time: HybridTime, over rows: Rows,
        _ deliver: (Mail, GroupID, Rows) throws(StoreError) -> Bool
    ) throws(StoreError) -> MailOutcome {
        var office = try Self.office(over: rows.view)
        switch command {
        case .deliver(let bag):
            let key = MailKeys.received(from: bag.route.sender)
            var route = try Self.route(key, over: rows.view) ?? office.unreceived
            let first = route.last
            for mail in bag.mails {
                // Once more what was received, by another courier or by the same one in doubt.
                if mail.sequence <= route.last { continue }
                // An earlier one is on its way still, or never will be: the sender begins where
                // this ends.
                guard route.expects(mail.sequence), try deliver(mail, bag.route.sender, rows)
                else { break }
                route.last = mail.sequence
                route.mayJump = false
            }
            if route.last != first { try rows.put(.mail, key, route.encoded()) }
            return .received(through: route.last, at: time)
        case .release(let receipt):
            try self.release(receipt, &office, over: rows)
            return .released
        }
    }

    /// Goes on after a recovery: numbers that were given and are lost are not given again, and what
    /// comes in may begin behind what was received and is lost.
    func recover(over rows: Rows) throws(StoreError) {
        if self.bugs.contains(.mailNotLifted) { return }
        func lifted(_ number: UInt64) -> UInt64 { (number / RouteRow.stride + 1) * RouteRow.stride }
        for (prefix, isPosted) in [(MailKeys.posted, true), (MailKeys.received, false)] {
            for key in try rows.view.keys(
                .mail, from: prefix, to: Keys.end(of: prefix), limit: .max)
            {
                guard var route = try Self.route(key, over: rows.view) else { continue }
                if isPosted { route.last = lifted(route.last) } else { route.mayJump = true }
                try rows.put(.mail, key, route.encoded())
            }
        }
        var office = try Self.office(over: rows.view)
        office.floor = lifted(office.floor)
        try rows.put(.mail, MailKeys.office, office.encoded())
    }

    /// Rows that one release takes out, whatever it says: the rest goes with the next.
    private static let releaseCountMax = 1_024

    private func release(
        _ receipt: MailReceipt, _ office: inout OfficeRow, over rows: Rows
    ) throws(StoreError) {
        let receiver = receipt.route.receiver
        let found = try rows.view.rows(
            .mail, from: MailKeys.waiting(for: receiver),
            to: receipt.through == .max
                ? Keys.end(of: MailKeys.waiting(for: receiver))
                : MailKeys.waiting(for: receiver, receipt.through + 1),
            limit: Self.releaseCountMax)
        if found.isEmpty { return }
        for (key, row) in found {
            let mail = try Self.mail(key, row).mail
            try rows.remove(.mail, key)
            office.waitingCount -= min(1, office.waitingCount)
            office.waitingSize -= min(UInt64(mail.body.count), office.waitingSize)
        }
        try rows.put(.mail, MailKeys.office, office.encoded())
    }

    // MARK: Looking

    /// The oldest mail of each receiver. It reads what it answers, and one row for each receiver
    /// left out.
    package func outbox(_ ask: OutboxAsk, over rows: RowView)
        throws(StoreError) -> Outbox
    {
        let office = try Self.office(over: rows)
        var outbox = Outbox(
            waitingCount: office.waitingCount, waitingSize: office.waitingSize)
        if office.waitingCount == 0 { return outbox }
        let except = Set(ask.except)
        let end = Keys.end(of: MailKeys.waiting)
        var start = MailKeys.waiting
        while let first = try rows.rows(.mail, from: start, to: end, limit: 1).first {
            let receiver = try MailKeys.readWaiting(first.key).0
            let pileStart = MailKeys.waiting(for: receiver)
            let next = Keys.end(of: pileStart)
            start = next
            if except.contains(receiver) { continue }
            if outbox.piles.count >= max(1, ask.bagCountMax) {
                outbox.hasMore = true
                break
            }
            var mails: [Mail] = []
            for (key, row) in try rows.rows(
                .mail, from: pileStart, to: next, limit: max(1, ask.mailCountMax),
                sizeMax: max(1, ask.bagSizeMax))
            {
                mails.append(try Self.mail(key, row).mail)
            }
            outbox.piles.append(Outbox.Pile(receiver, mails))
        }
        return outbox
    }

    /// The number of mails that wait in the outbox, for all receivers.
    package func waitingCount(over rows: RowView) throws(StoreError) -> UInt64 {
        try Self.office(over: rows).waitingCount
    }

    /// The last number given to a mail for `receiver`. The next one is higher.
    package static func lastPosted(
        to receiver: GroupID, over rows: RowView
    ) throws(StoreError) -> UInt64 {
        let office = try Self.office(over: rows)
        return (try Self.route(MailKeys.posted(to: receiver), over: rows) ?? office.unposted).last
    }

    /// The last number received from `sender`.
    package static func lastReceived(
        from sender: GroupID, over rows: RowView
    ) throws(StoreError) -> UInt64 {
        try Self.route(MailKeys.received(from: sender), over: rows)?.last ?? 0
    }

    // MARK: Rows

    private static func office(over rows: RowView) throws(StoreError)
        -> OfficeRow
    {
        guard let row = try rows.row(.mail, MailKeys.office) else { return OfficeRow() }
        return try decodingRow("mail office") { () throws(DecodingError) in
            try OfficeRow(decoding: row)
        }
    }

    private static func route(_ key: Bytes, over rows: RowView)
        throws(StoreError) -> RouteRow?
    {
        guard let row = try rows.row(.mail, key) else { return nil }
        return try decodingRow("mail route") { () throws(DecodingError) in
            try RouteRow(decoding: row)
        }
    }

    private static func mail(_ key: Bytes, _ row: Bytes) throws(StoreError)
        -> (receiver: GroupID, mail: Mail)
    {
        let (receiver, sequence) = try MailKeys.readWaiting(key)
        return (
            receiver,
            try decodingRow("mail") { () throws(DecodingError) in
                try Mail(sequence: sequence, row: row)
            }
        )
    }
}
