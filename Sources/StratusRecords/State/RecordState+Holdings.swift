import StratusCoding
import StratusModel

extension RecordState {
    /// The nodes that hold the copies that the command names; nil: it names none.
    static func holdings(in command: Command) -> [CopyHolding]? {
        // Almost every command is another one: its kind is looked at, and nothing is decoded.
        guard Command.recordKind(of: command.body) == 20,
            case .pinAsset(let pin)? = try? RecordCommand(
                decoding: command.body, container: command.container)
        else { return nil }
        // An empty file has no copies.
        return pin.chunks.isEmpty ? nil : pin.storers
    }
}
