import StratusGateway
import StratusHTTP
import StratusModel
import StratusPush
import StratusRuntime
import StratusSealing
import StratusTLS

/// What an answer of a provider means: for the lane, and for the push and its device.
struct PushAnswer: Sendable, Equatable {
    enum Verdict: Sendable, Equatable {
        case accepted
        /// Milliseconds since 1970; nil: when the push was sent.
        case gone(at: Int64?)
        case unknownDevice
        case busy(after: Duration?)
        case dropped(reason: String)
    }

    var lane: PushLane.Answer
    /// Nil: none yet, it is sent again.
    var verdict: Verdict?

    init(_ lane: PushLane.Answer, _ verdict: Verdict? = nil) {
        self.lane = lane
        self.verdict = verdict
    }

    static func dropped(_ reason: String) -> PushAnswer {
        PushAnswer(.final, .dropped(reason: reason))
    }

    init(_ verdict: APNsVerdict) {
        switch verdict {
        case .accepted: self.init(.accepted, .accepted)
        case .gone(let moment): self.init(.final, .gone(at: moment))
        case .unknownDevice: self.init(.final, .unknownDevice)
        case .tooLarge: self.init(.final, .dropped(reason: "PayloadTooLarge"))
        case .dropped(let reason): self.init(.final, .dropped(reason: reason))
        // By its whole name: the verdict has a case of the same form, and would make this call
        // itself for ever.
        case .tokenRefused(let reason): self.init(PushLane.Answer.tokenRefused(reason: reason))
        case .deviceBusy(let pause): self.init(.final, .busy(after: pause))
        case .unavailable(_, let pause): self.init(.unavailable(after: pause))
        }
    }

    init(_ verdict: WebPushVerdict) {
        switch verdict {
        case .accepted: self.init(.accepted, .accepted)
        case .gone: self.init(.final, .gone(at: nil))
        case .tooLarge: self.init(.final, .dropped(reason: "status 413"))
        // The browser subscribed with another key, or says so. The service serves other
        // containers and browsers over the same lane, so this is the device's own trouble.
        case .tokenRefused: self.init(.final, .busy(after: .seconds(30)))
        case .dropped(let status): self.init(.final, .dropped(reason: "status \(status)"))
        case .deviceBusy(let pause): self.init(.final, .busy(after: pause ?? .seconds(30)))
        case .unavailable(_, let pause): self.init(.unavailable(after: pause))
        }
    }

    init(_ error: HTTP2ClientError) {
        switch error {
        case .notProcessed, .cutShort, .reset, .closed: self.init(.unanswered)
        case .resting, .unreachable, .notSpoken, .deadlinePassed, .full:
            self.init(.unavailable(after: nil))
        case .tooLarge: self.init(.final, .dropped(reason: "an answer that is too large"))
        }
    }
}

/// The way over which one lane sends.
protocol PushConnection: Sendable {
    /// - Parameter authorization: the value of the request's field.
    @concurrent
    func send(_ push: PreparedPush, authorization: String) async -> PushAnswer
    /// Nothing was sent for a while.
    func rest() async
    func close() async
}

/// Makes connections to providers.
struct PushConnector: Sendable {
    enum Failure: Error { case address, name }

    /// How long one answer may take.
    private static let patience = Duration.seconds(15)
    let loop: EventLoop
    let world: any World
    let apns: TLSContext
    let webPush: TLSContext
    /// Private addresses are connected to. For stand-ins.
    let allowsPrivate: Bool

    /// - Parameter authority: certificates, PEM, believed instead of the system's.
    init(
        loop: EventLoop, world: any World, authority: Bytes?, allowsPrivate: Bool
    ) throws(TLSError) {
        var configuration = TLSClientConfiguration(authorityPEM: authority)
        self.webPush = try TLSContext(client: configuration)
        // APNs speaks nothing else.
        configuration.protocols = ["h2"]
        self.apns = try TLSContext(client: configuration)
        self.loop = loop
        self.world = world
        self.allowsPrivate = allowsPrivate
    }

    func connect(for push: PreparedPush) async throws -> any PushConnection {
        switch push.way {
        case .apns(_, _, let url): try await self.apns(url)
        case .webPush(let place, _, _, _, _):
            WebPushConnection(
                client: HTTPClient(
                    try await self.endpoint(place, self.webPush, isJudged: true), loop: self.loop,
                    idleCountMax: WebPushConnection.flightCountMax),
                world: self.world, patience: Self.patience)
        }
    }

