import StratusAssets
import StratusContainers
import StratusDoubles
import StratusHTTP
import StratusIdentity
import StratusModel
import StratusRecords
import StratusRuntime
import Synchronization
import Testing

@testable import StratusGateway
@testable import WireScenarios

/// What a `PUT` may use of memory, disks and quota, and what it is judged by at its end.
@Suite struct DAVRoomTests {
    typealias Town = AssetHandlerTests.Town
    typealias Unread = AssetHandlerTests.Unread

    /// Sends a part, then something else happens, then the rest.
    private final class Halting: RequestBody {
        private let parts: Mutex<[Bytes]>
        private let between: @Sendable () async -> Void

        init(
            _ bytes: Bytes, after count: Int = 600_000,
            _ between: @escaping @Sendable () async -> Void
        ) {
            self.parts = Mutex([
                Bytes(bytes.prefix(count)), Bytes(bytes.dropFirst(count)),
            ])
            self.between = between
        }

        func next() async throws(RequestBodyError) -> Bytes? {
            let (part, isSecond) = self.parts.withLock { parts in
                parts.isEmpty ? (nil, false) : (parts.removeFirst(), parts.isEmpty)
            }
            if isSecond { await self.between() }
            return part?.isEmpty == true ? nil : part
        }
    }

    private static func bytes(_ size: Int, _ seed: Int = 1) -> Bytes {
        Bytes((0..<size).map { UInt8(truncatingIfNeeded: $0 &* (seed + 2) >> 3 ^ seed) })
    }

    private static func stored(_ town: Town) -> Set<CopyName> {
        town.copies.all.withLock { Set($0.keys) }
    }

    private static func put(
        _ town: Town, _ path: String, _ size: Int, _ body: any RequestBody,
        _ headers: [(String, String)] = [], saysLength: Bool = true
    ) async throws -> DAVFileTests.Answer {
        try await DAVFileTests.send(
            town, "PUT", path,
            headers + (saysLength ? [("Content-Length", String(size))] : []), body)
    }

    @Test func `what the quota has no room for is not read, and not left lying`() async throws {
        let town = Town { _, limits in limits.privateDatabaseSizeMax = ByteCount(2_000_000) }
        #expect(try await DAVFileTests.put(town, "/Documents/a", Self.bytes(900_000)).status == 201)
        let before = Self.stored(town)
        let refused = try await Self.put(town, "/Documents/b", 1_200_000, Unread())
        #expect(refused.status == 507 && refused.text.contains("quota-not-exceeded"))
        // Without a length it ends where the room ends.
        let endless = try await Self.put(
            town, "/Documents/b", 0, AssetHandlerTests.Pieces(1_200_000), saysLength: false)
        #expect(endless.status == 507, "\(endless.text)")
        #expect(town.assets.kit.claims.size(of: Self.database) == 0)
        // What fits at the beginning and not at the end is stored, refused, and gone.
        let late = try await Self.put(
            town, "/Documents/b", 900_000,
            Halting(Self.bytes(900_000, 2)) {
                let small = try? await DAVFileTests.put(
                    town, "/Documents/small", Self.bytes(400_000))
                #expect(small?.status == 201)
            })
        #expect(late.status == 507 && late.text.contains("quota-not-exceeded"), "\(late.text)")
        #expect(Self.stored(town) == before)
        // An equal file needs no bytes of its own.
        #expect(try await DAVFileTests.put(town, "/Documents/c", Self.bytes(600_000)).status == 201)
        let with = Self.stored(town)
        #expect(try await DAVFileTests.put(town, "/Documents/c", Self.bytes(600_000)).status == 204)
        #expect(Self.stored(town) == with)
        #expect(town.buffers.size == 0)
    }

    private static let database = DatabaseID(
        container: Town.container, scope: .private,
        owner: DevelopmentAuthenticator.userRecordName(
            for: DevelopmentAuthenticator.userToken, in: Town.container))

    @Test func `files that are on their way count in the quota`() async throws {
        let town = Town { _, limits in limits.privateDatabaseSizeMax = ByteCount(2_000_000) }
        let first = try await Self.put(
            town, "/Documents/a", 1_000_000,
            Halting(Self.bytes(1_000_000)) {
                let second = try? await Self.put(town, "/Documents/b", 1_100_000, Unread())
                #expect(second?.status == 507)
            })
        #expect(first.status == 201, "\(first.text)")
    }

