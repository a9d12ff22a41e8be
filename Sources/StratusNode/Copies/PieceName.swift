import StratusCluster
import StratusCoding
import StratusModel
import StratusRecords
import StratusRows

/// What a piece of the storage thread's work is called in a report: its kind alone, so that pieces
/// of the same kind have the same name.
enum PieceName {
    @Sendable static func of(_ kind: WorkWatch.Work.Kind) -> String {
        switch kind {
        case .read(let query): "read \(Self.of(query))"
        case .apply(let entries): "apply \(Self.of(entries))"
        }
    }

    private static func of(_ query: Query) -> String {
        if let (question, _) = RecordState.questions.question(in: query) {
            return "\(type(of: question))"
        }
        guard query.kind == .records, let asked = try? RecordQuery(decoding: query.body) else {
            return "\(query.kind)"
        }
        return Self.label(asked.ask)
    }

    /// Of a run of entries, the largest.
    private static func of(_ entries: ArraySlice<Entry>) -> String {
        guard let largest = entries.max(by: { $0.payload.count < $1.payload.count }) else {
            return "nothing"
        }
        guard largest.kind == .command, let command = try? Command(decoding: largest.payload),
            command.kind == .records
        else { return "\(largest.kind)" }
        if let operation = RecordState.operations.operation(in: command) {
            return "\(type(of: operation))"
        }
        guard
            let meant = try? RecordCommand(
                decoding: command.body, container: command.container)
        else { return "\(largest.kind)" }
        return Self.label(meant)
    }

    /// The name of a case, without what it holds.
    private static func label(_ value: some Any) -> String {
        Mirror(reflecting: value).children.first?.label ?? "\(value)"
    }
}
