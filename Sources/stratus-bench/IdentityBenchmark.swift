import Glibc
import StratusCluster
import StratusHTTP
import StratusIdentity
import StratusModel
import StratusRecords
import StratusRows
import StratusRuntime
import StratusSealing
import Synchronization

extension Benchmark {
    /// `stratus-bench identity [--repeat COUNT] [--timing TRIES]`
    static let identity = Benchmark(
        name: "identity",
        summary:
            "what judging credentials adds to a request; --repeat COUNT; --timing TRIES: whether "
            + "time tells who exists"
    ) { arguments in
        let count = Self.option("repeat", in: arguments).flatMap { Int($0) } ?? 20_000
        if let tries = Self.option("timing", in: arguments).flatMap({ Int($0) }) {
            print("\(tries) tries of each of two, in drawn order, CPU time of the process")
            return try await TimingBench().run(tries: tries)
        }
        print("\(count) times each, process CPU time, median of 5 (least, most)")
        try await IdentityBench().run(count: count)
    }
}

/// One container, one person, one key: the reference's worked example of a signed request.
private struct IdentityBench {
    private static let container = ContainerReference(
        container: "iCloud.org.example.shelves", environment: .development)
    private static let path =
        "/database/1/iCloud.org.example.shelves/development/public/records/modify"
    private static let body = Bytes(
        #"{"operations":[{"operationType":"create","record":{"recordType":"Shelf","fields":{"label":{"value":"Atlases"}}}}]}"#
            .utf8)
    private static let signature =
        "MEQCIF7sYAOGwDZdHtBAvc3e+sDdPUgi3JSYrajcCGMKnhvkAiBmcBzpLBgV5mkPuVQtlHilD1HBW+gQEQ5SHmYVERotyw=="
    private static let publicKey = """
        -----BEGIN PUBLIC KEY-----
        MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE+sGE627KaBiVqeOmKmOafGDi0uFF
        EN0sG+O4H9Jm/lpWAAOvLjMbCgQH1TmpfEzVkhRyOT9L2BtkLUe/RiY3Wg==
        -----END PUBLIC KEY-----
        """

    struct Wrong: Error { let text: String }

    func run(count: Int) async throws {
        let world = FixedWorld()
        let hasher = PasswordHasher()
        let store = IdentityStore(
            partitions: PartitionClient(OnePartition(), in: world),
            keys: IdentityKeys(master: Bytes(repeating: 7, count: 32)))
        let accounts = Accounts(store: store, hasher: hasher)
        let authenticator = CredentialAuthenticator(accounts: accounts)
        let access = ContainerAccess(store: store)
        let api = try await access.createToken(
            APIToken(name: "t", createdMilliseconds: 0), in: Self.container)
        guard let email = EmailAddress("a@example.org"),
            case .made(let id) = try await accounts.register(.init(email: email, password: nil)),
            case .added(let keyID) = try await access.addKey(
                name: "k", pem: Bytes(Self.publicKey.utf8), in: Self.container)
        else { throw Wrong(text: "the credentials were not made") }
        guard
            let user = try await accounts.openSession(
                of: id, provenBy: nil, in: Self.container, stays: false, agent: "bench"
            )?.text(in: Self.container, sealedWith: store.keys.cipher)
        else { throw Wrong(text: "there is no session") }

        func request(_ query: String?, _ headers: HeaderFields = [:], body: Bytes = [])
            -> PresentedRequest
        {
            PresentedRequest(
                head: RequestHead(
                    method: "POST", path: Self.path, query: query, headers: headers), body: body,
                container: Self.container, scope: .public)
        }
        let anonymous = request("ckAPIToken=\(api)")
        let signedIn = request("ckAPIToken=\(api)&ckWebAuthToken=\(user)")
        let signed = request(
            nil,
            [
                SignedRequest.keyField: keyID, SignedRequest.dateField: "2024-03-05T09:30:00Z",
                SignedRequest.signatureField: Self.signature,
            ], body: Self.body)
        for (name, request) in [
            ("API token", anonymous), ("API token and web-auth token", signedIn),
            ("server-to-server signature", signed),
        ] {
            try await Self.measure(name, count) {
                let found = try await authenticator.authenticate(request)
                return found.principal.userRecordName.utf8.count
            }
        }
        guard let key = ServerPublicKey(pem: Bytes(Self.publicKey.utf8)),
            let signature = Base64.decode(Self.signature),
            let parsed = SignedRequest(signed.head)
        else { throw Wrong(text: "the example does not read") }
        let digest = parsed.digest(
            .path, head: signed.head, bodyHash: SHA256.hash(Self.body))
        try await Self.measure("of it, OpenSSL's verification", count) {
            key.verifies(signature, digest: digest) ? 1 : 0
        }
        try await Self.measure("password, argon2id 19 MiB, 2 passes", max(5, count / 2_000)) {
            let salt = Bytes(repeating: 1, count: 16)
            return await hasher.hash(Secret("correct horse"), salt: salt)?.hash.count ?? 0
        }
    }

