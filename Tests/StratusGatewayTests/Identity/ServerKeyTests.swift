import StratusCluster
import StratusDoubles
import StratusGateway
import StratusHTTP
import StratusIdentity
import StratusModel
import StratusRuntime
import StratusSealing
import Synchronization
import Testing

@testable import WireScenarios

/// Part 2 of the wire reference, §18, lines 11 to 18: server-to-server keys.
///
/// `signatures.json` was signed by PyPI's `cryptography`, after every row of §3.4.
@Suite struct ServerKeyTests {
    /// 2024-03-05T09:30:00Z
    static let date: Int64 = 1_709_631_000_000

    private struct Signed {
        var name: String
        var date: String
        var path: String
        var query: String
        var body: String
        var signature: String
    }

    private func vectors() throws -> (pem: String, requests: [Signed]) {
        let json = try Vectors.json("signatures.json")
        return (
            try #require(json["publicKey"].text),
            try json["requests"].elements.map { row in
                Signed(
                    name: try #require(row["name"].text), date: try #require(row["date"].text),
                    path: try #require(row["path"].text), query: try #require(row["query"].text),
                    body: try #require(row["body"].text),
                    signature: try #require(row["signature"].text))
            }
        )
    }

    private func send(
        _ town: Neighbourhood, _ signed: Signed, key: String, more: String = ""
    ) async throws -> WireAnswer {
        let query = signed.query + more
        return try await town.send(
            WireRequest(
                method: "POST", target: signed.path + (query.isEmpty ? "" : "?" + query),
                headers: [
                    ("X-Apple-CloudKit-Request-KeyID", key),
                    ("X-Apple-CloudKit-Request-ISO8601Date", signed.date),
                    ("X-Apple-CloudKit-Request-SignatureV1", signed.signature),
                ], body: Array(signed.body.utf8)))
    }

    private func town(at milliseconds: Int64 = Self.date) async throws -> (Neighbourhood, String) {
        let town = Neighbourhood(wallMilliseconds: milliseconds)
        _ = try await town.makeContainer()
        guard
            case .added(let id) = try await town.access.addKey(
                name: "import", pem: Array(try self.vectors().pem.utf8),
                in: Neighbourhood.container)
        else { throw Problem(text: "the key was not taken") }
        return (town, id)
    }

    @Test func `11: the reference's worked example verifies`() throws {
        let signature =
            "MEQCIF7sYAOGwDZdHtBAvc3e+sDdPUgi3JSYrajcCGMKnhvkAiBmcBzpLBgV5mkPuVQtlHilD1HBW+gQEQ5SHmYVERotyw=="
        let body =
            #"{"operations":[{"operationType":"create","record":{"recordType":"Shelf","fields":{"label":{"value":"Atlases"}}}}]}"#
        let path = "/database/1/iCloud.org.example.shelves/development/public/records/modify"
        let signed = try #require(
            SignedRequest(
                .init(
                    method: "POST", path: path,
                    headers: [
                        SignedRequest.keyField: "k",
                        SignedRequest.dateField: "2024-03-05T09:30:00Z",
                        SignedRequest.signatureField: signature,
                    ])))
        #expect(signed.milliseconds == Self.date)
        let key = try #require(ServerPublicKey(pem: Array(try self.vectors().pem.utf8)))
        let digest = signed.digest(
            .path, head: .init(method: "POST", path: path),
            bodyHash: Sums.sha256(Array(body.utf8)))
        #expect(key.verifies(try #require(Sums.base64(signature)), digest: digest))
        #expect(!key.verifies(try #require(Sums.base64(signature)), digest: Sums.sha256([])))
    }

    @Test func `12, 15: what every client signs is accepted, in the public database`() async throws
    {
        let (town, key) = try await self.town()
        for signed in try self.vectors().requests {
            let answer = try await self.send(town, signed, key: key)
            // 16: not the private database. 18: not the other environment.
            let isRefused = ["the private database", "production"].contains(signed.name)
            #expect(answer.status == (isRefused ? 401 : 200), "\(signed.name): \(answer)")
            if isRefused {
                expectFailure(
                    answer, 401, "AUTHENTICATION_FAILED", reason: "Authentication failed")
            }
        }
    }

