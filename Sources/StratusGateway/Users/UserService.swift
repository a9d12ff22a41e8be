import StratusCluster
import StratusHTTP
import StratusIdentity
import StratusModel
import StratusRecords

/// `users/…`: who the caller is, and who of others wants to be found.
///
/// A person shows name and record name to others only by consent, and only where the app was used.
/// An address that nobody has, a person without consent and a stranger to the app get the same
/// answer for the same work (``PeopleFinder``). Repeats within a request are looked up once, and
/// look-ups count per caller.
struct UserService: Sendable {
    let exchange: Exchange
    /// Nil where nobody has an account.
    let people: SignInService?
    /// Look-ups of people, by caller.
    let lookUps: RequestThrottle?

    static func operations(
        _ people: SignInService?, _ settings: GatewaySettings
    ) -> [GatewayOperation] {
        let lookUps = settings.userLookUpRateMax.map { RequestThrottle($0, in: .seconds(60)) }
        let service: @Sendable (Exchange) -> UserService = {
            UserService(exchange: $0, people: people, lookUps: lookUps)
        }
        return Self.operations(of: service)
    }

    private static func operations(
        of service: @escaping @Sendable (Exchange) -> UserService
    ) -> [GatewayOperation] {
        [
            // Some clients ask the private database who they are.
            GatewayOperation(
                "users/current", methods: [.get, .post], in: [.public, .private], needs: .user
            ) { exchange, _ in try await service(exchange).current() },
            GatewayOperation(
                "users/caller", methods: [.get, .post], in: [.public, .private], needs: .user
            ) { exchange, _ in try await service(exchange).current() },
            GatewayOperation("users/discover", methods: [.get, .post], in: .public, needs: .user) {
                try await service($0).discover($1)
            },
            GatewayOperation("users/lookup/email", in: .public, needs: .user) {
                try await service($0).lookUp($1, byEmail: true)
            },
            GatewayOperation("users/lookup/id", in: .public, needs: .user) {
                try await service($0).lookUp($1, byEmail: false)
            },
            GatewayOperation(
                "users/lookup/contacts", methods: [.get, .post], in: .public, needs: .user
            ) { exchange, _ in service(exchange).contacts() },
            GatewayOperation("users/restrict", in: .private, needs: .user) { exchange, _ in
                try await service(exchange).restrict(true)
            },
            GatewayOperation("users/unrestrict", in: .private, needs: .user) { exchange, _ in
                try await service(exchange).restrict(false)
            },
            // Ours: ends the session, or all of the user's.
            GatewayOperation("users/signOut", in: [.public, .private], needs: .user) {
                try await service($0).signOut($1)
            },
            // Ours: the passwords of programs that mount documents.
            GatewayOperation("users/appPasswords", in: .private, needs: .user) {
                try await service($0).appPasswords($1)
            },
        ]
    }

    /// `users/current` and `users/caller`: the keys of both dictionaries, which every client reads.
    func current() async throws -> Bytes {
        var profile: Account?
        if let people,
            let account = self.exchange.sender.account
        {
            profile = try await people.accounts.account(account)
        }
        let showsName =
            self.exchange.sender.receivesNames && profile?.isDiscoverable == true
        var writer = JSONWriter()
        writer.object {
            $0.member("userRecordName", self.exchange.sender.name)
            if showsName, let profile {
                $0.writeNames(of: profile)
                $0.key("lookupInfo")
                $0.object { $0.member("emailAddress", profile.email) }
            }
        }
        return writer.finish()
    }