    @Test func `a file takes the place of one of its size although the quota is used up`()
        async throws
    {
        let town = Town { _, limits in limits.privateDatabaseSizeMax = ByteCount(950_000) }
        #expect(try await DAVFileTests.put(town, "/Documents/a", Self.bytes(900_000)).status == 201)
        let again = try await DAVFileTests.put(town, "/Documents/a", Self.bytes(900_000, 2))
        #expect(again.status == 204, "\(again.text)")
        #expect(
            try await DAVFileTests.send(town, "GET", "/Documents/a").body == Self.bytes(900_000, 2))
        // The first one counts until its grace is over: not for ever so.
        #expect(
            try await DAVFileTests.put(town, "/Documents/a", Self.bytes(900_000, 3)).status == 507)
    }

    @Test func `bytes that the caller may not name are gone at once`() async throws {
        let town = Town()
        let files = try #require(DocumentFiles(town.assets.kit, town.gateway.kernel))
        await #expect(throws: DAVFailure.self) {
            _ = try await files.store(
                CollectedBody(Self.bytes(900_000)), of: 900_000, in: Self.database,
                by: Self.database.owner, freeing: 0
            ) { throw DAVFailure(401, "withdrawn") }
        }
        #expect(Self.stored(town).isEmpty)
    }

    @Test func `a password that is withdrawn stops what is under way with it`() async throws {
        let (dav, ann) = try await DAVClient.make()
        let accounts = dav.town.service.directory.accounts
        func slow(_ between: @escaping @Sendable () async -> Void) async throws -> Int {
            try await dav.send(
                "PUT", "/Documents/a",
                stream: Halting(Self.bytes(2_000), after: 1_000) {
                    await between()
                    dav.town.world.advance(by: .seconds(3))
                }
            ).status
        }
        #expect(try await slow {} == 201)
        let status = try await slow {
            for password in (try? await accounts.appPasswords(of: ann)) ?? [] {
                _ = try? await accounts.revokeAppPassword(
                    password.id, of: ann, in: dav.container)
            }
        }
        #expect(status == 401)
    }

    @Test func `a PUT that streams holds no memory of requests`() async throws {
        let town = Town()
        let answer = try await Self.put(
            town, "/Documents/a", 0,
            Halting(Self.bytes(900_000)) { #expect(town.gateway.kernel.bodies.size == 0) },
            saysLength: false)
        #expect(answer.status == 201)
    }

    private static let lockInfo = Bytes(
        ("<D:lockinfo xmlns:D=\"DAV:\"><D:lockscope><D:exclusive/></D:lockscope>"
            + "<D:locktype><D:write/></D:locktype></D:lockinfo>").utf8)

    @Test func `names and locks of folders are judged before the body`() async throws {
        let town = Town()
        let local = try await Self.put(town, "/Documents/x.nosync", 900_000, Unread())
        #expect(local.status == 403)
        #expect(try await DAVFileTests.send(town, "MKCOL", "/Documents/in").status == 201)
        let lock = try await DAVFileTests.send(
            town, "LOCK", "/Documents/in", [("Depth", "0")], CollectedBody(Self.lockInfo))
        #expect(lock.status == 200)
        let refused = try await Self.put(town, "/Documents/in/new", 900_000, Unread())
        #expect(refused.status == 423)
    }

    @Test func `a lock that ends while a body comes is no reason to refuse it`() async throws {
        let town = Town()
        #expect(try await DAVFileTests.put(town, "/Documents/a", [1]).status == 201)
        let lock = try await DAVFileTests.send(
            town, "LOCK", "/Documents/a", [("Timeout", "Second-60")], CollectedBody(Self.lockInfo))
        let token = try #require(lock.headers["Lock-Token"])
        func slow(_ between: @escaping @Sendable () async -> Void) async throws -> Int {
            try await Self.put(
                town, "/Documents/a", 900_000,
                Halting(Self.bytes(900_000)) {
                    town.world.advance(by: .seconds(120))
                    await between()
                }, [("If", "(\(token))")]
            ).status
        }
        let other = try await slow {
            let other = try? await DAVFileTests.send(
                town, "LOCK", "/Documents/a", [("Timeout", "Second-60")],
                CollectedBody(Self.lockInfo))
            #expect(other?.status == 200)
        }
        // Somebody else holds it now.
        #expect(other == 423)
        town.world.advance(by: .seconds(120))
        // It was over before the body came.
        #expect(try await slow {} == 412)
        let fresh = try await DAVFileTests.send(
            town, "LOCK", "/Documents/a", [("Timeout", "Second-60")], CollectedBody(Self.lockInfo))
        let next = try #require(fresh.headers["Lock-Token"])
        let late = try await Self.put(
            town, "/Documents/a", 900_000,
            Halting(Self.bytes(900_000)) { town.world.advance(by: .seconds(120)) },
            [("If", "(\(next))")])
        #expect(late.status == 204, "\(late.text)")
    }

    @Test func `what WebDAV deletes leaves the contents that wait as files`() async throws {
        let town = Town()
        #expect(try await DAVFileTests.put(town, "/Documents/a.txt", [1]).status == 201)
        let items = try await DAVFileTests.ask(
            town, "items/lookup", ["items": [["path": "Documents/a.txt"]]])["items"]
        let id = try #require(items[0]["id"].text)
        let now = JSON.number("\(town.world.wallMilliseconds)")
        _ = try await DAVFileTests.ask(
            town, "items/modify",
            [
                "device": "phone", "now": now,
                "operations": [
                    ["operation": "save", "id": .string(id), "content": "Ag=="]
                ],
            ])
        #expect(try await DAVFileTests.send(town, "GET", "/Documents/a.txt").body == [2])
        #expect(try await DAVFileTests.send(town, "DELETE", "/Documents/a.txt").status == 204)
        #expect(try await DAVFileTests.send(town, "GET", "/Documents/a.txt").status == 404)
        #expect(try await DAVFileTests.send(town, "GET", "/Documents/a%202.txt").body == [1])
        #expect(try await DAVFileTests.send(town, "DELETE", "/Documents/a%202.txt").status == 204)
    }
}
