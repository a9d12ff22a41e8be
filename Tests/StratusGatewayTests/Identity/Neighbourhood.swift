import Foundation
import StratusCluster
import StratusContainers
import StratusDoubles
import StratusGateway
import StratusHTTP
import StratusIdentity
import StratusModel
import StratusQuery
import StratusRecords
import StratusRuntime
import StratusSealing
import Synchronization
import Testing
import WireScenarios

/// A node's gateway with real credentials, without a socket: partitions in memory, a clock that the
/// test sets, passwords hashed cheaply.
final class Neighbourhood: Wire {
    static let container = ContainerReference(
        container: "iCloud.org.example.shelves", environment: .development)
    static let production = ContainerReference(
        container: "iCloud.org.example.shelves", environment: .production)

    let world: SimulatedWorld
    let router: MemoryRouter
    let authenticator: CredentialAuthenticator
    let service: SignInService
    let handler: Gateway
    /// The connections that requests come over in turn; empty: each comes by itself.
    let connections: [KnownCallers]
    private let sent = Atomic(0)
    private let known = Atomic(0)
    /// How many requests needed no full proof.
    var knownCount: Int { self.known.load(ordering: .relaxed) }
    var accounts: Accounts { self.service.accounts }
    var access: ContainerAccess { self.service.access }

    init(
        seed: UInt64 = 11, isOpen: Bool = false, signUpIsOpen: Bool = true,
        wallMilliseconds: Int64 = 1_709_631_000_000, limits: Accounts.Limits = Accounts.Limits(),
        requests: Limits = Limits(),
        development: DevelopmentAuthenticator = DevelopmentAuthenticator(),
        signInBase: String? = nil, hasher: PasswordHasher? = nil, email: EmailDesk? = nil,
        connections: Int = 0,
        rates: GatewaySettings = GatewaySettings(), bugs: PlantedBugs = PlantedBugs()
    ) {
        self.connections = (0..<connections).map { _ in KnownCallers(bugs: bugs) }
        self.world = SimulatedWorld(seed: seed, wallMilliseconds: wallMilliseconds)
        self.router = MemoryRouter(world: self.world)
        let master = Bytes(repeating: 9, count: 32)
        self.authenticator = CredentialAuthenticator(
            accounts: Accounts(
                store: IdentityStore(
                    partitions: PartitionClient(self.router, in: self.world),
                    keys: IdentityKeys(master: master)),
                hasher: hasher
                    ?? PasswordHasher(cost: .init(memoryKibibytes: 64, passes: 1)),
                limits: limits),
            development: isOpen ? development : nil, signInBase: signInBase)
        var settings = SignInService.Settings()
        settings.signUpIsOpen = signUpIsOpen
        let keys = InProcess.databaseKeys(self.router, self.world)
        self.service = SignInService(
            authenticator: self.authenticator, settings: settings, keys: keys, email: email)
        self.handler = Gateway(
            GatewayKernel(
                partitions: PartitionClient(self.router, in: self.world, limits: requests),
                authenticator: self.authenticator, keys: keys, tokenKey: master, settings: rates,
                limits: requests),
            GatewayNeeds(
                people: self.service,
                push: PushRegistry(
                    keys: InProcess.pushKeys(self.router, self.world), allowsPrivate: false)))
    }

    func send(_ request: WireRequest) async throws -> WireAnswer {
        self.world.advance(by: .milliseconds(1))
        let parts = request.target.split(
            separator: "?", maxSplits: 1, omittingEmptySubsequences: false
        ).map(String.init)
        let head = RequestHead(
            method: request.method, path: parts[0], query: parts.count == 2 ? parts[1] : nil,
            headers: HeaderFields(
                [HeaderFields.Line(name: "Host", value: "ck.example.org")]
                    + request.headers.map { HeaderFields.Line(name: $0.name, value: $0.value) }))
        let identity = self.world.drawIdentity()
        let place = self.sent.wrappingAdd(1, ordering: .relaxed).oldValue
        let callers =
            self.connections.isEmpty ? nil : self.connections[place % self.connections.count]
        let plan = self.plan(head, request.body, identity, callers)
        let response = await plan.respond(
            HTTPRequest(
                head: head, body: CollectedBody(request.body), peer: "192.0.2.7",
                identity: identity, callers: callers))
        var body: Bytes = []
        if case .bytes(let bytes) = response.body { body = bytes }
        return WireAnswer(
            status: response.status,
            headers: response.allHeaders(identity).lines.map { ($0.name, $0.value) }, body: body)
    }

