import StratusAdmin
import StratusCluster
import StratusContainers
import StratusGateway
import StratusHTTP
import StratusIdentity
import StratusModel
import StratusRuntime
import StratusSealing
import Synchronization
import Testing
import WireScenarios

/// The administrators' pages of keys, over partitions in memory.
@Suite struct EncryptionKeyPageTests {
    /// A node that is asked nothing.
    struct NoControl: NodeControl {
        func status() async -> NodeStatus { preconditionFailure("nobody asks") }
        func supportFiles() async -> [SupportFile] { [] }
        func configuration() -> [ConfiguredValue] { [] }
        func copies() async -> CopyStatus { CopyStatus() }
        func auditCopies() async -> Int { 0 }
        func copyDifferences(after last: CopyDifference?, limit: Int) async -> [CopyDifference] {
            []
        }
        func verifyCopies() async -> Int { 0 }
        var logLevel: LogLevel { .info }
        func setLogLevel(_ level: LogLevel) {}
        func schema(of container: ContainerReference) async throws(NodeControlFailure) -> Schema {
            Schema()
        }
        func install(_ schema: Schema, of container: ContainerReference)
            async throws(NodeControlFailure)
        {}
    }

    private func ask(_ town: Neighbourhood, _ path: String, _ body: String) async -> (Int, String) {
        let handler = AdminHandler(
            control: NoControl(), health: Health(), metrics: Metrics(),
            log: Log(level: .error, format: .json) { $0.count },
            settings: AdminHandler.Settings(isToken: { _ in true }),
            directory: town.service.directory)
        let headers = HeaderFields([HeaderFields.Line(name: "authorization", value: "Bearer x")])
        let answer = await handler.respond(
            to: HTTPRequest(
                head: RequestHead(method: "POST", path: path, query: nil, headers: headers),
                body: CollectedBody(Bytes(body.utf8)), peer: "127.0.0.1:9",
                identity: RequestIdentity(high: 1, low: 2)))
        guard case .bytes(let bytes) = answer.body else { return (answer.status, "") }
        return (answer.status, String(decoding: bytes, as: UTF8.self))
    }

    @Test func `what was wrapped anew is not called undone where the trail does not answer`()
        async throws
    {
        let town = Neighbourhood()
        _ = try await town.authenticator.registry.create(Neighbourhood.container)
        let before = ContainerKeys(
            store: town.authenticator.store,
            master: NamedMasters(
                InstallationMaster(secret: Bytes(repeating: 9, count: 32)),
                named: [1: SecretBytes(copying: Bytes(repeating: 1, count: 32))], sealing: 1))
        _ = try await before.key(of: Neighbourhood.container)
        town.router.away.withLock { $0 = [.account("audit")] }
        let (status, text) = await self.ask(town, "/v1/encryption-keys/rotation", "{}")
        #expect(status == 200, "\(text)")
        // The key is under another master key, so this node says that it cannot open it.
        #expect(text.contains("this node lacks master key 1"), "\(text)")
    }

    @Test func `changes that were made are not called undone where the trail does not answer`()
        async throws
    {
        let town = Neighbourhood()
        _ = try await town.authenticator.registry.create(Neighbourhood.container)
        try await town.account("bob@example.org")
        town.router.away.withLock { $0 = [.account("audit")] }
        let place =
            "/v1/containers/\(Neighbourhood.container.container)/environments/development"
        for (path, body, expected) in [
            ("/v1/users", #"{"email": "ann@example.org"}"#, 201),
            ("/v1/users/bob%40example.org/disable", "{}", 200),
            ("\(place)/tokens", #"{"name": "phone"}"#, 201),
            ("/v1/sealing-keys", "{}", 200),
            (
                "\(place)/members", #"{"role": "r", "member": false, "user": "bob@example.org"}"#,
                200
            ),
        ] {
            let (status, text) = await self.ask(town, path, body)
            #expect(!text.contains("nothing was changed"), "\(path): \(text)")
            #expect(status == expected, "\(path): \(text)")
        }
        let address = try #require(EmailAddress("ann@example.org"))
        let ann = try #require(try await town.accounts.account(of: address))
        #expect(try await town.access.tokens(in: Neighbourhood.container).count == 1)
        // What gives a person's rights away is not done without a note of it.
        for path in ["reset-link", "sign-in"] {
            let (status, text) = await self.ask(
                town, "/v1/users/ann%40example.org/\(path)",
                #"{"container": "\#(Neighbourhood.container.container)", "#
                    + #""environment": "development"}"#)
            #expect(status == 503 && text.contains("nothing was changed"), "\(path): \(text)")
        }
        #expect(try await town.accounts.sessions(of: ann).isEmpty)
    }
}
