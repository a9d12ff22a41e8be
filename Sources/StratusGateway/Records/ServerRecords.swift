import StratusHTTP
import StratusIdentity
import StratusModel
import StratusRecords

/// The records that a batch came into conflict with, as a look-up has them now. A client that gets
/// the server's record beside the conflict need not ask for it.
struct ServerRecords {
    private var records: [String: Record] = [:]
    private var opened = OpenedFields.none
    private var shares = ShownShares.none
    /// What else may be written of them.
    private var restSize = Self.sizeMax

    /// Bytes of them in one answer, about. What comes later is left out.
    static let sizeMax = 1 << 20

    static let none = ServerRecords()

    private init() {}

    /// Looks for records in one question. What does not fit into its answer is left out, and so is
    /// all of it where something fails: the answer that it stands in is about something else.
    @inline(never)
    init(named names: [String], at place: ZonePlace, for exchange: Exchange) async {
        guard !names.isEmpty, exchange.kernel.settings.hasExtensions else { return }
        do {
            let (items, _) = try await LookUpService(exchange: exchange).lookUp(
                names, at: place, roundCountMax: 1)
            var found: [Record] = []
            for case .found(let record) in items { found.append(record) }
            self.opened = try await exchange.opened(found)
            self.shares = try await exchange.shownShares(of: found, at: place)
            for record in found { self.records[record.name] = record }
        } catch {}
    }

    /// Writes the record of this name beside a conflict, if it is there whole.
    mutating func write(
        _ name: String, _ shape: AnswerShape, _ links: AssetLinks?, to writer: inout JSONWriter
    ) {
        guard let record = self.records[name], self.restSize > 0, !self.shares.isGone(record),
            ClientError(of: record, shape, self.opened, wasSaved: false) == nil
        else { return }
        let start = writer.count
        writer.key("serverRecord")
        writer.writeRecord(record, shape, links, self.opened, self.shares)
        self.restSize -= writer.count - start
    }
}