    /// Whoever answers, as a connection finds out.
    private func plan(
        _ head: RequestHead, _ body: Bytes, _ identity: RequestIdentity, _ callers: KnownCallers?
    ) -> RequestPlan {
        var bytes: Bytes = []
        if let callers, let view = RequestView(laying: head, body: body, into: &bytes) {
            var answer = AnswerBuffer()
            let call = SurfaceCall(
                identity: identity, peer: "192.0.2.7", isSecure: false, version: .http1,
                callers: callers)
            if case .task(let plan) = self.handler.answer(view, bytes.span, call, into: &answer) {
                self.known.add(1, ordering: .relaxed)
                return plan
            }
        }
        return self.handler.plan(for: head)
    }

    func makeContainer() async throws -> String {
        try await self.install(Library.schema)
        return Self.container.container
    }

    func install(
        _ text: String, in container: ContainerReference = container, version: UInt64 = 1
    ) async throws {
        var schema = try SchemaText.read(text)
        schema.version = version
        let command = RecordCommand.schema(.install(schema)).enveloped(
            container: container, identity: self.world.drawIdentity(),
            deadlineMilliseconds: .max, schemaVersion: 0, principal: Principal(kind: .system))
        _ = try await self.router.submit(
            command, to: .container(container), deadline: self.world.now)
    }

    // MARK: Credentials

    func apiToken(
        in container: ContainerReference = container, callback: String? = nil,
        origins: [String] = [], receivesNames: Bool = true
    ) async throws -> String {
        defer { self.authenticator.forget() }
        return try await self.access.createToken(
            APIToken(
                name: "t", callbackURL: callback, origins: origins, receivesNames: receivesNames,
                createdMilliseconds: 0), in: container)
    }

    @discardableResult
    func account(
        _ email: String, password: String? = nil, discoverable: Bool = false
    ) async throws -> AccountID {
        var registration = Accounts.Registration(
            email: try #require(EmailAddress(email)), password: password.map { Secret($0) })
        registration.givenName = "Given-\(email.prefix(1))"
        registration.familyName = "Family"
        registration.isDiscoverable = discoverable
        registration.verification = .administrator
        guard case .made(let id) = try await self.accounts.register(registration) else {
            throw Problem(text: "\(email) is taken")
        }
        return id
    }

    func signIn(_ id: AccountID, in container: ContainerReference = container, stays: Bool = false)
        async throws -> String
    {
        try #require(
            try await self.service.directory.open(id, in: container, stays: stays, agent: "test"))
    }

    func recordName(_ id: AccountID, in container: ContainerReference = container) -> String {
        self.accounts.store.keys.userRecordName(of: id, epoch: 1, in: container)
    }

    // MARK: Requests

    func path(_ operation: String, in container: ContainerReference = container) -> String {
        "/database/1/\(container.container)/\(container.environment.name)/\(operation)"
    }

    func post(
        _ operation: String, _ body: JSON = [:], api: String? = nil, user: String? = nil,
        in container: ContainerReference = container,
        headers: [(name: String, value: String)] = []
    ) async throws -> WireAnswer {
        var parameters: [String] = []
        if let api { parameters.append("ckAPIToken=\(api)") }
        if let user { parameters.append("ckWebAuthToken=\(user)") }
        return try await self.send(
            WireRequest(
                method: "POST",
                target: self.path(operation, in: container)
                    + (parameters.isEmpty ? "" : "?" + parameters.joined(separator: "&")),
                headers: headers, body: Array(body.description.utf8)))
    }

    func form(_ path: String, _ fields: [(String, String)], origin: String? = nil) async throws
        -> WireAnswer
    {
        try await self.send(
            WireRequest(
                method: "POST", target: path,
                headers: [("Content-Type", "application/x-www-form-urlencoded")]
                    + (origin.map { [("Origin", $0)] } ?? []),
                body: Array(
                    fields.map { "\($0)=\(PercentCoding.encode($1))" }.joined(separator: "&").utf8))
        )
    }

    /// The value of `t=` in a 421's `redirectURL`.
    static func link(_ answer: WireAnswer) throws -> String {
        let url = try #require(answer.json["redirectURL"].text)
        let mark = try #require(url.firstRange(of: "?t="))
        return String(url[mark.upperBound...])
    }

    /// The token that a page hands to its opener.
    static func token(_ page: WireAnswer) -> String? {
        let text = String(decoding: page.body, as: UTF8.self)
        guard let start = text.firstRange(of: "var token = \"") else { return nil }
        return String(text[start.upperBound...].prefix { $0 != "\"" })
            .replacing("\\u005f", with: "_")
    }
}

struct Problem: Error { let text: String }

extension WireAnswer {
    var text: String { String(decoding: self.body, as: UTF8.self) }
}

/// Files beside these tests that others' programs made.
enum Vectors {
    static func json(_ name: String, file: String = #filePath) throws -> JSON {
        let url = URL(filePath: file).deletingLastPathComponent().deletingLastPathComponent()
            .appending(path: "Vectors/\(name)")
        return try JSON(parsing: Array(Data(contentsOf: url)))
    }
}
