import StratusCluster
import StratusCoding
import StratusModel
import StratusRecords
import StratusRows
import Testing

@testable import StratusNode

@Suite struct PieceNameTests {
    private static let container = ContainerReference(
        container: "iCloud.org.example.names", environment: .development)

    private static func entry(_ command: RecordCommand) -> Entry {
        let envelope = Command(
            kind: .records, identity: RequestIdentity(high: 1, low: 2), deadlineMilliseconds: 1,
            container: Self.container, schemaVersion: 1, principal: Principal(kind: .system),
            body: command.encoded())
        return Entry(
            index: LogIndex(1), term: Term(1), time: .zero, kind: .command,
            payload: envelope.encoded())
    }

    @Test func `pieces of one kind have one name, whoever asked`() {
        let query = RecordQuery(principal: Principal(kind: .system), .work(asOf: 7))
        #expect(
            PieceName.of(.read(Query(kind: .records, body: query.encoded()))) == "read work")
        #expect(PieceName.of(.read(Query(kind: .identity, body: []))) == "read identity")
        let small = Self.entry(.forgetOutcomes)
        let large = Self.entry(.continueJobs(ContinueJobs(budget: 500)))
        #expect(PieceName.of(.apply([small])) == "apply forgetOutcomes")
        #expect(PieceName.of(.apply([small, large])) == "apply continueJobs")
        let ask = KeyAsk {
            $0.database = DatabaseID(container: Self.container, scope: .public, owner: "")
        }
        #expect(
            PieceName.of(.read(ask.enveloped(as: Principal(kind: .system)))) == "read KeyAsk")
        let noop = Entry(
            index: LogIndex(2), term: Term(1), time: .zero, kind: .noop, payload: [])
        #expect(PieceName.of(.apply([noop])) == "apply noop")
    }
}
