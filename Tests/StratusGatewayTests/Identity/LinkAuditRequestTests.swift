import StratusContainers
import StratusDoubles
import StratusGateway
import StratusIdentity
import StratusModel
import StratusRecords
import Synchronization
import Testing

@testable import WireScenarios

/// The buckets that are told to compare references: every one that has something to compare, of
/// every container in use.
@Suite struct LinkAuditRequestTests {
    private let town = Neighbourhood()

    /// `count` public records, of which each but the first refers to the one before.
    private func fill(_ container: ContainerReference, buckets: Int, count: Int) async throws
        -> Set<DatabaseID>
    {
        let registry = self.town.authenticator.registry
        _ = try await registry.create(container, buckets: buckets)
        try await self.town.install(Library.schema, in: container)
        let api = try await self.town.apiToken(in: container)
        let ann = try await self.town.account("ann@\(container.container)")
        let token = try await self.town.signIn(ann, in: container)
        let open = try await registry.publicDatabase(of: container)
        var written: Set<DatabaseID> = [
            open.part(of: self.town.recordName(ann, in: container))
        ]
        for number in 0..<count {
            let answer = try await self.town.post(
                "public/records/modify",
                [
                    "operations": [
                        [
                            "operationType": "create",
                            "record": [
                                "recordName": .string("b\(number)"), "recordType": "Book",
                                "fields": ["title": ["value": "planted"]],
                            ],
                        ]
                    ]
                ], api: api, user: token, in: container)
            #expect(!answer.text.contains("serverErrorCode"), "\(answer.text)")
            written.insert(open.part(of: "b\(number)"))
        }
        return written
    }

    @Test func `every bucket that was written to begins`() async throws {
        let busy = Neighbourhood.container
        let other = ContainerReference(
            container: "iCloud.org.example.other", environment: .development)
        let whole = ContainerReference(
            container: "iCloud.org.example.whole", environment: .development)
        let inBusy = try await self.fill(busy, buckets: 8, count: 3)
        let inOther = try await self.fill(other, buckets: 2, count: 6)
        _ = try await self.fill(whole, buckets: 1, count: 1)
        #expect(inBusy.count < 8 && inOther.count == 2)

        let audit = LinkAudit(self.town.service.directory)
        #expect(try await audit.begin(in: busy) == inBusy.count)
        #expect(try await audit.begin(in: whole) == 0)
        #expect(try await audit.beginEverywhere() == inBusy.count + 2)
        let nobody = ContainerReference(
            container: "iCloud.org.example.nobody", environment: .development)
        #expect(try await audit.begin(in: nobody) == nil)
        // What is being deleted is shut: nobody needs its references.
        _ = try await self.town.authenticator.registry.beginErasure(of: other)
        #expect(try await audit.begin(in: other) == nil)
        #expect(try await audit.beginEverywhere() == inBusy.count)
    }

    @Test func `a bucket that cannot be reached fails the audit, which is begun again`()
        async throws
    {
        let busy = Neighbourhood.container
        let written = try await self.fill(busy, buckets: 4, count: 8)
        let last = try #require(
            PublicDatabase(of: busy, bucketCount: 4).parts.last(where: written.contains))
        self.town.router.away.withLock { $0 = [.database(last)] }
        let audit = LinkAudit(self.town.service.directory)
        await #expect(throws: (any Error).self) { try await audit.beginEverywhere() }
        self.town.router.away.withLock { $0 = [] }
        #expect(try await audit.beginEverywhere() == written.count)
    }
}
