import StratusAdmin
import StratusGateway
import StratusHTTP
import StratusIdentity
import StratusModel
import StratusPush
import StratusRuntime

extension PushSender: PushControl {
    nonisolated var keys: PushKeys { self.desk.keys }

    nonisolated func standing() async -> PushStanding {
        let now = self.figures.now
        return PushStanding(
            activeCount: now.activeCount, restingCount: now.restingCount,
            lanes: await self.standings())
    }

    nonisolated func check(
        _ key: PushKeys.APNsKey, topic: String, of container: ContainerReference,
        in environment: Environment
    ) async -> PushCheck {
        do {
            let connection = try await self.connector.apns(self.desk.url(of: environment))
            let answer = await self.check(key, topic, container, over: connection)
            await connection.close()
            return answer
        } catch { return PushCheck(isGood: false, answer: "APNs cannot be found: \(error)") }
    }

    private nonisolated func check(
        _ key: PushKeys.APNsKey, _ topic: String, _ container: ContainerReference,
        over connection: APNsConnection
    ) async -> PushCheck {
        do {
            let token = try await self.providerToken(of: key, in: container)
            // Nobody has this token: 256 drawn bits.
            let device = (0..<4).flatMap { _ in
                withUnsafeBytes(of: self.world.random()) { Bytes($0) }
            }
            let request = try APNsRequest(
                deviceToken: device, topic: topic, kind: .background,
                identifier: self.world.drawIdentity().uuid,
                payload: Bytes(#"{"aps":{"content-available":1}}"#.utf8))
            let verdict = try await connection.send(request, authorization: token.header)
            switch verdict {
            case .unknownDevice:
                return PushCheck(
                    isGood: true, answer: "APNs believes the key and knows the topic")
            case .tokenRefused(let reason):
                return PushCheck(isGood: false, answer: "APNs does not believe the key: \(reason)")
            case .dropped(let reason):
                return PushCheck(isGood: false, answer: "APNs refuses the push: \(reason)")
            case .unavailable(let reason, _):
                return PushCheck(isGood: false, answer: "APNs is not available: \(reason)")
            case .accepted, .gone, .tooLarge, .deviceBusy:
                return PushCheck(isGood: false, answer: "an answer nobody expects: \(verdict)")
            }
        } catch let error as HTTP2ClientError {
            return PushCheck(isGood: false, answer: "APNs cannot be reached: \(error)")
        } catch { return PushCheck(isGood: false, answer: "\(error)") }
    }

    // MARK: One user's devices

    nonisolated func devices(
        of user: String, in container: ContainerReference
    ) async throws -> [PushDevice] {
        try await self.desk.devices(
            of: user, in: container, until: self.world.now + Self.patience)
    }

    nonisolated func explain(_ question: PushQuestion) async throws -> PushExplanation {
        try await self.desk.explain(question, until: self.world.now + Self.patience)
    }

    nonisolated func send(
        _ text: String, to name: String, of user: String, in container: ContainerReference
    ) async throws -> PushTrial {
        let push: PreparedPush
        do {
            push = try await self.desk.trial(
                text, to: name, of: user, in: container,
                until: self.world.now + Self.patience)
        } catch let refusal as PushDesk.TrialRefusal {
            switch refusal {
            case .unknown: return .unknown
            case .ambiguous: return .ambiguous
            case .troubled(let why): return .refused(why: why)
            }
        }
        func trial(_ isAccepted: Bool, _ answer: String) -> PushTrial {
            .sent(
                device: push.target.token, lane: push.lane.description, isAccepted: isAccepted,
                answer: answer)
        }
        // A connection of its own: what the lanes do is not disturbed.
        let answer: PushAnswer
        switch try await Self.once(
            authorize: { try await self.authorization(of: push) },
            connect: { try await self.connector.connect(for: push) },
            send: { await $0.send(push, authorization: $1) })
        {
        case .unfound(let error): return trial(false, "the provider cannot be found: \(error)")
        case .answered(let given): answer = given
        }
        switch answer.verdict {
        case .accepted: return trial(true, "accepted")
        case .gone: return trial(false, "the provider says that the device is gone")
        case .unknownDevice: return trial(false, "the provider does not know the device")
        case .busy: return trial(false, "the device takes nothing now, or refuses the key")
        case .dropped(let reason): return trial(false, "the provider refuses it: \(reason)")
        case nil: return trial(false, Self.text(answer.lane))
        }
    }

    enum Once {
        case unfound(any Error)
        case answered(PushAnswer)
    }

    /// One push over a connection that is made for it and closed behind it. The token comes first:
    /// nothing is left open where none can be made.
    static func once(
        authorize: () async throws -> String, connect: () async throws -> any PushConnection,
        send: (any PushConnection, _ authorization: String) async -> PushAnswer
    ) async throws -> Once {
        let authorization = try await authorize()
        let connection: any PushConnection
        do { connection = try await connect() } catch { return .unfound(error) }
        let answer = await send(connection, authorization)
        await connection.close()
        return .answered(answer)
    }

    private static func text(_ answer: PushLane.Answer) -> String {
        switch answer {
        case .tokenRefused(let reason): "the provider does not believe the key: \(reason)"
        case .unavailable: "the provider is not available"
        case .unanswered: "the connection ended before an answer"
        case .accepted, .final: "an answer nobody expects"
        }
    }

    private nonisolated func authorization(of push: PreparedPush) async throws -> String {
        switch push.way {
        case .apns(_, let key, _):
            return try await self.providerToken(of: key, in: push.target.database.container).header
        case .webPush(let place, _, _, let key, _):
            return VAPIDToken(
                origin: place.origin, contact: key.contact, signing: key.signing,
                at: self.world.wallMilliseconds / 1_000
            ).header
        }
    }

    /// The token that the whole cluster shows APNs.
    private nonisolated func providerToken(
        of key: PushKeys.APNsKey, in container: ContainerReference
    ) async throws -> ProviderToken {
        let now = self.world.wallMilliseconds / 1_000
        let token = try await self.keys.providerToken(
            of: key, in: container,
            isDue: { ProviderToken(text: "", issuedAt: $0).isDue(at: now) },
            make: { now in
                ProviderToken(team: key.team, key: key.key, signing: key.signing, at: now).text
            })
        return ProviderToken(text: token.text, issuedAt: token.issuedAt)
    }
}
