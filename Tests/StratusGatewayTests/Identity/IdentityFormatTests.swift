import StratusCoding
import StratusIdentity
import StratusModel
import StratusSealing
import Testing

/// Rows and tokens about people and credentials, as they were first written. Every line was
/// computed by a program in another language from the byte tables. None is ever edited: a new
/// format adds lines.
@Suite struct IdentityFormatTests {
    static let keys = IdentityKeys(master: Bytes(repeating: 7, count: 32))
    static let account = AccountID(bytes: Bytes(0..<16))
    static let container = ContainerReference(container: "iCloud.a", environment: .production)

    private func golden(_ text: String) throws -> Bytes { try #require(Hexadecimal.bytes(text)) }

    @Test func `the enumerations of rows are registered`() {
        func agree<Value: RawRepresentable<UInt8>>(_ type: Value.Type, _ family: NumberFamily)
            -> Bool
        {
            (UInt8.min...UInt8.max).allSatisfy {
                (Value(rawValue: $0) != nil) == (family.level(of: $0) != nil)
            }
        }
        #expect(agree(Account.Status.self, .accountStatus))
        #expect(agree(Account.Verification.self, .verification))
        #expect(agree(ContainerDescriptor.State.self, .containerState))
        #expect(agree(Device.Provider.Kind.self, .deviceKind))
        #expect(agree(ChunkCoding.self, .chunkCoding))
    }

    @Test func `an account, format 1`() throws {
        var account = Account(
            email: "a@b.c", givenName: "Mara", familyName: "Olsen", createdMilliseconds: 1_000)
        account.password = PasswordHash(
            memoryKibibytes: 19_456, passes: 2, salt: [1, 2], hash: [3, 4, 5])
        account.sessionsValidFromMilliseconds = 2_000
        account.isDiscoverable = true
        account.verification = .proof
        account.lastSignInMilliseconds = 4_000
        account.reset = Account.Reset(hash: [9], expiresAtMilliseconds: 3_000, isMailed: true)
        let bytes = try self.golden(
            "01056140622e63044d617261054f6c73656e01018098010202010203030405d00fa01f010102c03e010109"
                + "f02e01")
        #expect(account.encoded() == bytes)
        #expect(try Account(decoding: bytes) == account)

        var bare = Account(email: "a@b.c", createdMilliseconds: 1_000)
        bare.status = .disabled
        bare.epoch = 300
        let short = try self.golden("01056140622e6300000200d00f00ac0200000000")
        #expect(bare.encoded() == short)
        #expect(try Account(decoding: short) == bare)
    }

    @Test func `a session, a token, a key and a container's user, format 1`() throws {
        let session = Session(
            container: Self.container, openedMilliseconds: 1_000, stays: true, agent: "Mozilla")
        let sessionBytes = try self.golden("010869436c6f75642e6101d00f01074d6f7a696c6c61")
        #expect(session.encoded() == sessionBytes)
        #expect(try Session(decoding: sessionBytes) == session)

        let token = APIToken(
            name: "web", callbackURL: "https://a.b/c", origins: ["https://a.b", "https://c.d"],
            receivesNames: true, createdMilliseconds: 1_000)
        let tokenBytes = try self.golden(
            "01037765620d68747470733a2f2f612e622f63020b68747470733a2f2f612e620b68747470733a2f2f632e6401d00f"
        )
        #expect(token.encoded() == tokenBytes)
        #expect(try APIToken(decoding: tokenBytes) == token)

        let key = ServerKey(name: "import", publicKey: [1, 2, 3], createdMilliseconds: 1_000)
        let keyBytes = try self.golden("0106696d706f727403010203d00f")
        #expect(key.encoded() == keyBytes)
        #expect(try ServerKey(decoding: keyBytes) == key)

        let user = ContainerUser(
            account: Self.account, roles: ["A", "B"], isRestricted: true,
            firstSeenMilliseconds: 1_000)
        let userBytes = try self.golden("0110000102030405060708090a0b0c0d0e0f020141014201d00f")
        #expect(user.encoded() == userBytes)
        #expect(try ContainerUser(decoding: userBytes) == user)
        let keyUser = try self.golden("0100000000")
        #expect(ContainerUser(account: nil, firstSeenMilliseconds: 0).encoded() == keyUser)
    }

    @Test func `a poll token's containers, format 1`() throws {
        var device = Device(
            environment: .production,
            registrations: [
                Device.Registration(
                    container: Self.container, userRecordName: "_u", isServerKey: false,
                    session: .init(account: try #require(Self.account), session: [0xAA, 0xBB])),
                Device.Registration(
                    container: ContainerReference(
                        container: "iCloud.b", environment: .development),
                    userRecordName: "_k", isServerKey: true),
            ])
        device.setBadge(300, of: device.registrations[0])
        let bytes = try self.golden(
            "0101020869436c6f75642e6101025f750010000102030405060708090a0b0c0d0e0f02aabbac02"
                + "0869436c6f75642e6200025f6b01000000")
        #expect(device.encoded() == bytes)
        #expect(try Device(decoding: bytes) == device)
    }

    @Test func `a device of a push provider, format 2`() throws {
        let device = Device(
            environment: .development,
            provider: Device.Provider(
                .webPush, topic: "7", isGuessed: true,
                registeredAtMilliseconds: 1_700_000_000_000, address: [0xAA, 0xBB]),
            registrations: [
                Device.Registration(
                    container: ContainerReference(
                        container: "iCloud.b", environment: .production),
                    userRecordName: "_k", isServerKey: true)
            ])
        let bytes = try self.golden(
            "02000201013780a0abfef96202aabb010869436c6f75642e6201025f6b01000000")
        #expect(device.encoded() == bytes)
        #expect(try Device(decoding: bytes) == device)
    }

    @Test func `tokens and links, format 1, sealed`() throws {
        let account = try #require(Self.account)
        let token = WebAuthToken(
            account: account, session: Bytes(16..<32), stays: true,
            issuedAtMilliseconds: 1_700_000_000_000)
        let text = "s1_hU0EwtB9KeiCf964yWstcFnYwHRqNXDxPkDazz38vyE4X1qlzs1dyzuHVf3NSFDyPpSXHdir"
        #expect(token.text(in: Self.container, sealedWith: Self.keys.cipher) == text)
        #expect(
            WebAuthToken(text: text, in: Self.container, openedWith: Self.keys.cipher) == token)

        let link = SignInLink(
            container: ContainerReference(container: "iCloud.a", environment: .development),
            tokenHash: Bytes(repeating: 5, count: 32), origin: "https://a.b",
            nonce: Bytes(repeating: 6, count: 16), issuedMilliseconds: 1_700_000_000_000)
        let address =
            "-kjMOmMv4AdRjb50xWmx7h5CbOi5Du0rSDyUTO-TRyCQYZIX48GYKvMSJV_aZO-rF2orU5deF1SOEONq96g5nLm7syfkTgCjep6PSWFKCLuoNaPeMfsDDMUF7CKa"
        #expect(link.text(sealedWith: Self.keys.cipher) == address)
        #expect(SignInLink(text: address, openedWith: Self.keys.cipher) == link)
    }

    /// Only a holder of the key could make one; a time at the end of time would stop the process.
    @Test(arguments: [Int64.min, -1, 1 << 60, .max])
    func `a sealed time that cannot be reckoned with is refused`(milliseconds: Int64) throws {
        let account = try #require(Self.account)
        let cipher = Self.keys.cipher
        var token = WebAuthToken(
            account: account, session: Bytes(16..<32), stays: true, issuedAtMilliseconds: 0)
        token.issuedUnit = milliseconds
        let text = token.text(in: Self.container, sealedWith: cipher)
        let read = WebAuthToken(text: text, in: Self.container, openedWith: cipher)
        #expect(read?.isAlive(at: 1_700_000_000_000) == nil)
        let link = SignInLink(
            container: Self.container, tokenHash: Bytes(repeating: 5, count: 32), origin: nil,
            nonce: Bytes(repeating: 6, count: 16), issuedMilliseconds: milliseconds)
        let address = SignInLink(text: link.text(sealedWith: cipher), openedWith: cipher)
        #expect(address?.isAlive(at: 1_700_000_000_000) == nil)
    }

    /// Another name would be another person: these never change.
    @Test func `record names and hashes`() throws {
        let account = try #require(Self.account)
        #expect(
            Self.keys.userRecordName(of: account, epoch: 1, in: Self.container)
                == "_eb836bcae0a210a023028989b99a07c6")
        #expect(
            Self.keys.userRecordName(
                ofServerKey: Bytes(repeating: 8, count: 32), in: Self.container)
                == "_bfa8361da35d679ae40c726474ef83d8")
        #expect(
            Hexadecimal.text(Self.keys.hash(ofToken: "abc"))
                == "75d620c443c4428121f56351091834522d0efa6844089df3b5938dfa2c9eb0ee")
        let email = try #require(EmailAddress(" Mara@Example.org "))
        #expect(
            Hexadecimal.text(Self.keys.hash(of: email))
                == "256ad82253058091aafadd87d3bf174992dc5d3e40a5d0fb8aef245c2901f43c")
    }

    @Test(arguments: [1, 2, 3] as [UInt64])
    func `bytes that nobody wrote are refused and stop nothing`(seed: UInt64) throws {
        var generator = SeededGenerator(seed: seed)
        let account = try self.golden("01056140622e6300000200d00f00ac020000")
        for _ in 0..<5_000 {
            var bytes = account
            for _ in 0..<(1 + generator.next() % 3) {
                bytes[Int(generator.next() % UInt64(bytes.count))] = UInt8(
                    truncatingIfNeeded: generator.next())
            }
            bytes.removeLast(Int(generator.next() % UInt64(bytes.count)))
            _ = try? Account(decoding: bytes)
            _ = try? Session(decoding: bytes)
            _ = try? APIToken(decoding: bytes)
            _ = try? ServerKey(decoding: bytes)
            _ = try? ContainerUser(decoding: bytes)
            let text = Base64URL.encode(bytes)
            #expect(SignInLink(text: text, openedWith: Self.keys.cipher) == nil)
            #expect(
                WebAuthToken(
                    text: "s1_" + text, in: Self.container, openedWith: Self.keys.cipher) == nil)
            #expect(!ServerPublicKey.takes(bytes))
            _ = ServerSignature.identity(of: bytes)
        }
    }
}

extension ServerPublicKey {
    fileprivate static func takes(_ bytes: Bytes) -> Bool { ServerPublicKey(der: bytes) != nil }
}
