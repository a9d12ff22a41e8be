import StratusModel
import StratusRows

extension RecordState {
    /// The nodes that hold the copies that the command names; nil: it names none.
    func holdings(in command: Command) -> [CopyHolding]? {
        // Almost every command is another one: its number is looked at, and nothing is read.
        guard let type = Self.operations.row(of: command.body)?.type, type is any NamesCopies.Type
        else { return nil }
        if type == ReplaceBody.self, self.bugs.contains(.replacedUnchecked) { return nil }
        return (Self.operations.operation(in: command) as? any NamesCopies)?.holdings
    }
}
