import StratusHTTP
import StratusIdentity
import StratusModel
import StratusRuntime
import Testing

/// What is said to an e-mail server, line for line, and what is made of its answers.
@Suite struct SMTPDialogueTests {
    private static let content = Bytes("Subject: x\r\n\r\n.hidden\r\nend\r\n".utf8)

    private static func dialogue(
        _ security: SMTPDialogue.Security, user: String? = "ann"
    ) -> SMTPDialogue {
        SMTPDialogue(
            security: security,
            credentials: user.map { .init(user: $0, password: Secret("pass word")) },
            name: "stratus", from: "s@example.org", to: "m@example.org", content: Self.content)
    }

    private static func text(_ actions: [SMTPDialogue.Action]) -> [String] {
        actions.map {
            switch $0 {
            case .send(let bytes): String(decoding: bytes, as: UTF8.self)
            case .secure: "SECURE"
            case .sent: "SENT"
            case .failed(let failure): "\(failure.isPermanent ? "5" : "4"): \(failure.reason)"
            }
        }
    }

    private func say(_ dialogue: inout SMTPDialogue, _ line: String) -> [String] {
        Self.text(dialogue.received(Bytes((line + "\r\n").utf8)))
    }

    @Test func `with TLS from the first byte a message goes out by AUTH PLAIN`() {
        var dialogue = Self.dialogue(.implicit)
        #expect(self.say(&dialogue, "220 mail ready") == ["EHLO stratus\r\n"])
        let plain = Base64.encode(Bytes("\0ann\0pass word".utf8))
        #expect(
            self.say(&dialogue, "250-mail\r\n250-SIZE 1000\r\n250 AUTH LOGIN PLAIN")
                == ["AUTH PLAIN \(plain)\r\n"])
        #expect(self.say(&dialogue, "235 good") == ["MAIL FROM:<s@example.org>\r\n"])
        #expect(self.say(&dialogue, "250 ok") == ["RCPT TO:<m@example.org>\r\n"])
        #expect(self.say(&dialogue, "251 forwarded") == ["DATA\r\n"])
        #expect(
            self.say(&dialogue, "354 go on") == ["Subject: x\r\n\r\n..hidden\r\nend\r\n.\r\n"])
        #expect(self.say(&dialogue, "250 taken") == ["SENT", "QUIT\r\n"])
        #expect(self.say(&dialogue, "221 bye") == [])
        #expect(Self.text(dialogue.ended("gone")) == [])
    }

    @Test func `STARTTLS comes before user and password, and what was said before counts no more`()
    {
        var dialogue = Self.dialogue(.startTLS)
        _ = self.say(&dialogue, "220 mail")
        #expect(
            self.say(&dialogue, "250-mail\r\n250-AUTH PLAIN\r\n250 STARTTLS") == ["STARTTLS\r\n"])
        #expect(self.say(&dialogue, "220 go") == ["SECURE"])
        #expect(Self.text(dialogue.secured()) == ["EHLO stratus\r\n"])
        // Under TLS the server offers LOGIN alone.
        #expect(self.say(&dialogue, "250-mail\r\n250 AUTH=LOGIN") == ["AUTH LOGIN\r\n"])
        #expect(
            self.say(&dialogue, "334 VXNlcm5hbWU6") == [Base64.encode(Bytes("ann".utf8)) + "\r\n"])
        #expect(
            self.say(&dialogue, "334 UGFzc3dvcmQ6")
                == [Base64.encode(Bytes("pass word".utf8)) + "\r\n"])
        #expect(self.say(&dialogue, "235 good") == ["MAIL FROM:<s@example.org>\r\n"])
    }

    @Test func `nothing is sent to a server without TLS`() {
        var dialogue = Self.dialogue(.startTLS)
        _ = self.say(&dialogue, "220 mail")
        #expect(
            self.say(&dialogue, "250-mail\r\n250 AUTH PLAIN")
                == ["5: the server offers no STARTTLS"])
    }

    @Test func `what comes with the answer to STARTTLS is put there by somebody else`() {
        var dialogue = Self.dialogue(.startTLS)
        _ = self.say(&dialogue, "220 mail")
        _ = self.say(&dialogue, "250-mail\r\n250 STARTTLS")
        #expect(
            self.say(&dialogue, "220 go\r\n250 AUTH PLAIN")
                == ["5: the server spoke before TLS had begun"])
    }

    typealias Refusal = (answers: [String], says: String)
    static let refusals: [Refusal] = [
        (["554 no"], "5: the server answered 554 to its greeting"),
        (["421 later"], "4: the server answered 421 to its greeting"),
        (["220 a", "502 what"], "5: the server answered 502 to EHLO"),
        (["220 a", "250 a"], "5: the server offers neither AUTH PLAIN nor LOGIN"),
        (
            ["220 a", "250-a\r\n250 AUTH PLAIN", "535 no"],
            "5: the server answered 535 to user and password"
        ),
        (
            ["220 a", "250-a\r\n250 AUTH PLAIN", "235 b", "450 later"],
            "4: the server answered 450 to the sender's address"
        ),
        (
            ["220 a", "250-a\r\n250 AUTH PLAIN", "235 b", "250 c", "550 nobody"],
            "5: the server answered 550 to the receiver's address"
        ),
        (
            ["220 a", "250-a\r\n250 AUTH PLAIN", "235 b", "250 c", "250 d", "354 e", "452 full"],
            "4: the server answered 452 to the message"
        ),
        (["hello"], "4: the server does not speak SMTP"),
        (["99 hello"], "4: the server does not speak SMTP"),
    ]

    @Test(arguments: refusals)
    func `a refusal with 5 is for good, one with 4 may pass`(row: Refusal) {
        var dialogue = Self.dialogue(.implicit)
        var last: [String] = []
        for answer in row.answers { last = self.say(&dialogue, answer) }
        #expect(last == [row.says])
        #expect(dialogue.received(Bytes("250 ok\r\n".utf8)).isEmpty)
    }

    @Test func `an answer without an end is bounded`() {
        var dialogue = Self.dialogue(.implicit)
        var actions: [SMTPDialogue.Action] = []
        var count = 0
        while actions.isEmpty, count < 100 {
            actions = dialogue.received(Bytes(repeating: UInt8(ascii: "2"), count: 1_000))
            count += 1
        }
        #expect(Self.text(actions) == ["4: the server's answer has no end"] && count < 6)
        dialogue = Self.dialogue(.implicit)
        actions = []
        count = 0
        while actions.isEmpty, count < 1_000 {
            actions = dialogue.received(Bytes("220-more\r\n".utf8))
            count += 1
        }
        #expect(Self.text(actions) == ["4: the server does not speak SMTP"] && count < 200)
    }

    @Test func `answers are taken however they are cut`() {
        let answers = "220 mail\r\n250-mail\r\n250 AUTH PLAIN\r\n235 good\r\n250 ok\r\n"
        var whole = Self.dialogue(.implicit)
        let wanted = Self.text(whole.received(Bytes(answers.utf8)))
        var pieces = Self.dialogue(.implicit)
        var found: [String] = []
        for byte in answers.utf8 { found += Self.text(pieces.received([byte])) }
        #expect(found == wanted && found.count == 4)
    }

    // MARK: The queue

    @Test func `the queue is bounded, waits longer each time and gives up`() {
        var queue = EmailQueue<Int>()
        let start = MonotonicTime(nanoseconds: 0)
        for number in 0..<EmailQueue<Int>.countMax {
            let isTaken = queue.add(number, at: start, drawn: 0)
            #expect(isTaken, "\(number)")
        }
        let isOneMore = queue.add(-1, at: start, drawn: 0)
        #expect(!isOneMore)
        var waiting = EmailQueue<Int>()
        let isFirst = waiting.add(7, at: start, drawn: 0)
        #expect(isFirst)
        var now = start
        var pauses: [Duration] = []
        while true {
            guard case .send(let item) = waiting.next(at: now) else { break }
            guard waiting.put(back: item, at: now) else { break }
            guard case .wait(let until) = waiting.next(at: now) else { break }
            pauses.append(until - now)
            now = until
        }
        #expect(pauses == EmailQueue<Int>.pauses)
        guard case .nothing = waiting.next(at: now) else {
            Issue.record("a message that was given up is still there")
            return
        }
    }

    @Test func `a new message rests for a drawn time, a second at most`() {
        var queue = EmailQueue<Int>()
        let start = MonotonicTime(nanoseconds: 0)
        for number: UInt64 in [.max, 999, 250, 1_000] {
            let isTaken = queue.add(Int(number % 10_000), at: start, drawn: number)
            #expect(isTaken)
        }
        var found: [Int] = []
        var now = start
        while found.count < 4, now <= start + EmailQueue<Int>.restMax {
            switch queue.next(at: now) {
            case .send(let item): found.append(item.message)
            case .wait(let until): now = until
            case .nothing: now = start + .seconds(2)
            }
        }
        #expect(found == [1_000, 250, 1_615, 999])
    }

    // MARK: Messages

    @Test func `a message has a head, and a body that no line of it can end`() throws {
        let address = try #require(EmailAddress("m@example.org"))
        let message = EmailMessage(to: address, subject: "Hello", body: "a\n.\nü\n")
        let text = String(
            decoding: message.bytes(
                from: "s@example.org", at: 1_709_631_000_000,
                identity: RequestIdentity(high: 1, low: 2)), as: UTF8.self)
        let (head, body) = try #require(
            text.firstRange(of: "\r\n\r\n").map {
                (text[..<$0.lowerBound], text[$0.upperBound...])
            })
        #expect(head.contains("From: s@example.org\r\nTo: m@example.org\r\nSubject: Hello\r\n"))
        #expect(head.contains("Date: 5 Mar 2024 09:30:00 +0000\r\n"), "\(head)")
        let encoded = Bytes(body.utf8.filter { $0 > 0x20 })
        let decoded = Base64.decode(encoded.span)
        #expect(decoded == Bytes("a\r\n.\r\nü\r\n".utf8))
    }

    @Test(arguments: ["a>b@c.d", "<a@b.c", "a@b.c,d@e.f", "ü@b.c", "a\"b@c.d", "a:b@c.d"])
    func `an address that could end a command gets no e-mail`(text: String) throws {
        #expect(try #require(EmailAddress(text)).isMailable == false)
    }
}
