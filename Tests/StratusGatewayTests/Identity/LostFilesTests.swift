import StratusCluster
import StratusContainers
import StratusDoubles
import StratusGateway
import StratusIdentity
import StratusModel
import StratusRecords
import StratusRows
import Synchronization
import Testing

@testable import WireScenarios

/// The list of lost files goes through every database of every container.
@Suite struct LostFilesTests {
    private static func pin(_ number: UInt128, in database: DatabaseID) -> PinAsset {
        PinAsset(database) {
            $0.upload = UploadID(number)
            $0.asset = AssetID(number)
            $0.fileChecksum = "sum"
            $0.stored = StoredBody(
                body: BodyID(number), size: 300, chunkSize: 1 << 18, keyVersion: 1,
                chunks: [.init(storedSize: 300, crc: 1)], orphanAfterMilliseconds: .max,
                storers: [])
        }
    }

    @Test func `lost files of public and private databases are found, and who does not answer`()
        async throws
    {
        let town = Neighbourhood()
        _ = try await town.authenticator.registry.create(Neighbourhood.container)
        _ = try await town.makeContainer()
        let ann = try await town.account("ann@example.org")
        _ = try await town.signIn(ann)
        let own = DatabaseID(
            container: Neighbourhood.container, scope: .private, owner: town.recordName(ann))
        let open = DatabaseID(container: Neighbourhood.container, scope: .public, owner: "")
        let keys = InProcess.databaseKeys(town.router, town.world)
        func submit(_ command: some PartitionOperation, _ database: DatabaseID) async throws {
            _ = try await town.router.submit(
                command.enveloped(
                    container: Neighbourhood.container, identity: town.world.drawIdentity(),
                    deadlineMilliseconds: .max, schemaVersion: 0,
                    principal: Principal(kind: .system)),
                to: .database(database), deadline: town.world.now)
        }
        for (number, database) in [(1, own), (2, own), (3, open)] as [(UInt128, DatabaseID)] {
            _ = try await keys.sealing(of: database)
            try await submit(Self.pin(number, in: database), database)
            if number == 2 { continue }
            try await submit(LoseBody(BodyID(number)), database)
        }
        func look() async throws -> (files: [LostFile], failing: [DatabaseID]) {
            var walk = AssetWalk(
                for: .lostFiles, town.service.directory, retries: Retries { _ in })
            var found: (files: [LostFile], failing: [DatabaseID]) = ([], [])
            while let piece = try await walk.next() {
                switch piece {
                case .files(let files): found.files += files
                case .faults: Issue.record("a look for lost files found rows")
                case .failing(let database, _): found.failing.append(database)
                }
            }
            return found
        }
        let all = try await look()
        #expect(Set(all.files.map(\.asset)) == [AssetID(1), AssetID(3)])
        #expect(Set(all.files.map(\.database)) == [own, open])
        #expect(all.failing.isEmpty)
        town.router.away.withLock { $0 = [.database(own)] }
        let some = try await look()
        #expect(some.files.map(\.asset) == [AssetID(3)])
        #expect(some.failing == [own])
        var (audit, pieceCount, failing) = (
            AssetWalk(for: .rows, town.service.directory, retries: Retries { _ in }), 0,
            [DatabaseID]()
        )
        while let piece = try await audit.next() {
            switch piece {
            case .faults(let faults):
                pieceCount += 1
                #expect(faults.isEmpty, "\(faults)")
            case .failing(let database, _): failing.append(database)
            case .files(let files): #expect(files.isEmpty, "a look at rows found lost files")
            }
        }
        // Three ranges of rows, and a page with the file.
        #expect(failing == [own] && pieceCount >= 4, "\(pieceCount)")
        // A container whose own partition does not answer keeps no other from being looked at.
        town.router.away.withLock { $0 = [.container(Neighbourhood.container)] }
        let none = try await look()
        #expect(none.failing == [open, open], "\(none)")
    }
}
