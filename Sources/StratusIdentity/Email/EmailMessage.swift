import StratusHTTP
package import StratusModel
import StratusRuntime

/// A message to one person, in plain text.
package struct EmailMessage: Sendable, Equatable {
    package var to: String
    package var subject: String
    /// Lines that end with a line feed.
    package var body: String

    package init(to: EmailAddress, subject: String, body: String) {
        self.to = to.text
        self.subject = subject
        self.body = body
    }

    /// The message as a server takes it (RFC 5322), with lines that end as the wire wants it.
    ///
    /// - Parameters:
    ///   - identity: names the message, so that one that is sent twice can be told.
    package func bytes(
        from sender: String, at milliseconds: Int64, identity: RequestIdentity
    ) -> Bytes {
        let host = sender.split(separator: "@").last.map(String.init) ?? "localhost"
        let head = [
            "From: \(sender)", "To: \(self.to)", "Subject: \(Self.head(self.subject))",
            "Date: \(Self.date(milliseconds))", "Message-ID: <\(identity)@\(host)>",
            "MIME-Version: 1.0", "Content-Type: text/plain; charset=utf-8",
            "Content-Transfer-Encoding: base64", "Auto-Submitted: auto-generated",
        ]
        let encoded = Base64.encode(Bytes(self.body.replacing("\n", with: "\r\n").utf8))
        var lines = head + [""]
        var rest = encoded[...]
        while !rest.isEmpty {
            lines.append(String(rest.prefix(76)))
            rest = rest.dropFirst(76)
        }
        return Bytes((lines.joined(separator: "\r\n") + "\r\n").utf8)
    }

    /// Letters beyond ASCII stand in one encoded word (RFC 2047), which has 75 characters at most.
    static func head(_ subject: String) -> String {
        if subject.utf8.allSatisfy({ $0 < 0x80 }) { return subject }
        return "=?utf-8?B?\(Base64.encode(Bytes(subject.utf8)))?="
    }

    /// `28 Nov 2026 11:30:00 +0000`
    static func date(_ milliseconds: Int64) -> String {
        let text = WallTime.text(milliseconds)
        let months = [
            "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
        ]
        let parts = text.prefix(10).split(separator: "-")
        guard parts.count == 3, let month = Int(parts[1]), (1...12).contains(month),
            let day = Int(parts[2])
        else { return "1 Jan 1970 00:00:00 +0000" }
        let time = text.dropFirst(11).prefix(8)
        return "\(day) \(months[month - 1]) \(parts[0]) \(time) +0000"
    }
}

extension EmailAddress {
    /// Whether it can stand in a command of SMTP and in a head: ASCII without the marks that mean
    /// something there.
    package var isMailable: Bool {
        self.text.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F && !Self.marks.contains($0) }
    }

    private static let marks = Set(Bytes("<>()[]\\,;:\"".utf8))
}