    private static func measure(
        _ name: String, _ count: Int, _ once: () async throws -> Int
    ) async throws {
        var times: [Double] = []
        for _ in 0..<5 {
            let start = Self.cpu
            var sum = 0
            for _ in 0..<count { sum &+= try await once() }
            if sum == .min { print("never") }
            times.append((Self.cpu - start) / Double(count))
        }
        times.sort()
        func micro(_ seconds: Double) -> String {
            "\(Double(Int(seconds * 1e8)) / 100)"
        }
        print("\(name): \(micro(times[2])) µs (\(micro(times[0])), \(micro(times[4])))")
    }

    private static var cpu: Double {
        var time = timespec()
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time)
        return Double(time.tv_sec) + Double(time.tv_nsec) * 1e-9
    }
}

/// The real clock, and the hour of the worked example on the wall.
private final class FixedWorld: World {
    private let source = Mutex(SeededGenerator(seed: 1))
    var now: MonotonicTime { RealClock.now }
    var wallMilliseconds: Int64 { 1_709_631_000_000 }
    func random() -> UInt64 { self.source.withLock { $0.next() } }
    var files: any Files { preconditionFailure("credentials need no files") }
}

private final class OnePartition: PartitionRouter {
    private let partition = Mutex((rows: Rows(), state: DataState(), index: LogIndex.zero))

    func submit(
        _ command: Command, to address: PartitionAddress, deadline: MonotonicTime,
        mayRunLater: Bool
    ) async throws(RouteError) -> Outcome {
        do {
            return try self.partition.withLock { partition in
                partition.index = partition.index.next
                return try partition.state.apply(
                    command,
                    at: EntryPosition(
                        index: partition.index, time: HybridTime(milliseconds: 1_709_631_000_000)),
                    over: partition.rows)
            }
        } catch { throw .refused("\(error)") }
    }

    func hasPartition(_ group: GroupID) -> Bool { group.raw == 1 }

    func read(_ query: Query, at address: PartitionAddress, deadline: MonotonicTime)
        async throws(RouteError) -> QueryAnswer
    {
        do {
            return try self.partition.withLock { partition in
                try partition.state.answer(query, over: partition.rows.view)
            }
        } catch { throw .refused("\(error)") }
    }
}

/// X-10, X-13: two kinds of tries that must not be told apart by how long they take.
private struct TimingBench {
    private static let container = ContainerReference(
        container: "iCloud.org.example.shelves", environment: .production)