    func apns(_ url: String) async throws -> APNsConnection {
        let place = try AddressGuard.endpoint(url, allowsPrivate: true)
        var limits = HTTP2ClientLimits()
        // Until it has accepted one push it gets one at a time (the lane's probe).
        limits.firstStreamCountMax = 1
        return APNsConnection(
            client: HTTP2Client(
                try await self.endpoint(place, self.apns, isJudged: false), loop: self.loop,
                limits: limits, random: { [world] in world.random() }),
            world: self.world, patience: Self.patience)
    }

    /// - Parameter isJudged: the place is what somebody else says, so its addresses are held
    ///   against ``AddressGuard``, and the connection goes to those very addresses (P-10).
    private func endpoint(
        _ place: AddressGuard.Endpoint, _ context: TLSContext, isJudged: Bool
    ) async throws -> HTTPEndpoint {
        var found = try await NameLookup.addresses(
            of: place.host, port: place.port, isForeign: isJudged)
        if isJudged, !self.allowsPrivate {
            found = found.filter { address in
                guard let bytes = address.numericBytes else { return false }
                return bytes.count == 4
                    ? AddressGuard.isGlobal(v4: bytes) : AddressGuard.isGlobal(v6: bytes)
            }
        }
        guard !found.isEmpty else { throw Failure.address }
        return HTTPEndpoint(
            found, host: place.authority, tls: HTTPEndpoint.TLS(context, name: place.host))
    }
}

/// One HTTP/2 connection to APNs, with many streams.
struct APNsConnection: PushConnection {
    let client: HTTP2Client
    let world: any World
    let patience: Duration

    @concurrent
    func send(_ push: PreparedPush, authorization: String) async -> PushAnswer {
        guard case .apns(let request, _, _) = push.way else {
            return .dropped("a push of another provider")
        }
        do throws(HTTP2ClientError) {
            return PushAnswer(try await self.send(request, authorization: authorization))
        } catch { return PushAnswer(error) }
    }

    func send(
        _ request: APNsRequest, authorization: String
    ) async throws(HTTP2ClientError) -> APNsVerdict {
        let answer = try await self.client.send(
            HTTPClientRequest(
                method: "POST", target: request.target,
                headers: request.headers(
                    ProviderToken(authorization: authorization)), body: .bytes(request.payload)),
            deadline: self.patience, bodySizeMax: .kibibytes(4))
        return APNsVerdict(
            answer.head, answer.body, at: self.world.wallMilliseconds / 1_000)
    }

    func rest() async {}

    func close() async { await self.client.close() }
}

/// Requests of HTTP/1.1 to one Web Push service.
struct WebPushConnection: PushConnection {
    /// A connection each, which is kept for the next one: a new one costs more than a push.
    static let flightCountMax = 32
    /// Connections to one service that are kept while nothing is sent.
    private static let restingCountMax = 4

    let client: HTTPClient
    let world: any World
    let patience: Duration

    @concurrent
    func send(_ push: PreparedPush, authorization: String) async -> PushAnswer {
        guard case .webPush(let place, let publicKey, let secret, _, let topic) = push.way else {
            return .dropped("a push of another provider")
        }
        let salt = (0..<2).flatMap { _ in
            withUnsafeBytes(of: self.world.random()) { Bytes($0) }
        }
        let body: Bytes
        do throws(WebPushMessage.Problem) {
            body = try WebPushMessage.encrypt(
                push.payload, publicKey: publicKey, secret: secret, ephemeral: SigningKey.make(),
                salt: salt)
        } catch { return .dropped("\(error)") }
        let headers: HeaderFields = [
            "Authorization": authorization, "Content-Encoding": "aes128gcm",
            "Content-Type": "application/octet-stream",
            "TTL": "\(push.isAlert ? PushDesk.alertLife : PushDesk.silentLife)",
            "Urgency": push.isAlert ? "high" : "normal", "Topic": topic,
        ]
        do throws(HTTPClientError) {
            let answer = try await self.client.send(
                HTTPClientRequest(
                    method: "POST", target: place.target, headers: headers, body: .bytes(body)),
                deadline: self.patience, bodySizeMax: .kibibytes(16))
            return PushAnswer(
                WebPushVerdict(answer.head, at: self.world.wallMilliseconds / 1_000))
        } catch {
            switch error {
            case .tooLarge: return .dropped("an answer that is too large")
            case .cancelled, .cutShort: return PushAnswer(.unanswered)
            case .unreachable, .notSecure, .deadlinePassed, .malformed, .bodyFailed:
                return PushAnswer(.unavailable(after: nil))
            }
        }
    }

    func rest() async { await self.client.rest(keeping: Self.restingCountMax) }

    func close() async { await self.client.close() }
}