    /// `users/discover`. Without a body it asks for everybody in an address book, which nobody has
    /// here.
    func discover(_ input: Input) async throws -> Bytes {
        var writer = JSONWriter()
        guard self.exchange.head.method == "POST", input["lookupInfos"] != nil else {
            writer.object {
                $0.key("users")
                $0.array { _ in }
            }
            return writer.finish()
        }
        var asks: [Lookup] = []
        for element in try input.requiredElements(
            "lookupInfos", limit: self.exchange.kernel.limits.operationCountMax)
        {
            asks.append(try Lookup(try Input(element, at: "lookupInfos")))
        }
        let entries = try await self.find(asks)
        writer.object {
            $0.key("users")
            $0.array { array in
                for (ask, found) in entries {
                    array.object {
                        $0.key("lookupInfo")
                        $0.object { ask.write(to: &$0) }
                        if let found {
                            $0.member("userRecordName", found.recordName)
                            if let account = found.account { $0.writeNames(of: account) }
                        }
                    }
                }
            }
        }
        return writer.finish()
    }

    /// `users/lookup/email` and `users/lookup/id`.
    func lookUp(_ input: Input, byEmail isByEmail: Bool) async throws -> Bytes {
        var asks: [Lookup] = []
        for element in try input.requiredElements(
            "users", limit: self.exchange.kernel.limits.operationCountMax)
        {
            let item = try Input(element, at: "users")
            asks.append(
                isByEmail
                    ? .email(try item.requiredString("emailAddress"))
                    : .recordName(try item.requiredString("userRecordName")))
        }
        let entries = try await self.find(asks)
        var writer = JSONWriter()
        writer.object {
            $0.key("users")
            $0.array { array in
                for (ask, found) in entries {
                    array.object {
                        guard let found else {
                            ask.write(to: &$0)
                            $0.writeMembers(of: ClientError(.notFound, "no such user"))
                            return
                        }
                        if case .email = ask { ask.write(to: &$0) }
                        $0.member("userRecordName", found.recordName)
                        if let account = found.account { $0.writeNames(of: account) }
                    }
                }
            }
        }
        return writer.finish()
    }

