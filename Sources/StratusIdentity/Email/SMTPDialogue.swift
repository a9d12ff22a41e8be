import StratusHTTP
package import StratusModel
package import StratusRuntime

/// One conversation with an e-mail server, from its greeting to the answer that it has taken the
/// message (RFC 5321, 3207, 4954). Pure: it takes what came, and says what to send.
///
/// The password goes out under TLS only. What a server says before TLS counts for nothing after it.
package struct SMTPDialogue: Sendable {
    package enum Security: String, Sendable, CaseIterable {
        /// TLS from the first byte, usually at port 465.
        case implicit
        /// Plain until both have agreed on TLS, usually at port 587.
        case startTLS = "starttls"
    }

    package struct Credentials: Sendable {
        package var user: String
        package var password: Secret<String>

        package init(user: String, password: Secret<String>) {
            self.user = user
            self.password = password
        }
    }

    package struct Failure: Error, Sendable, Equatable {
        /// Without an address: it goes to the log.
        package var reason: String
        /// Whether the same message would fail again.
        package var isPermanent: Bool

        package init(_ reason: String, isPermanent: Bool) {
            self.reason = reason
            self.isPermanent = isPermanent
        }
    }

    package enum Action: Sendable, Equatable {
        case send(Bytes)
        /// Begin TLS, then call ``secured()``.
        case secure
        /// The server has taken the message: it is the server's now.
        case sent
        case failed(Failure)
    }

    private enum Step {
        case greeting, hello, startTLS, securing, plain, loginUser, loginPassword, from, to, data,
            content, over
    }

    /// Bytes of one line of an answer, and lines of one answer.
    static let lineSizeMax = 4 << 10
    static let lineCountMax = 128

    private let security: Security
    private let credentials: Credentials?
    private let from: String
    private let to: String
    private let content: Bytes
    private let hello: Bytes
    private var step = Step.greeting
    private var isSecure: Bool
    private var buffer: Bytes = []
    private var lines: [String] = []
    private var abilities: Set<String> = []
    private var methods: Set<String> = []

    /// - Parameters:
    ///   - name: what the client calls itself.
    ///   - content: the message as it is sent, without the line that ends it.
    package init(
        security: Security, credentials: Credentials?, name: String, from: String, to: String,
        content: Bytes
    ) {
        self.security = security
        self.credentials = credentials
        self.from = from
        self.to = to
        self.content = content
        self.hello = Bytes("EHLO \(name)\r\n".utf8)
        self.isSecure = security == .implicit
    }

    // MARK: What happens

    package mutating func received(_ bytes: Bytes) -> [Action] {
        guard self.step != .over else { return [] }
        self.buffer += bytes
        var actions: [Action] = []
        while self.step != .over, self.step != .securing,
            let end = self.buffer.firstIndex(of: 0x0A)
        {
            let line = Bytes(self.buffer[..<end].filter { $0 != 0x0D })
            self.buffer.removeFirst(end + 1)
            actions += self.take(line)
        }
        if self.step == .securing, !self.buffer.isEmpty {
            // Somebody in between may have put it there.
            return [self.fail("the server spoke before TLS had begun", isPermanent: true)]
        }
        if self.step != .over, self.buffer.count > Self.lineSizeMax {
            actions.append(self.fail("the server's answer has no end", isPermanent: false))
        }
        return actions
    }

    package mutating func secured() -> [Action] {
        precondition(self.step == .securing, "TLS that nobody asked for")
        self.isSecure = true
        self.abilities = []
        self.methods = []
        self.step = .hello
        return [.send(self.hello)]
    }

    /// The connection has ended.
    package mutating func ended(_ why: String) -> [Action] {
        guard self.step != .over else { return [] }
        return [self.fail(why, isPermanent: false)]
    }

    // MARK: Answers

    private mutating func take(_ line: Bytes) -> [Action] {
        guard line.count <= Self.lineSizeMax, self.lines.count < Self.lineCountMax, line.count >= 3,
            let code = Int(String(decoding: line.prefix(3), as: UTF8.self)),
            (200...599).contains(code)
        else { return [self.fail("the server does not speak SMTP", isPermanent: false)] }
        self.lines.append(String(decoding: line.dropFirst(4), as: UTF8.self))
        if line.count > 3, line[3] == UInt8(ascii: "-") { return [] }
        defer { self.lines = [] }
        return self.answer(code)
    }

    private mutating func answer(_ code: Int) -> [Action] {
        switch (self.step, code) {
        case (.greeting, 220): return self.say(self.hello, next: .hello)
        case (.hello, 250):
            self.note()
            return self.afterHello()
        case (.startTLS, 220):
            self.step = .securing
            return [.secure]
        case (.loginUser, 334):
            return self.say(self.base64(self.credentials?.user ?? ""), next: .loginPassword)
        case (.loginPassword, 334):
            return self.say(
                self.base64(self.credentials?.password.reveal() ?? ""), next: .plain)
        case (.plain, 235): return self.say("MAIL FROM:<\(self.from)>", next: .from)
        case (.from, 250): return self.say("RCPT TO:<\(self.to)>", next: .to)
        case (.to, 250), (.to, 251): return self.say("DATA", next: .data)
        case (.data, 354):
            return self.say(Self.stuffed(self.content) + Bytes(".\r\n".utf8), next: .content)
        case (.content, 250):
            self.step = .over
            return [.sent, .send(Bytes("QUIT\r\n".utf8))]
        default: return [self.refused(code)]
        }
    }

    /// Remembers what the server can do: a word in each line, with parameters behind it.
    private mutating func note() {
        for line in self.lines.dropFirst() {
            let words = line.uppercased().split { $0 == " " || $0 == "=" }.map(String.init)
            guard let first = words.first else { continue }
            self.abilities.insert(first)
            if first == "AUTH" { self.methods.formUnion(words.dropFirst()) }
        }
    }

    private mutating func afterHello() -> [Action] {
        guard self.isSecure else {
            guard self.abilities.contains("STARTTLS") else {
                return [self.fail("the server offers no STARTTLS", isPermanent: true)]
            }
            return self.say("STARTTLS", next: .startTLS)
        }
        guard let credentials else { return self.say("MAIL FROM:<\(self.from)>", next: .from) }
        if self.methods.contains("PLAIN") {
            let text = "\0\(credentials.user)\0\(credentials.password.reveal())"
            return self.say("AUTH PLAIN " + Base64.encode(Bytes(text.utf8)), next: .plain)
        }
        guard self.methods.contains("LOGIN") else {
            return [self.fail("the server offers neither AUTH PLAIN nor LOGIN", isPermanent: true)]
        }
        return self.say("AUTH LOGIN", next: .loginUser)
    }

    // MARK: Saying

    private mutating func say(_ line: String, next: Step) -> [Action] {
        self.say(Bytes((line + "\r\n").utf8), next: next)
    }

    private mutating func say(_ bytes: Bytes, next: Step) -> [Action] {
        self.step = next
        return [.send(bytes)]
    }

    private func base64(_ text: String) -> String { Base64.encode(Bytes(text.utf8)) }

    private mutating func fail(_ reason: String, isPermanent: Bool) -> Action {
        self.step = .over
        return .failed(Failure(reason, isPermanent: isPermanent))
    }

    /// A server says 4 first where it may go better later, and 5 where it never will.
    private mutating func refused(_ code: Int) -> Action {
        let during =
            switch self.step {
            case .greeting: "its greeting"
            case .hello: "EHLO"
            case .startTLS: "STARTTLS"
            case .plain, .loginUser, .loginPassword: "user and password"
            case .from: "the sender's address"
            case .to: "the receiver's address"
            case .data, .content: "the message"
            case .securing, .over: "nothing"
            }
        return self.fail("the server answered \(code) to \(during)", isPermanent: code >= 500)
    }

    /// A line that begins with a full stop gets another one, so that none ends the message.
    static func stuffed(_ content: Bytes) -> Bytes {
        var out = Bytes()
        out.reserveCapacity(content.count + 16)
        var isAtStart = true
        for byte in content {
            if isAtStart, byte == UInt8(ascii: ".") { out.append(byte) }
            out.append(byte)
            isAtStart = byte == 0x0A
        }
        if !isAtStart { out += Bytes("\r\n".utf8) }
        return out
    }
}
