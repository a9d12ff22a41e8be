import StratusCommandLine
import StratusConfiguration
import StratusIdentity
import StratusModel
import StratusProcess
import StratusRuntime
import StratusTLS
import Synchronization

/// Sends e-mail to people through the server that the configuration names, one message after the
/// other. ``SMTPDialogue`` and ``EmailQueue`` decide; this carries out.
final class SMTPSender: EmailSender {
    /// What the configuration says.
    struct Server: Sendable {
        var host: String
        var port: UInt16
        var security: SMTPDialogue.Security
        var credentials: SMTPDialogue.Credentials?
        /// The address that messages come from.
        var sender: String
        var tls: TLSContext
    }

    /// A message, or what makes it. One that was made stays the same when it is tried again.
    private enum Waiting: Sendable {
        case unmade(@Sendable () async -> EmailMessage?)
        case made(Bytes, to: String)
    }

    private struct State: Sendable {
        var queue = EmailQueue<Waiting>()
        var runner: Task<Void, Never>?
        var isStopped = false
    }

    /// From the connection to the server's last word.
    private static let patience = Duration.seconds(60)

    private let server: Server
    private let world: any World
    private let loop: EventLoop
    private let log: Log
    private let state = Mutex(State())
    private let sent: Counter
    private let failed: Counter

    init(_ server: Server, world: any World, loop: EventLoop, log: Log, metrics: Metrics) {
        self.server = server
        self.world = world
        self.loop = loop
        self.log = log
        self.sent = metrics.counter(
            "stratus_email_sent_total", "E-mails that the server of signIn.mail has taken")
        self.failed = metrics.counter(
            "stratus_email_failed_total",
            "E-mails that were given up, because the server refused them or could not be reached")
        metrics.gauge("stratus_email_waiting", "E-mails that wait for the server") { [weak self] in
            Double(self?.state.withLock { $0.queue.count } ?? 0)
        }
    }

    func enqueue(_ make: @escaping @Sendable () async -> EmailMessage?) -> Bool {
        let (now, number) = (self.world.now, self.world.random())
        return self.state.withLock { state in
            guard !state.isStopped, state.queue.add(.unmade(make), at: now, drawn: number) else {
                return false
            }
            if state.runner == nil { state.runner = Task.detached { await self.run() } }
            return true
        }
    }

    func stop() {
        self.state.withLock { state in
            state.isStopped = true
            state.runner?.cancel()
        }
    }

    // MARK: One message after the other

    private func run() async {
        while !Task.isCancelled {
            let now = self.world.now
            let next = self.state.withLock { state in
                let next = state.queue.next(at: now)
                if case .nothing = next { state.runner = nil }
                return next
            }
            switch next {
            case .nothing: return
            case .wait(let time): await self.rest(until: time)
            case .send(let item): await self.send(item)
            }
        }
    }

    /// Not longer than a moment, so that a message that comes meanwhile waits for none before it.
    private func rest(until time: MonotonicTime) async {
        let end = min(time, self.world.now + .seconds(1))
        try? await self.loop.sleep(until: end)
    }

    private func send(_ item: EmailQueue<Waiting>.Item) async {
        var item = item
        if case .unmade(let make) = item.message {
            guard let message = await make() else { return }
            let bytes = message.bytes(
                from: self.server.sender, at: self.world.wallMilliseconds,
                identity: self.world.drawIdentity())
            item.message = .made(bytes, to: message.to)
        }
        guard case .made(let bytes, let receiver) = item.message else { return }
        guard let failure = await self.attempt(bytes, to: receiver) else {
            self.sent.add()
            return
        }
        let now = self.world.now
        let again = item
        let isKept =
            !failure.isPermanent && self.state.withLock { $0.queue.put(back: again, at: now) }
        if !isKept { self.failed.add() }
        self.log.warning(
            isKept ? "an e-mail is tried again later" : "an e-mail was not sent",
            ["server": .text(self.server.host), "reason": .text(failure.reason)])
    }

