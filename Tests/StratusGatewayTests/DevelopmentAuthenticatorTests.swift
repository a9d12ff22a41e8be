import StratusHTTP
import StratusIdentity
import StratusModel
import Testing

@Suite struct DevelopmentAuthenticatorTests {
    static let key = String(repeating: "5c0f", count: 16)
    static let user = Principal(
        kind: .user,
        userRecordName: DevelopmentAuthenticator.userRecordName(
            for: DevelopmentAuthenticator.userToken, in: container))
    static let container = ContainerReference(container: "any", environment: .development)
    static let signIn = "http://127.0.0.1:8080/signin"

    typealias Row = (
        name: String, query: String?, scope: DatabaseScope, environment: Environment,
        expected: Result<Principal, AuthenticationRefusal>
    )
    static let refused = Result<Principal, AuthenticationRefusal>.failure(
        .failed(reason: "Authentication failed"))
    static let rows: [Row] = [
        (
            "nothing at all", nil, .public, .development,
            .failure(.failed(reason: "no auth method found"))
        ),
        ("a short token", "ckAPIToken=5c0f", .public, .development, refused),
        (
            "an upper-case token", "ckAPIToken=\(key.uppercased())", .public, .development, refused
        ),
        ("production", "ckAPIToken=\(key)&ckWebAuthToken=t", .private, .production, refused),
        (
            "the API token, public", "ckAPIToken=\(key)", .public, .development,
            .success(Principal(kind: .anonymous))
        ),
        (
            "the API token, private", "ckAPIToken=\(key)", .private, .development,
            .failure(.required(redirectURL: signIn))
        ),
        (
            "the API token, shared", "ckAPIToken=\(key)", .shared, .development,
            .failure(.required(redirectURL: signIn))
        ),
        ("both", "ckAPIToken=\(key)&ckWebAuthToken=84__x", .private, .development, .success(user)),
        (
            "both, public", "ckWebAuthToken=x&ckAPIToken=\(key)", .public, .development,
            .success(user)
        ),
        ("the older name", "ckAPIToken=\(key)&ckSession=x", .private, .development, .success(user)),
        (
            "signed out, older client", "ckAPIToken=\(key)&ckSession=null", .private, .development,
            .failure(.required(redirectURL: signIn))
        ),
        (
            "signed out, empty", "ckAPIToken=\(key)&ckWebAuthToken=", .public, .development,
            .success(Principal(kind: .anonymous))
        ),
    ]

    @Test(arguments: rows) func `who is asking follows from the tokens`(row: Row) async {
        let answer = await self.authenticate(
            DevelopmentAuthenticator(), row.query, row.scope, row.environment)
        #expect(answer == row.expected, "\(row.name)")
    }

    @Test func `the switch signs everybody in`() async {
        var authenticator = DevelopmentAuthenticator()
        authenticator.settings.signsInWithoutUserToken = true
        let answer = await self.authenticate(
            authenticator, "ckAPIToken=\(Self.key)", .private, .development)
        #expect(answer == .success(Self.user))
    }

    @Test func `a page to sign in at stands where the request went, or where the settings say`()
        async
    {
        var authenticator = DevelopmentAuthenticator()
        let request = PresentedRequest(
            head: RequestHead(method: "GET", path: "/", headers: ["Host": "ck.example.org:99"]),
            container: ContainerReference(container: "any", environment: .development),
            scope: .private)
        #expect(
            await authenticator.refusalWithoutUser(request)
                == .required(redirectURL: "http://ck.example.org:99/signin"))
        authenticator.settings.signInURL = "https://sign.in/"
        #expect(
            await authenticator.refusalWithoutUser(request)
                == .required(redirectURL: "https://sign.in/"))
    }

    @Test func `further users have their own names`() {
        let names = ["x", "stratus-user-ada", "stratus-user-tom"].map {
            DevelopmentAuthenticator.userRecordName(for: $0, in: Self.container)
        }
        #expect(Set(names).count == 3)
        #expect(names.allSatisfy { NameRules.isUserRecordName($0) })
        let other = ContainerReference(container: "other", environment: .development)
        let others = ["x", "stratus-user-ada", "stratus-user-tom"].map {
            DevelopmentAuthenticator.userRecordName(for: $0, in: other)
        }
        #expect(Set(names + others).count == 6, "another name in each container")
    }

    typealias TokenRow = (name: String, query: String, expected: String?)
    @Test(
        arguments: [
            ("raw", "ckWebAuthToken=a+/b=", "a+/b="),
            ("encoded once", "ckWebAuthToken=a%2B%2Fb%3D", "a+/b="),
            ("encoded twice", "ckWebAuthToken=a%252B%252Fb%253D", "a+/b="),
            ("plus became a space", "ckWebAuthToken=a%20%2Fb%3D", "a+/b="),
            ("the word undefined", "ckSession=undefined", nil),
            ("a broken escape", "ckWebAuthToken=%zz", nil),
        ] as [TokenRow])
    func `a web-auth token survives every client's encoding`(row: TokenRow) {
        #expect(TokenCredentials(query: row.query).webAuthToken == row.expected, "\(row.name)")
    }

    @Test func `booleans arrive in three spellings`() {
        let query = "a=true&b=True&c=1&d=0&e&f=false"
        #expect(["a", "b", "c"].allSatisfy { URLQuery.isTrue($0, ofClient: query) })
        #expect(!["d", "e", "f", "g"].contains { URLQuery.isTrue($0, ofClient: query) })
    }

    /// Goal: one pass over the bytes reads the same as splitting them. Method: random queries of
    /// awkward pieces.
    @Test(arguments: 0..<8 as Range<UInt64>)
    func `a query is read as its pairs one by one`(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        let pieces = [
            "a", "b", "=", "=", "&", "&", "1", "true", "%", "%61", "%3D", "%26", "%zz", "é", "%C3",
        ]
        for round in 0..<400 {
            let query = (0..<Int.random(in: 0..<12, using: &random))
                .map { _ in pieces.randomElement(using: &random)! }.joined()
            var expected: [(name: String, value: String)] = []
            for pair in query.split(separator: "&") {
                let parts = pair.split(
                    separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
                if let name = PercentCoding.decode(parts[0].utf8),
                    let value = PercentCoding.decode((parts.count > 1 ? parts[1] : "").utf8)
                {
                    expected.append((name, value))
                }
            }
            let parameters = URLQuery(ofClient: query)
            let place = "seed \(seed) round \(round): \(query)"
            for name in ["a", "b", "", "aa", "ab", "é", "1"] {
                let named = expected.filter { $0.name == name }
                #expect(parameters[name] == named.first?.value, "\(place)")
                #expect(parameters.count(of: name) == named.count, "\(place)")
                let isTrue = ["1", "true"].contains(named.first?.value)
                #expect(URLQuery.isTrue(name, ofClient: query) == isTrue, "\(place)")
            }
        }
    }

    private func authenticate(
        _ authenticator: DevelopmentAuthenticator, _ query: String?, _ scope: DatabaseScope,
        _ environment: Environment
    ) async -> Result<Principal, AuthenticationRefusal> {
        do throws(AuthenticationRefusal) {
            return .success(
                try await authenticator.authenticate(
                    PresentedRequest(
                        head: RequestHead(method: "POST", path: "/", query: query),
                        container: ContainerReference(container: "any", environment: environment),
                        scope: scope)
                ).principal)
        } catch {
            return .failure(error)
        }
    }
}
