import ChildProcesses
import Foundation
import StratusModel
import StratusSealing
import Testing

@testable import StratusPush

private let python = ProcessInfo.processInfo.environment["STRATUS_PUSH_PYTHON"]

/// Checks our messages to push providers with others' libraries. `Tests/Clients/push` installs them
/// and runs this.
@Suite(.enabled(if: python != nil, "needs Tests/Clients/push"))
struct PushPeerTests {
    @Test(arguments: [0, 1, 20, 3_993])
    func `P-12: tokens are verified and messages decrypted by others`(_ size: Int) async throws {
        let path = try #require(python)
        let signing = SigningKey.make()
        let browser = SigningKey.make()
        let now = Int64(Date().timeIntervalSince1970)
        let secret = Bytes(repeating: 7, count: 16)
        let plain = String(repeating: "a", count: size)
        let message = try WebPushMessage.encrypt(
            Bytes(plain.utf8), publicKey: browser.publicPoint, secret: secret,
            ephemeral: SigningKey.make(), salt: Bytes(repeating: 9, count: 16))
        let given: [String: String] = [
            "signingKey": String(decoding: signing.pem, as: UTF8.self),
            "browserKey": String(decoding: browser.pem, as: UTF8.self),
            "providerToken": ProviderToken(
                team: "DEF123GHIJ", key: "ABC123DEFG", signing: signing, at: now
            ).text,
            "vapidToken": VAPIDToken(
                origin: "https://push.example.net", contact: "mailto:a@example.org",
                signing: signing, at: now
            ).text,
            "secret": Base64URL.encode(secret), "message": Base64URL.encode(message),
        ]
        let script = URL(filePath: #filePath).deletingLastPathComponent()
            .deletingLastPathComponent().appending(path: "Clients/push.py").path
        let ended = try await ChildProcess.run(
            path, [script], input: .bytes(Array(try JSONEncoder().encode(given))))
        #expect(
            ended.output
                == #"{"alg": "ES256", "iss": "DEF123GHIJ", "kid": "ABC123DEFG", "#
                + "\"plain\": \"\(plain)\", \"sub\": \"mailto:a@example.org\"}\n",
            "\(ended.errors)")
    }
}
