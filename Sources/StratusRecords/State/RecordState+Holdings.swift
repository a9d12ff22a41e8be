import StratusCoding
import StratusModel

extension RecordState {
    /// The nodes that hold the copies that the command names; nil: it names none.
    static func holdings(in command: Command) -> [CopyHolding]? {
        // Almost every command is another one: its kind is looked at, and nothing is decoded.
        guard let kind = Command.recordKind(of: command.body), kind == 20 || kind == 150,
            let decoded = try? RecordCommand(
                decoding: command.body, container: command.container)
        else { return nil }
        return switch decoded {
        // An empty file has no copies.
        case .pinAsset(let pin): pin.chunks.isEmpty ? nil : pin.storers
        case .findBody(let find): find.storers
        default: nil
        }
    }
}