    func run(tries: Int) async throws {
        let store = IdentityStore(
            partitions: PartitionClient(OnePartition(), in: FixedWorld()),
            keys: IdentityKeys(master: Bytes(repeating: 7, count: 32)))
        var limits = Accounts.Limits()
        limits.triesFromOnePlace = .max
        limits.triesFromEverywhere = .max
        limits.triesOfOnePlace = .max
        // The hash costs both the same and would hide the rest: as cheap as it can be made.
        let accounts = Accounts(
            store: store, hasher: PasswordHasher(cost: .init(memoryKibibytes: 64, passes: 1)),
            limits: limits)
        let authenticator = CredentialAuthenticator(accounts: accounts)
        let access = ContainerAccess(store: store)
        let api = try await access.createToken(
            APIToken(name: "t", createdMilliseconds: 0), in: Self.container)
        let known = (0..<64).map { "known-\($0)@example.org" }
        let unknown = (0..<64).map { "other-\($0)@example.org" }
        for address in known {
            guard let email = EmailAddress(address) else { continue }
            _ = try await accounts.register(.init(email: email, password: Secret("right horse")))
        }

        try await self.compare("signing in, unknown address beside wrong password", tries) {
            kind, number in
            let address = (kind == 0 ? known : unknown)[number % 64]
            guard let email = EmailAddress(address) else { return }
            _ = try await accounts.prove(email, Secret("wrong horse"), from: "192.0.2.7")
        }
        // The first digit wrong beside the last one wrong.
        let early = (api.first == "0" ? "1" : "0") + String(api.dropFirst())
        let late = String(api.dropLast()) + (api.last == "0" ? "1" : "0")
        try await self.compare("an API token, wrong at its start beside its end", tries) {
            kind, _ in
            _ = try? await authenticator.authenticate(
                PresentedRequest(
                    head: RequestHead(
                        method: "POST", path: "/", query: "ckAPIToken=\(kind == 0 ? early : late)",
                        headers: [:]),
                    container: Self.container, scope: .public))
        }
        let digest = SHA256.hash(Bytes("digest".utf8))
        var first = digest
        first[0] ^= 1
        var last = digest
        last[31] ^= 1
        try await self.compare("comparing digests, equal up to nothing beside all but one", tries) {
            kind, _ in
            for _ in 0..<64 { if SHA256.areEqual(digest, kind == 0 ? first : last) { print("!") } }
        }
    }

    /// Welch's t over the tries, without the slowest tenth of all: interruptions of the machine hit
    /// both.
    private func compare(
        _ name: String, _ tries: Int, _ once: (Int, Int) async throws -> Void
    ) async throws {
        var generator = SeededGenerator(seed: 1)
        var times: [(kind: Int, nanoseconds: Double)] = []
        times.reserveCapacity(2 * tries)
        for number in 0..<(2 * tries) {
            let kind = Int(generator.next() & 1)
            let start = Self.cpu
            try await once(kind, number)
            times.append((kind, (Self.cpu - start) * 1e9))
        }
        let bound = times.map(\.nanoseconds).sorted()[times.count * 9 / 10]
        let kept = times.filter { $0.nanoseconds <= bound }
        let (one, other) = (Self.moments(kept, 0), Self.moments(kept, 1))
        let error = (one.variance / one.count + other.variance / other.count).squareRoot()
        let t = (one.mean - other.mean) / error
        func text(_ value: Double) -> String { "\(Double(Int(value * 10)) / 10)" }
        print(
            "\(name): \(text(one.mean)) ns and \(text(other.mean)) ns, difference "
                + "\(text(one.mean - other.mean)) ns, t = \(text(t))")
    }

    private static func moments(_ times: [(kind: Int, nanoseconds: Double)], _ kind: Int) -> (
        count: Double, mean: Double, variance: Double
    ) {
        let own = times.filter { $0.kind == kind }.map(\.nanoseconds)
        let count = Double(max(2, own.count))
        let mean = own.reduce(0, +) / count
        let variance = own.reduce(0) { $0 + ($1 - mean) * ($1 - mean) } / (count - 1)
        return (count, mean, variance)
    }

    private static var cpu: Double {
        var time = timespec()
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time)
        return Double(time.tv_sec) + Double(time.tv_nsec) * 1e-9
    }
}
