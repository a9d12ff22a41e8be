import StratusCoding
import StratusModel
import StratusRows

extension RecordState {
    /// A mail command: what other partitions' states have posted to this one, and what they have
    /// received from it.
    mutating func take(
        _ command: Command, at position: EntryPosition, over rows: Rows
    ) throws(StoreError) -> Outcome {
        guard command.principal.kind == .system,
            let mail = try? MailCommand(decoding: command.body)
        else { return Outcome(.decided, body: MailOutcome.refused.encoded()) }
        var mended = MendedLinks(0)
        let outcome = try self.office.apply(mail, at: position.time, over: rows) {
            (mail, sender, rows) throws(StoreError) in
            try self.deliver(mail, from: sender, mended: &mended, over: rows)
        }
        return Outcome(.decided, body: outcome.encoded(), detail: mended.detail)
    }

    func outbox(_ query: Query, over rows: RowView) throws(StoreError)
        -> QueryAnswer
    {
        let ask = (try? OutboxAsk(decoding: query.body)) ?? OutboxAsk()
        return QueryAnswer(body: try self.office.outbox(ask, over: rows).encoded())
    }
}
