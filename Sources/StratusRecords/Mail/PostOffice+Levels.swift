import StratusCoding
import StratusModel

extension PostOffice {
    /// Tells which builds know the mail that a command brings.
    static func reading(of body: Bytes) -> CommandReading {
        guard let command = try? MailCommand(decoding: body) else { return .malformed }
        guard case .deliver(let bag) = command else { return .readable(since: .one) }
        return bag.mails.reduce(.readable(since: .one)) { reading, mail in
            reading.joined(with: .of(mail.body, version: .mailVersion, kind: .mail))
        }
    }
}
