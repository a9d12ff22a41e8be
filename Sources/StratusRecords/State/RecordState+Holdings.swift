import StratusCoding
import StratusModel

extension RecordState {
    /// The nodes that hold the copies that the command names; nil: it names none.
    func holdings(in command: Command) -> [CopyHolding]? {
        // Almost every command is another one: its kind is looked at, and nothing is decoded.
        guard command.body.count > 1,
            let kind = RecordCommand.Kind(rawValue: command.body[1]),
            [.pinAsset, .findBody, .replaceBody].contains(kind)
        else { return nil }
        // An empty file has no copies.
        switch try? RecordCommand(decoding: command.body, container: command.container) {
        case .pinAsset(let pin): return pin.chunks.isEmpty ? nil : pin.storers
        case .findBody(let find): return find.storers
        case .replaceBody(let replace):
            if self.bugs.contains(.replacedUnchecked) { return nil }
            return replace.chunks.isEmpty ? nil : replace.storers
        default: return nil
        }
    }
}
