import StratusCluster
import StratusDoubles
import StratusGateway
import StratusHTTP
import StratusIdentity
import StratusModel
import StratusRecords
import StratusRows
import StratusRuntime
import Synchronization
import Testing

@testable import StratusContainers
@testable import WireScenarios

/// Reading back the files of one container: every body of it, and no other's.
@Suite struct AssetVerificationTests {
    private static let other = ContainerReference(
        container: "iCloud.org.example.other", environment: .development)

    private func pin(_ number: UInt128, chunks: Int, in database: DatabaseID) -> PinAsset {
        PinAsset(database) {
            $0.upload = UploadID(number)
            $0.asset = AssetID(number)
            $0.fileChecksum = "sum"
            $0.stored = StoredBody(
                body: BodyID(number),
                size: UInt64(chunks) * UInt64(AssetLimits.chunkSizeDefault),
                chunkSize: AssetLimits.chunkSizeDefault, keyVersion: 1,
                chunks: (0..<chunks).map { _ in .init(storedSize: 1_000, crc: 1) },
                orphanAfterMilliseconds: .max, storers: [])
        }
    }

    @Test func `each chunk of a container's bodies is read once, and what is found is summed up`()
        async throws
    {
        let town = Neighbourhood()
        _ = try await town.authenticator.registry.create(Neighbourhood.container)
        _ = try await town.authenticator.registry.create(Self.other)
        _ = try await town.makeContainer()
        let ann = try await town.account("ann@example.org")
        _ = try await town.signIn(ann)
        let own = DatabaseID(
            container: Neighbourhood.container, scope: .private, owner: town.recordName(ann))
        let open = DatabaseID(container: Neighbourhood.container, scope: .public, owner: "")
        let foreign = DatabaseID(container: Self.other, scope: .public, owner: "")
        let keys = InProcess.databaseKeys(town.router, town.world)
        let chunks: [(number: UInt128, count: Int, database: DatabaseID)] = [
            (1, 200, own), (2, 1, own), (3, 3, open), (4, 5, foreign),
        ]
        for (number, count, database) in chunks {
            _ = try await keys.sealing(of: database)
            _ = try await town.router.submit(
                self.pin(number, chunks: count, in: database).enveloped(
                    container: database.container, identity: town.world.drawIdentity(),
                    deadlineMilliseconds: .max, schemaVersion: 0,
                    principal: Principal(kind: .system)),
                to: .database(database), deadline: town.world.now)
        }
        let read = Mutex<[CopyName: Int]>([:])
        let sizes = Mutex<[Int]>([])
        let work = AssetVerification(
            of: Neighbourhood.container, town.service.directory, retries: Retries { _ in }
        ) { body, ordinals, _ in
            var check = CopyCheck()
            for ordinal in ordinals {
                read.withLock { $0[CopyName(body: body, ordinal: ordinal), default: 0] += 1 }
                check.soundCount += 1
                check.size += 1_000
            }
            if body == BodyID(3), ordinals.contains(1) {
                check.soundCount -= 2
                check.damagedCount += 1
                check.missingCount += 1
            }
            sizes.withLock { $0.append(ordinals.count) }
            return .checked(check)
        }
        let lines = try await self.lines(AssetVerificationLines(work))
        let last = try #require(lines.last)
        #expect(last["done"]?.bool == true && last["read"] == 203, "\(last)")
        #expect(last["damaged"] == 1 && last["missing"] == 1 && last["elsewhere"] == 0)
        #expect(lines.dropLast().allSatisfy { $0["done"] == nil })
        let all = read.withLock { $0 }
        #expect(all.count == 204 && all.values.allSatisfy { $0 == 1 })
        #expect(!all.keys.contains { $0.body == BodyID(4) })
        #expect(sizes.withLock { $0.max() ?? 0 } <= 64)
    }

    @Test func `what is elsewhere, or cannot be read, is told`() async throws {
        let town = Neighbourhood()
        _ = try await town.authenticator.registry.create(Neighbourhood.container)
        let database = DatabaseID(container: Neighbourhood.container, scope: .public, owner: "")
        for (checking, key) in [(CopyChecking.elsewhere, "elsewhere"), (.failing, "failing")] {
            let work = AssetVerification(
                of: Neighbourhood.container, town.service.directory, retries: Retries { _ in }
            ) { _, ordinals, _ in
                ordinals.isEmpty && checking == .failing ? .checked(CopyCheck()) : checking
            }
            _ = try await InProcess.databaseKeys(town.router, town.world).sealing(of: database)
            _ = try await town.router.submit(
                self.pin(3, chunks: 3, in: database).enveloped(
                    container: database.container, identity: town.world.drawIdentity(),
                    deadlineMilliseconds: .max, schemaVersion: 0,
                    principal: Principal(kind: .system)),
                to: .database(database), deadline: town.world.now)
            let lines = try await self.lines(AssetVerificationLines(work))
            #expect(lines.last?["done"]?.bool == true && lines.last?["read"] == 0)
            if key == "elsewhere" {
                #expect(lines.last?["elsewhere"] == 1 && lines.count == 1, "\(lines)")
            } else {
                #expect(lines.count { $0["failing"] != nil } == 1, "\(lines)")
            }
        }
    }

    @Test func `a database without files is not told of, wherever its replicas are`() async throws {
        let town = Neighbourhood()
        _ = try await town.authenticator.registry.create(Neighbourhood.container)
        let work = AssetVerification(
            of: Neighbourhood.container, town.service.directory, retries: Retries { _ in }
        ) { _, _, _ in .elsewhere }
        let lines = try await self.lines(AssetVerificationLines(work))
        #expect(lines.count == 1 && lines.last?["elsewhere"] == 0, "\(lines)")
    }

    private func lines(_ body: any ResponseBody) async throws -> [JSON] {
        var text = Bytes()
        while let more = try await body.next() { text += more }
        return try text.split(separator: 0x0A).map { try JSON(parsing: Bytes($0)) }
    }
}
