import StratusCluster
import StratusContainers
import StratusDoubles
import StratusHTTP
import StratusIdentity
import StratusModel
import StratusRecords
import StratusRows
import StratusRuntime
import Testing
import WireScenarios

@testable import StratusGateway

/// Public databases copied from development to production.
@Suite struct RecordCopyTests {
    typealias Town = AssetHandlerTests.Town

    /// All pages of one round.
    private struct Round {
        var madeCount = 0
        var thereCount = 0
        var fileSize: UInt64 = 0
        var waiting: [ContainerCopy.Remark] = []
        var refused: [ContainerCopy.Remark] = []
    }

    private struct House {
        static let target = ContainerReference(
            container: Town.container.container, environment: .production)
        let town: Town
        let directory: Directory

        /// - Parameter buckets: of production's public database, and of development's.
        init(buckets: (Int, Int), town: Town = Town()) async throws {
            self.town = town
            let registry = self.town.authenticator.registry
            _ = try await registry.create(Town.container, buckets: buckets.1)
            _ = try await registry.create(Self.target, buckets: buckets.0)
            let form = RecordForm(
                record: { _, _, _ in }, zone: { _, _ in }, subscription: { _, _ in })
            self.directory = Directory(self.town.authenticator, form: form, keys: self.town.keys)
        }

        func save(_ name: String, _ fields: JSON, parent: String? = nil) async throws {
            let plain: JSON = [
                "recordName": .string(name), "recordType": "Book", "fields": fields,
            ]
            let record = plain.setting("parent", parent.map { ["recordName": .string($0)] })
            let (_, answer) = try await self.town.api(
                "records/modify",
                ["operations": [["operationType": "forceUpdate", "record": record]]],
                in: "public")
            #expect(answer["records"]?[0]?["serverErrorCode"] == nil, "\(answer)")
        }

        /// The schema as `schema promote` takes it over.
        func promote() async throws {
            let store = self.town.authenticator.store
            try await store.install(
                try await store.schema(of: Town.container), of: Self.target,
                at: .container(Self.target))
        }

        /// All pages, until a round makes nothing.
        func copy() async throws -> [Round] {
            let copy = ContainerCopy(
                self.directory, from: Town.container, to: Self.target,
                by: self.town.transfers.copier)
            var rounds: [Round] = []
            repeat {
                var round = Round()
                var after: Bytes?
                repeat {
                    let page = try #require(try await copy.page(after: after))
                    round.madeCount += page.madeCount
                    round.thereCount += page.thereCount
                    round.fileSize += page.fileSize
                    round.waiting += page.waiting
                    round.refused += page.refused
                    after = page.next
                } while after != nil
                rounds.append(round)
            } while rounds.last.map { $0.madeCount > 0 } ?? false
            return rounds
        }

        func record(_ name: String) async throws -> Record? {
            let parts = try await self.directory.registry.publicDatabase(of: Self.target).parts
            for part in parts {
                let ask = RecordLookup(database: part, names: [name])
                guard case .lookup(let found) = try await self.ask(.lookup(ask), part) else {
                    continue
                }
                if case .found(let record)? = found.items.first { return record }
            }
            return nil
        }

        func ask(_ ask: RecordQuery.Ask, _ database: DatabaseID) async throws -> RecordAnswer {
            let query = RecordQuery(principal: Principal(kind: .system), ask)
            let answer = try await self.town.router.read(
                query.enveloped(), at: .database(database), deadline: self.town.world.now)
            return try RecordAnswer(decoding: answer.body)
        }
    }

