import StratusCluster
import StratusDoubles
import StratusIdentity
import StratusModel
import StratusRecords
import Synchronization
import Testing

@testable import WireScenarios

/// `changes/database` of a client that only wants the feed's end: it names no position, so none
/// that it names can have expired.
@Suite struct CaughtUpTests {
    private let town: Neighbourhood
    private let api: String
    private let token: String
    private let database: DatabaseID

    init() async throws {
        var limits = Limits()
        limits.operationCountMax = 2
        self.town = Neighbourhood(requests: limits)
        _ = try await self.town.makeContainer()
        self.api = try await self.town.apiToken()
        let ann = try await self.town.account("ann@example.org")
        self.token = try await self.town.signIn(ann)
        self.database = DatabaseID(
            container: Neighbourhood.container, scope: .private, owner: self.town.recordName(ann))
        for number in 0..<6 { try await self.makeZone("z\(number)") }
    }

    private func makeZone(_ name: String) async throws {
        let answer = try await self.town.post(
            "private/zones/modify",
            [
                "operations": [
                    [
                        "operationType": "create",
                        "zone": ["zoneID": ["zoneName": .string(name)]],
                    ]
                ]
            ], api: self.api, user: self.token)
        #expect(!answer.text.contains("serverErrorCode"), "\(answer)")
    }

    /// After each of the first `count` looks into the database no position from before is honoured.
    private func expirePositions(_ count: Int) {
        let left = Left(count)
        self.town.router.afterRead.withLock { hook in
            hook = { [town = self.town, database = self.database] key in
                guard key == .database(database), left.take() else { return }
                _ = try? await town.router.submit(
                    RecordCommand.recover.enveloped(
                        container: database.container, identity: town.world.drawIdentity(),
                        deadlineMilliseconds: .max, schemaVersion: 0,
                        principal: Principal(kind: .system)), to: .key(key),
                    deadline: town.world.now)
            }
        }
    }

    private final class Left: Sendable {
        private let count: Mutex<Int>
        init(_ count: Int) { self.count = Mutex(count) }

        func take() -> Bool {
            self.count.withLock { count in
                count -= 1
                return count >= 0
            }
        }
    }

    private func changes(after text: String) async throws -> WireAnswer {
        try await self.town.post(
            "private/changes/database", ["syncToken": .string(text)], api: self.api,
            user: self.token)
    }

    @Test(arguments: [1, 3])
    func `a position that expires on the way is not the client's`(count: Int) async throws {
        self.expirePositions(count)
        let caughtUp = try await self.changes(after: "")
        #expect(caughtUp.status == 200, "\(caughtUp.text)")
        #expect(caughtUp.json["zones"].elements.isEmpty)
        #expect(caughtUp.json["moreComing"] == false)
        let text = try #require(caughtUp.json["syncToken"].text)
        #expect(try await self.changes(after: text).json["zones"].elements.isEmpty)
        try await self.makeZone("new")
        let zones = try await self.changes(after: text).json["zones"].elements
        #expect(zones.map { $0["zoneID"]["zoneName"].text } == ["new"])
    }

    @Test func `a walk that never comes to its end is to be tried again`() async throws {
        self.expirePositions(.max)
        let answer = try await self.changes(after: "")
        #expect(answer.status == 503)
        #expect(answer.json["serverErrorCode"] == "TRY_AGAIN_LATER")
    }
}
