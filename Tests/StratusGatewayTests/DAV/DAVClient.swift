import StratusContainers
import StratusDoubles
import StratusHTTP
import StratusIdentity
import StratusModel
import StratusRuntime
import Testing

@testable import StratusGateway
@testable import WireScenarios

/// A client of WebDAV in the same process, over what counts as TLS.
struct DAVClient {
    let town: Neighbourhood
    var password: String?
    var container = Neighbourhood.container
    var isSecure = true

    struct Answer: CustomStringConvertible {
        var status: Int
        var headers: HeaderFields
        var body: Bytes
        var text: String { String(decoding: self.body, as: UTF8.self) }
        var description: String { "\(self.status) \(self.text)" }
    }

    /// A person with one app password.
    static func make(
        _ kind: Session.AppPassword = .init(label: "laptop"), email: String = "ann@example.org"
    ) async throws -> (client: DAVClient, account: AccountID) {
        let town = Neighbourhood()
        _ = try await town.makeContainer()
        let account = try await town.account(email, password: "secret words")
        var client = DAVClient(town: town)
        client.password = try await client.makePassword(kind, account)
        return (client, account)
    }

    func makePassword(
        _ kind: Session.AppPassword, _ account: AccountID
    ) async throws -> String {
        guard
            case .made(let password, _) = try await self.town.service.directory.makeAppPassword(
                kind, of: account, in: self.container)
        else { throw Problem(text: "no password") }
        return password
    }

    func path(_ rest: String) -> String {
        "/dav/\(self.container.container)/\(self.container.environment.name)\(rest)"
    }

    func send(
        _ method: String, _ rest: String, _ headers: [(String, String)] = [], body: String = "",
        bytes: Bytes? = nil, stream: (any RequestBody)? = nil, raw: String? = nil
    ) async throws -> Answer {
        self.town.world.advance(by: .milliseconds(1))
        let target = raw ?? self.path(rest)
        let parts = target.split(separator: "?", maxSplits: 1).map(String.init)
        var fields = HeaderFields([HeaderFields.Line(name: "Host", value: "dav.example.org")])
        if let password {
            fields.set("Authorization", "Basic " + Base64.encode(Bytes("ann:\(password)".utf8)))
        }
        for (name, value) in headers { fields.set(name, value) }
        let response = await self.town.handler.respond(
            to: HTTPRequest(
                head: RequestHead(
                    method: method, path: parts[0], query: parts.count == 2 ? parts[1] : nil,
                    headers: fields), body: stream ?? CollectedBody(bytes ?? Bytes(body.utf8)),
                peer: "192.0.2.9:4711", identity: self.town.world.drawIdentity(),
                isSecure: self.isSecure))
        var body: Bytes = []
        switch response.body {
        case .empty: break
        case .bytes(let bytes): body = bytes
        case .stream(let stream, _): while let more = try await stream.next() { body += more }
        }
        return Answer(status: response.status, headers: response.headers, body: body)
    }

    func status(
        _ method: String, _ rest: String, _ headers: [(String, String)] = [], body: String = ""
    ) async throws -> Int {
        try await self.send(method, rest, headers, body: body).status
    }
}