    @Test func `X-06 no clock lets a signed command live longer than its signature`() async throws {
        let (town, key) = try await self.town()
        // The reference's worked example.
        let good = Signed(
            name: "", date: "2024-03-05T09:30:00Z",
            path: "/database/1/iCloud.org.example.shelves/development/public/records/modify",
            query: "",
            body:
                #"{"operations":[{"operationType":"create","record":{"recordType":"Shelf","fields":{"label":{"value":"Atlases"}}}}]}"#,
            signature:
                "MEQCIF7sYAOGwDZdHtBAvc3e+sDdPUgi3JSYrajcCGMKnhvkAiBmcBzpLBgV5mkPuVQtlHilD1HBW+gQEQ5SHmYVERotyw=="
        )
        try await town.install(
            "DEFINE SCHEMA\nRECORD TYPE Shelf (label STRING, GRANT CREATE, READ, WRITE TO \"_icloud\");",
            version: 2
        )
        town.router.lead.withLock { $0 = 3_600_000 }
        let answer = try await self.send(town, good, key: key)
        #expect(
            answer.status == 200 && answer.json["records"][0]["reason"].text == nil, "\(answer)")
        let last = town.router.last.withLock { $0 }
        #expect(last.deadline == Self.date + 600_000)
        #expect(!last.mayRunLater)
    }

    @Test func `13, X-06: every byte counts`() async throws {
        let (town, key) = try await self.town()
        let good = try #require(try self.vectors().requests.first)
        #expect(try await self.send(town, good, key: key).status == 200)
        var changed: [(String, Signed)] = []
        for position in good.body.utf8.indices {
            var bytes = Array(good.body.utf8)
            bytes[good.body.utf8.distance(from: good.body.startIndex, to: position)] ^= 1
            var other = good
            other.body = String(decoding: bytes, as: UTF8.self)
            changed.append(("body", other))
        }
        for (name, path) in [
            ("container", good.path.replacing("shelves", with: "shelver")),
            ("operation", good.path.replacing("query", with: "lookup")),
            ("environment", good.path.replacing("development", with: "production")),
        ] {
            var other = good
            other.path = path
            changed.append((name, other))
        }
        for date in ["2024-03-05T09:30:01Z", "2024-03-05T09:30:00+00:00", "", "yesterday"] {
            var other = good
            other.date = date
            changed.append(("date \(date)", other))
        }
        var other = good
        other.query += "&more=1"
        changed.append(("query", other))
        for signature in ["", "AAAA", "not base64!", String(good.signature.dropLast(4))] {
            other = good
            other.signature = signature
            changed.append(("signature", other))
        }
        for (name, request) in changed {
            let answer = try await self.send(town, request, key: key)
            #expect(answer.status == 401, "\(name): \(answer)")
        }
        for wrong in [String(repeating: "0", count: 64), "", "x", key + "0"] {
            #expect(try await self.send(town, good, key: wrong).status == 401)
        }
    }

    @Test func `14: nine minutes off is accepted, eleven are not`() async throws {
        for (minutes, status) in [(9, 200), (-9, 200), (11, 401), (-11, 401)] as [(Int64, Int)] {
            let (town, key) = try await self.town(at: Self.date + minutes * 60_000)
            let good = try #require(try self.vectors().requests.first)
            let answer = try await self.send(town, good, key: key)
            #expect(answer.status == status, "\(minutes) min: \(answer)")
        }
    }

    @Test func `17: a revoked key is refused; two live keys may share a name`() async throws {
        let (town, key) = try await self.town()
        let good = try #require(try self.vectors().requests.first)
        #expect(try await self.send(town, good, key: key).status == 200)
        #expect(try await town.access.revokeKey(id: key, in: Neighbourhood.container))
        town.world.advance(by: .seconds(1))
        #expect(try await self.send(town, good, key: key).status == 401)

        var pems = try Vectors.json("wycheproof-ecdsa-p256-sha256.json")["groups"].elements
            .compactMap { $0["key"].text }.compactMap { Hexadecimal.bytes($0) }
            .map { "-----BEGIN PUBLIC KEY-----\n\(Sums.base64($0))\n-----END PUBLIC KEY-----\n" }
        pems = Array(pems.prefix(3))
        var added: [ContainerAccess.AddedKey] = []
        for pem in pems {
            added.append(
                try await town.access.addKey(
                    name: "import", pem: Array(pem.utf8), in: Neighbourhood.container))
        }
        guard case .added(let first) = added[0], case .added = added[1] else {
            Issue.record("two keys of one name: \(added)")
            return
        }
        #expect(added[2] == .nameIsFull)
        #expect(try await town.access.revokeKey(id: first, in: Neighbourhood.container))
        guard
            case .added = try await town.access.addKey(
                name: "import", pem: Array(pems[2].utf8), in: Neighbourhood.container)
        else {
            Issue.record("a place that became free was not given")
            return
        }
        for text in [
            "", "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----",
            // P-384.
            "-----BEGIN PUBLIC KEY-----\nMHYwEAYHKoZIzj0CAQYFK4EEACIDYgAEqp0d1h3aTrVQ0Xr4RHEVKvf+Wf8tVSn1\n-----END PUBLIC KEY-----",
        ] {
            #expect(
                try await town.access.addKey(
                    name: "other", pem: Array(text.utf8), in: Neighbourhood.container) == .noKey)
        }
    }

    @Test func `X-07: a replayed signature is the same request again, and so is its twin`()
        async throws
    {
        let (town, key) = try await self.town()
        for signed in try self.vectors().requests.prefix(3) {
            let signature = try #require(Sums.base64(signed.signature))
            let name = try #require(ServerSignature.identity(of: signature))
            // The other signature that anybody can make of one: s becomes n - s.
            let twin = try #require(Sums.twin(of: signature))
            #expect(twin != signature)
            #expect(ServerSignature.identity(of: twin) == name)
            var other = signed
            other.signature = Sums.base64(twin)
            #expect(try await self.send(town, other, key: key).status == 200)
        }
        let names = try self.vectors().requests.map { try #require(Sums.base64($0.signature)) }
            .map { ServerSignature.identity(of: $0) }
        #expect(Set(names).count == names.count && !names.contains(nil))
    }

    @Test func `X-02: a signature beside a user's token is refused, beside an API token it counts`()
        async throws
    {
        let (town, key) = try await self.town()
        let rows = try self.vectors().requests
        let pathOnly = try #require(rows.first { $0.name == "the documented form" })
        let api = try await town.apiToken()
        let answer = try await self.send(town, pathOnly, key: key, more: "ckAPIToken=\(api)")
        #expect(answer.status == 200, "\(answer)")
        let user = try await town.signIn(try await town.account("a@example.org"))
        #expect(
            try await self.send(
                town, pathOnly, key: key, more: "ckAPIToken=\(api)&ckWebAuthToken=\(user)"
            ).status == 401)
        // A part of a signature is not nothing.
        let half = try await town.send(
            WireRequest(
                method: "POST", target: pathOnly.path + "?ckAPIToken=\(api)",
                headers: [("X-Apple-CloudKit-Request-KeyID", key)], body: Array(pathOnly.body.utf8))
        )
        #expect(half.status == 401)
    }

    @Test func `X-08: Wycheproof's cases agree`() throws {
        let json = try Vectors.json("wycheproof-ecdsa-p256-sha256.json")
        var counts = ["valid": 0, "invalid": 0]
        for group in json["groups"].elements {
            let der = try #require(group["key"].text.flatMap { Hexadecimal.bytes($0) })
            let key = try #require(ServerPublicKey(der: der))
            #expect(key.der == der)
            for test in group["tests"].elements {
                let message = try #require(test[1].text.flatMap { Hexadecimal.bytes($0) })
                let signature = try #require(test[2].text.flatMap { Hexadecimal.bytes($0) })
                let isValid = test[3].text == "valid"
                counts[isValid ? "valid" : "invalid", default: 0] += 1
                let verifies = key.verifies(signature, digest: Sums.sha256(message))
                #expect(verifies == isValid, "case \(test[0].integer ?? 0)")
                // A request needs both: a signature that verifies, and a name for it.
                if isValid { #expect(ServerSignature.identity(of: signature) != nil) }
            }
        }
        #expect(counts["valid", default: 0] > 100 && counts["invalid", default: 0] > 200)
    }

    typealias DateRow = (text: String, expected: Int64?)
    static let dates: [DateRow] = [
        ("1970-01-01T00:00:00Z", 0), ("2024-02-29T23:59:59Z", 1_709_251_199_000),
        ("2024-03-05T09:30:00.123Z", 1_709_631_000_000),
        ("2024-03-05 09:30:00+0000", 1_709_631_000_000),
        ("2024-03-05T09:30:00", nil), ("2024-03-05T10:30:00+01:00", 1_709_631_000_000),
        ("2024-03-05T04:00:00.5-0530", 1_709_631_000_000),
        ("2024-03-05T11:30:00+02", 1_709_631_000_000),
        ("2024-03-06T00:00:00+14:30", 1_709_631_000_000),
        ("2024-03-05T09:30:00+2:00", nil), ("2024-03-05T09:30:00+24:00", nil),
        ("2024-03-05T09:30:00+02:60", nil), ("2024-03-05T09:30:00+02:00Z", nil),
        ("2024-03-05T09:30:00+", nil), ("2024-03-05T09:30:00+0a:00", nil),
        ("2024-13-05T09:30:00Z", nil), ("2024-03-05T24:30:00Z", nil), ("", nil),
        ("9999-12-31T23:59:59Z", 253_402_300_799_000), ("0000-00-00T00:00:00Z", nil),
        ("2024-03-05T09:30:00Zjunk", nil), ("２０24-03-05T09:30:00Z", nil),
    ]

    @Test(arguments: dates) func `dates are read as clients write them`(row: DateRow) {
        #expect(SignedRequest.milliseconds(row.text) == row.expected, "\(row.text)")
    }
}
