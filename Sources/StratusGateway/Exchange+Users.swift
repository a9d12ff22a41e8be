import StratusCluster
import StratusHTTP
import StratusIdentity
import StratusModel
import StratusRecords

/// `users/…`: who the caller is, and who of others wants to be found.
///
/// A person shows name and record name to others only by consent, and only where the app was used. An
/// address that nobody has, a person without consent and a stranger to the app get the same answer for the
/// same work.
extension Exchange {
    /// `users/current` and `users/caller`: the keys of both dictionaries, which every client reads.
    func currentUser() async throws -> Bytes {
        try await self.requireUser()
        var profile: Account?
        if let people = self.handler.people, let account = self.authentication.account {
            profile = try await people.accounts.account(account)
        }
        let showsName =
            self.authentication.receivesNames && profile?.isDiscoverable == true
        var writer = JSONWriter()
        writer.object {
            $0.member("userRecordName", self.caller)
            if showsName, let profile {
                $0.writeNames(of: profile)
                $0.key("lookupInfo")
                $0.object { $0.member("emailAddress", profile.email) }
            }
        }
        return writer.finish()
    }

    /// `users/discover`. Without a body it asks for everybody in an address book, which nobody has here.
    func discoverUsers(_ input: Input) async throws -> Bytes {
        try await self.requireUser()
        var writer = JSONWriter()
        guard self.head.method == "POST", input["lookupInfos"] != nil else {
            writer.object {
                $0.key("users")
                $0.array { _ in }
            }
            return writer.finish()
        }
        var entries: [(ask: Lookup, found: Found?)] = []
        for element in try input.requiredElements(
            "lookupInfos", limit: self.handler.limits.operationCountMax)
        {
            let ask = try Lookup(try Input(element, at: "lookupInfos"))
            entries.append((ask, try await self.find(ask)))
        }
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
    func lookUpUsers(_ input: Input) async throws -> Bytes {
        try await self.requireUser()
        let isByEmail = self.route.operation == .usersLookUpEmail
        var entries: [(ask: Lookup, found: Found?)] = []
        for element in try input.requiredElements(
            "users", limit: self.handler.limits.operationCountMax)
        {
            let item = try Input(element, at: "users")
            let ask: Lookup =
                isByEmail
                ? .email(try item.requiredString("emailAddress"))
                : .recordName(try item.requiredString("userRecordName"))
            entries.append((ask, try await self.find(ask)))
        }
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
    func lookUpContacts() async throws -> Bytes {
        try await self.requireUser()
        return Bytes(#"{"users":[]}"#.utf8)
    }

    /// `users/restrict` and `users/unrestrict`: closes a private database to its owner, and opens it.
    func restrictUser() async throws -> Bytes {
        try await self.requireUser()
        let isRestricted = self.route.operation == .usersRestrict
        if let people = self.handler.people, let account = self.authentication.account {
            try await people.access.changeUser(
                self.caller, account: account, in: self.route.container
            ) { $0.isRestricted = isRestricted }
            people.authenticator.forget()
        }
        return Bytes("{}".utf8)
    }

    /// `users/signOut`: ends this session; with `everywhere` all of the user's.
    func signOut(_ input: Input) async throws -> Bytes {
        try await self.requireUser()
        let everywhere = try input.flag("everywhere") ?? false
        if let people = self.handler.people, let account = self.authentication.account,
            let text = self.authentication.webAuthToken,
            let token = people.authenticator.session(text, in: self.route.container)
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

    /// Nil for everybody who did not ask to be found, whether or not they exist.
    private func find(_ ask: Lookup) async throws -> Found? {
        switch ask {
        case .phone: return nil
        case .recordName(let name):
            guard let people = self.handler.people else {
                return name == self.caller ? Found(recordName: name) : nil
            }
            // Everybody may know who they are themselves.
            let isOwn = name == self.caller || name == "__defaultOwner__"
            let user = try await people.access.user(
                isOwn ? self.caller : name, in: self.route.container)
            let id = user?.account ?? AccountID(RequestIdentity(high: 0, low: 0))
            let account = try await people.accounts.account(id)
            if isOwn {
                return Found(
                    recordName: self.caller,
                    account: account?.isDiscoverable == true ? self.shown(account) : nil)
            }
            guard let account, account.isDiscoverable, account.status == .active else { return nil }
            return Found(recordName: name, account: self.shown(account))
        case .email(let text):
            guard let people = self.handler.people, let email = EmailAddress(text) else {
                return nil
            }
            let id =
                try await people.accounts.account(of: email)
                ?? AccountID(RequestIdentity(high: 0, low: 0))
            let account = try await people.accounts.account(id)
            let name = people.accounts.store.keys.userRecordName(
                of: id, epoch: account?.epoch ?? 1, in: self.route.container)
            let user = try await people.access.user(name, in: self.route.container)
            guard let account, account.isDiscoverable, account.status == .active, user != nil else {
                return nil
            }
            return Found(recordName: name, account: self.shown(account))
        }
    }

    private func shown(_ account: Account?) -> Account? {
        self.authentication.receivesNames ? account : nil
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
