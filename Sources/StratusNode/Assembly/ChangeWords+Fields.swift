import StratusPlacement
import StratusRuntime

extension ChangeWords {
    /// The fields of the change for a line of the log; only those that it has.
    var fields: LogFields {
        var fields: LogFields = ["change": .text(self.change)]
        if let node { fields.append("node", .text(node)) }
        if let partition { fields.append("partition", .text(partition)) }
        if let from { fields.append("from", .text(from)) }
        if let to { fields.append("to", .text(to)) }
        return fields
    }
}