    /// - Returns: nil: the server has taken it.
    private func attempt(_ content: Bytes, to receiver: String) async -> SMTPDialogue.Failure? {
        let name = HTTPEndpoint.TLS(self.server.tls, name: self.server.host)
        let isImplicit = self.server.security == .implicit
        do throws(HTTPClientError) {
            let addresses = try await NameLookup.addresses(
                of: self.server.host, port: self.server.port)
            let connection = try await TextConnection.open(
                to: addresses, tls: isImplicit ? name : nil, loop: self.loop,
                deadline: Self.patience)
            // Servers that want a domain for a name take the one that the message comes from.
            let domain = self.server.sender.split(separator: "@").last.map(String.init)
            let dialogue = SMTPDialogue(
                security: self.server.security, credentials: self.server.credentials,
                name: domain ?? "stratus", from: self.server.sender, to: receiver,
                content: content)
            let failure = await self.talk(dialogue, over: connection, name)
            await connection.close()
            return failure
        } catch { return Self.failure(error) }
    }

    private func talk(
        _ dialogue: SMTPDialogue, over connection: TextConnection, _ tls: HTTPEndpoint.TLS
    ) async -> SMTPDialogue.Failure? {
        var dialogue = dialogue
        var isSent = false
        do throws(HTTPClientError) {
            while true {
                let bytes = try await connection.read()
                var actions =
                    bytes.isEmpty
                    ? dialogue.ended("the server closed the connection") : dialogue.received(bytes)
                while !actions.isEmpty {
                    switch actions.removeFirst() {
                    case .send(let bytes): try await connection.write(bytes)
                    case .secure:
                        try await connection.secure(tls)
                        actions += dialogue.secured()
                    case .sent: isSent = true
                    case .failed(let failure): return failure
                    }
                }
                if isSent { return nil }
            }
        } catch {
            // What the server has taken is its own, whether it hears the goodbye or not.
            return isSent ? nil : Self.failure(error)
        }
    }

    private static func failure(_ error: HTTPClientError) -> SMTPDialogue.Failure {
        let reason =
            switch error {
            case .unreachable: "the server cannot be reached"
            case .notSecure(let error): "the server's certificate cannot be trusted: \(error)"
            case .deadlinePassed: "the server did not answer in time"
            case .cancelled: "the node stops"
            case .cutShort, .malformed, .bodyFailed, .tooLarge: "the server closed the connection"
            }
        return SMTPDialogue.Failure(reason, isPermanent: false)
    }
}

extension SMTPSender {
    /// What sends e-mail by the configuration; nil: nothing does.
    static func make(
        _ settings: ConfigurationSettings, world: any World, loop: EventLoop, log: Log,
        metrics: Metrics
    ) throws(NodeFailure) -> SMTPSender? {
        guard let server = settings.text("signIn.mail.server") else { return nil }
        guard case .tcp(let host, let port)? = ListenAddress(server) else {
            throw NodeFailure(
                .configuration, "'signIn.mail.server': '\(server)' is not HOST:PORT")
        }
        var configuration = TLSClientConfiguration()
        // SMTP has no name in ALPN.
        configuration.protocols = []
        var credentials: SMTPDialogue.Credentials?
        do throws(SmallFile.Failure) {
            if let path = settings.text("signIn.mail.authorityFile") {
                configuration.authorityPEM = try SmallFile.read(path)
            }
            if let user = settings.text("signIn.mail.user"),
                let path = settings.text("signIn.mail.passwordFile")
            {
                let bytes = try SmallFile.read(path, limit: .kibibytes(4))
                let text = String(
                    decoding: bytes.prefix { $0 != 0x0A && $0 != 0x0D }, as: UTF8.self)
                credentials = .init(user: user, password: Secret(text))
            }
        } catch { throw NodeFailure(.configuration, "'signIn.mail': \(error)") }
        let tls: TLSContext
        do throws(TLSError) { tls = try TLSContext(client: configuration) } catch {
            throw NodeFailure(.configuration, "'signIn.mail.authorityFile': \(error)")
        }
        return SMTPSender(
            Server(
                host: host, port: port,
                security: .init(rawValue: settings.text("signIn.mail.security") ?? "") ?? .implicit,
                credentials: credentials, sender: settings.text("signIn.mail.from") ?? "", tls: tls),
            world: world, loop: loop, log: log, metrics: metrics)
    }
}
