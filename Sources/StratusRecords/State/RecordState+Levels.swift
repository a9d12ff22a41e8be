import StratusCoding
package import StratusModel

extension RecordState {
    /// Beside the command's own numbers, those of the rows that it names and of the mail that it
    /// brings.
    package func reading(of command: Command) -> CommandReading {
        let reading = command.reading
        guard case .readable = reading else { return reading }
        switch command.kind {
        case .identity: return reading.joined(with: Self.readingOfRows(command.body))
        case .mail: return reading.joined(with: Self.readingOfMail(command.body))
        case .records, .system, .reference: return reading
        }
    }

    package func holdings(in command: Command) -> [CopyHolding]? {
        // Almost every command is another one: its kind is looked at, and nothing is decoded.
        guard command.kind == .records, Command.recordKind(of: command.body) == 20,
            case .pinAsset(let pin)? = try? RecordCommand(
                decoding: command.body, container: command.container)
        else { return nil }
        // An empty file has no copies.
        return pin.chunks.isEmpty ? nil : pin.storers
    }

    private static func readingOfRows(_ body: Bytes) -> CommandReading {
        do throws(DecodingError) {
            return .readable(since: try IdentityCommand(decoding: body).level)
        } catch {
            if case .unknownNumber(let family, let number) = error.kind {
                return .newer("\(family) \(number)")
            }
            return .malformed
        }
    }

    private static func readingOfMail(_ body: Bytes) -> CommandReading {
        guard let command = try? MailCommand(decoding: body) else { return .malformed }
        guard case .deliver(let bag) = command else { return .readable(since: .one) }
        return bag.mails.reduce(.readable(since: .one)) { reading, mail in
            reading.joined(with: .of(mail.body, version: .mailVersion, kind: .mail))
        }
    }
}
