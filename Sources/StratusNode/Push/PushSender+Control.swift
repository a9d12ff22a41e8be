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
            let now = self.world.wallMilliseconds / 1_000
            let token = try await self.keys.providerToken(
                of: key, in: container,
                isDue: { ProviderToken(text: "", issuedAt: $0).isDue(at: now) },
                make: { now in
                    ProviderToken(team: key.team, key: key.key, signing: key.signing, at: now).text
                })
            // Nobody has this token: 256 drawn bits.
            let device = (0..<4).flatMap { _ in
                withUnsafeBytes(of: self.world.random()) { Bytes($0) }
            }
            let request = try APNsRequest(
                deviceToken: device, topic: topic, kind: .background,
                identifier: self.world.drawIdentity().uuid,
                payload: Bytes(#"{"aps":{"content-available":1}}"#.utf8))
            let authorization = ProviderToken(text: token.text, issuedAt: token.issuedAt).header
            let verdict = try await connection.send(request, authorization: authorization)
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
}