    @Test(arguments: [(1, 1), (4, 1), (1, 4)])
    func `records, references, parents and files are made in production, once`(
        buckets: (Int, Int)
    ) async throws {
        let house = try await House(buckets: buckets)
        let bytes = AssetHandlerTests.bytes
        let file = try await house.town.upload(
            bytes, to: try await house.town.ticket("file", in: "public"))
        try await house.save("file", ["cover": ["value": file], "title": ["value": "One"]])
        try await house.save("z", ["title": ["value": "Last"]])
        // These come before what they refer to.
        try await house.save(
            "a", ["next": ["value": ["recordName": "z", "action": "VALIDATE"]]])
        try await house.save(
            "b", ["next": ["value": ["recordName": "a", "action": "DELETE_SELF"]]])
        try await house.save("c", ["title": ["value": "Child"]], parent: "z")
        for number in 0..<120 {
            try await house.save("n\(number)", ["title": ["value": .string("\(number)")]])
        }
        try await house.promote()
        let rounds = try await house.copy()
        #expect(rounds.reduce(0) { $0 + $1.madeCount } == 125)
        #expect(rounds.allSatisfy { $0.refused.isEmpty }, "\(rounds)")
        let last = try #require(rounds.last)
        #expect(last.thereCount == 125 && last.waiting.isEmpty)
        #expect(rounds.reduce(0) { $0 + $1.fileSize } == UInt64(bytes.count))

        let a = try #require(try await house.record("a"))
        #expect(a.value(of: "next") != nil && a.type == "Book")
        #expect(try await house.record("c")?.parent == "z")
        let copied = try #require(try await house.record("file"))
        guard case .scalar(.asset(let reference))? = copied.value(of: "cover") else {
            Issue.record("no file")
            return
        }
        let parts = try await house.directory.registry.publicDatabase(of: House.target).parts
        let part = try #require(parts.first { $0.bucket?.holds("file") ?? true })
        let asset = try #require(reference.asset)
        let stored = try #require(
            try await house.town.stored(asset, in: part), "its file is in no row")
        #expect(stored.body.size == UInt64(bytes.count))
        #expect(stored.fileChecksum == file["fileChecksum"]?.text)
        let (body, share) = try await house.town.assets.begin(
            stored, 0..<stored.body.size, by: PlaceHolder(nil, "a test"))
        var read = Bytes()
        while let more = try await body.next() { read += more }
        withExtendedLifetime(share) {}
        #expect(read == bytes)
    }

    @Test func `files that take longer than a request may are copied a few in each round`()
        async throws
    {
        let bytes = AssetHandlerTests.bytes
        // 40 s a file, where a command lives for 30.
        let town = Town { settings, _ in settings.resealingRate = UInt64(bytes.count / 40) }
        let house = try await House(buckets: (1, 1), town: town)
        for name in ["one", "two", "three"] {
            let file = try await house.town.upload(
                bytes, to: try await house.town.ticket(name, in: "public"))
            try await house.save(name, ["cover": ["value": file]])
        }
        try await house.promote()
        let rounds = try await house.copy()
        #expect(rounds.map(\.madeCount) == [1, 1, 1, 0])
        #expect(rounds.map(\.waiting.count) == [2, 1, 0, 0])
    }

    @Test func `what is there stays, and what production's schema lacks is refused`() async throws {
        let house = try await House(buckets: (1, 1))
        try await house.save("one", ["title": ["value": "Development's"]])
        try await house.promote()
        _ = try await house.copy()
        try await house.save("one", ["title": ["value": "Newer"]])
        try await house.save("two", ["later": ["value": 1]])
        let rounds = try await house.copy()
        #expect(rounds.count == 1)
        #expect(rounds[0].thereCount == 1 && rounds[0].madeCount == 0)
        #expect(rounds[0].refused.map(\.record) == ["two"])
        let one = try #require(try await house.record("one"))
        #expect(one.value(of: "title") == .scalar(.string("Development's")))
    }

    @Test func `a place that is none of ours, and an environment that is not there`() async throws {
        let house = try await House(buckets: (1, 1))
        let copier = house.town.transfers.copier
        let copy = ContainerCopy(
            house.directory, from: Town.container, to: House.target, by: copier)
        #expect(try await copy.page(after: [1, 2, 3]) == nil)
        let other = ContainerReference(container: "iCloud.none", environment: .production)
        let none = ContainerCopy(house.directory, from: Town.container, to: other, by: copier)
        #expect(try await none.page(after: nil) == nil)
    }
}