    /// Nobody has an address book here.
    func contacts() -> Bytes {
        Bytes(#"{"users":[]}"#.utf8)
    }

    /// `users/restrict` and `users/unrestrict`: closes a private database to its owner, and opens
    /// it.
    func restrict(_ isRestricted: Bool) async throws -> Bytes {
        if let people,
            let account = self.exchange.sender.account
        {
            try await people.access.changeUser(
                self.exchange.sender.name, account: account, in: self.exchange.route.container
            ) { $0.isRestricted = isRestricted }
            people.authenticator.forget()
        }
        return Bytes("{}".utf8)
    }

    /// `users/signOut`: ends this session; with `everywhere` all of the user's.
    func signOut(_ input: Input) async throws -> Bytes {
        let everywhere = try input.flag("everywhere") ?? false
        if let people,
            let account = self.exchange.sender.account,
            let text = self.exchange.sender.webAuthToken,
            let token = people.authenticator.session(text, in: self.exchange.route.container)
        {
            if everywhere {
                _ = try await people.accounts.closeAllSessions(of: account)
            } else {
                try await people.accounts.closeSession(token.session, of: account)
            }
            people.authenticator.forget()
        }
        return Bytes("{}".utf8)
    }

    // MARK: Finding

    private enum Lookup {
        case email(String)
        case phone(String)
        case recordName(String)

        init(_ input: Input) throws(InputRefusal) {
            if let email = try input.string("emailAddress"), !email.isEmpty {
                self = .email(email)
            } else if let name = try input.string("userRecordName"), !name.isEmpty {
                self = .recordName(name)
            } else {
                self = .phone(try input.requiredString("phoneNumber"))
            }
        }

        /// The one key that was used.
        func write(to writer: inout JSONWriter) {
            switch self {
            case .email(let text): writer.member("emailAddress", text)
            case .phone(let text): writer.member("phoneNumber", text)
            case .recordName(let text): writer.member("userRecordName", text)
            }
        }
    }

    private struct Found {
        var recordName: String
        /// Nil: no name is known, or none may be shown.
        var account: Account?
    }

    /// Whom a look-up is about: several spellings of one address are one subject.
    private enum Subject: Hashable {
        case email(String)
        case recordName(String)
    }

    /// Answers in the order of `asks`. Each subject is looked up once, in the order in which it is
    /// first named.
    private func find(_ asks: [Lookup]) async throws -> [(ask: Lookup, found: Found?)] {
        let subjects = asks.map { self.subject(of: $0) }
        let others = Set(subjects.compactMap { $0 }).count
        let begun = self.exchange.kernel.world.now
        if others > 0, let people {
            let container = self.exchange.route.container
            let caller =
                "\(self.exchange.sender.name) \(container.environment.name) \(container.container)"
            let now = people.accounts.store.world.now
            if let wait = self.lookUps?.wait(
                of: caller, at: now, count: others)
            {
                throw ClientError(
                    .throttled, "too many people looked up, retry later",
                    retryAfter: ClientError.seconds(wait))
            }
        }
        var known: [Subject: Found?] = [:]
        var entries: [(ask: Lookup, found: Found?)] = []
        for (ask, subject) in zip(asks, subjects) {
            guard let subject else {
                entries.append((ask, try await self.findOwn(ask)))
                continue
            }
            let found: Found?
            if let before = known[subject] {
                found = before
            } else {
                found = try await self.find(subject)
                known[subject] = .some(found)
            }
            entries.append((ask, found))
        }
        if others > 0 { await self.awaitEvenTime(since: begun, subjectCount: others) }
        return entries
    }

    /// The answer leaves at a time that the work does not decide. A row that is there takes some
    /// microseconds more to read than one that is not, and several hundred requests told the two
    /// apart.
    private func awaitEvenTime(since begun: MonotonicTime, subjectCount: Int) async {
        let step = Self.answerDelay + Self.answerDelayOfSubject * subjectCount
        var end = begun + step
        let now = self.exchange.kernel.world.now
        // The work took longer, for whatever reason: the next step, then.
        while end < now { end = end + step }
        try? await Task.sleep(for: end - now)
    }

    /// Many times what looking one person up takes.
    static let answerDelay = Duration.milliseconds(20)
    static let answerDelayOfSubject = Duration.milliseconds(5)

    /// Nil: nobody else is asked about.
    private func subject(of ask: Lookup) -> Subject? {
        switch ask {
        case .phone: nil
        case .email(let text): EmailAddress(text).map { .email($0.normalised) }
        case .recordName(let name): self.isOwn(name) ? nil : .recordName(name)
        }
    }

    private func isOwn(_ name: String) -> Bool {
        name == self.exchange.sender.name || name == "__defaultOwner__"
    }

    /// Everybody may know who they are themselves.
    private func findOwn(_ ask: Lookup) async throws -> Found? {
        guard case .recordName = ask else { return nil }
        var account: Account?
        if let people, let id = self.exchange.sender.account {
            account = try await people.accounts.account(id)
        }
        return Found(
            recordName: self.exchange.sender.name,
            account: account?.isDiscoverable == true ? self.shown(account) : nil)
    }

    /// Nil for everybody who did not ask to be found, whether or not they exist.
    private func find(_ subject: Subject) async throws -> Found? {
        guard let people else { return nil }
        let finder = PeopleFinder(people.accounts, people.access)
        let container = self.exchange.route.container
        let person: PeopleFinder.Person?
        switch subject {
        case .email(let text):
            guard let email = EmailAddress(text) else { return nil }
            person = try await finder.lookUp(email, in: container).person
        case .recordName(let name):
            person = try await finder.lookUp(recordName: name, in: container).person
        }
        return person.map { Found(recordName: $0.recordName, account: self.shown($0.account)) }
    }

    private func shown(_ account: Account?) -> Account? {
        self.exchange.sender.receivesNames ? account : nil
    }
}

extension JSONWriter {
    /// A person's name in both of the forms that clients read.
    fileprivate mutating func writeNames(of account: Account) {
        self.member("firstName", account.givenName)
        self.member("lastName", account.familyName)
        self.key("nameComponents")
        self.object {
            $0.member("givenName", account.givenName)
            $0.member("familyName", account.familyName)
        }
    }
}
