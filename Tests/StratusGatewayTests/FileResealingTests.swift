import StratusAssets
import StratusCluster
import StratusContainers
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
import WireScenarios

/// Rotations of databases' keys seal files anew, while clients go on.
@Suite struct FileResealingTests {
    typealias Town = AssetHandlerTests.Town

    /// A town whose user is one of its container's, with files of three sizes.
    private struct House {
        let town: Town
        let database: DatabaseID
        /// Records and what they hold.
        let files: [(name: String, bytes: Bytes)] = [
            ("large", AssetHandlerTests.bytes), ("empty", []),
            ("text", Bytes(repeating: 65, count: 262_144)),
        ]

        init() async throws {
            let town = Town()
            self.town = town
            _ = try await town.authenticator.registry.create(Town.container)
            for (name, bytes) in self.files {
                let file = try await town.upload(bytes, to: try await town.ticket(name))
                _ = try await town.save(file, in: name)
            }
            let (_, caller) = try await town.api("users/current", [:])
            let owner = try #require(caller["userRecordName"]?.text)
            self.database = DatabaseID(
                container: Town.container, scope: .private, owner: owner)
            try await town.authenticator.access.changeUser(
                owner, account: nil, in: Town.container
            ) { _ in }
        }

        func rotation(sealsFiles: Bool = true) throws -> DatabaseRotation {
            let form = RecordForm(
                record: { _, _, _ in }, zone: { _, _ in }, subscription: { _, _ in })
            let directory = Directory(self.town.authenticator, form: form, keys: self.town.keys)
            return try #require(
                DatabaseRotation(
                    directory, of: Town.container, files: sealsFiles ? self.town.assets : nil,
                    retries: Retries { _ in }))
        }

        @discardableResult
        func rotate(sealsFiles: Bool = true) async throws -> (
            DatabaseRotation.Progress, [FailingDatabase]
        ) {
            var rotation = try self.rotation(sealsFiles: sealsFiles)
            var failing: [FailingDatabase] = []
            while try await rotation.next() { failing += rotation.failing }
            // Copies go once their rows have gone.
            let old = Set(self.town.doubting.replacements.withLock { $0.map(\.old) })
            self.town.copies.all.withLock { $0 = $0.filter { !old.contains($0.key.body) } }
            return (rotation.progress, failing + rotation.failing)
        }

        func asset(_ name: String) async throws -> StoredAsset {
            let lookup = RecordLookup(database: self.database, names: [name])
            guard case .lookup(let found) = try await self.ask(.lookup(lookup)),
                case .found(let record)? = found.items.first,
                case .scalar(.asset(let reference))? = record.value(of: "cover"),
                let asset = reference.asset,
                let stored = try await self.town.stored(asset, in: self.database)
            else { throw BenchFailure.noAsset }
            return stored
        }

        enum BenchFailure: Error { case noAsset }

        func ask(_ ask: RecordQuery.Ask) async throws -> RecordAnswer {
            let query = RecordQuery(principal: Principal(kind: .system), ask)
            let answer = try await self.town.router.read(
                query.enveloped(), at: .database(self.database), deadline: self.town.world.now)
            return try RecordAnswer(decoding: answer.body)
        }

        func submit<Operation: Submittable>(_ command: Operation) async throws {
            _ = try await self.town.router.submit(
                command.enveloped(
                    container: Town.container, identity: self.town.world.drawIdentity(),
                    deadlineMilliseconds: .max, schemaVersion: 0,
                    principal: Principal(kind: .system)),
                to: .database(self.database), deadline: self.town.world.now)
        }

        func keys() async throws -> [UInt32] {
            var found: [UInt32] = []
            for version in 1...9 as ClosedRange<UInt32>
            where try await self.town.keys.key(version, of: self.database) != nil {
                found.append(version)
            }
            return found
        }

        func checkDownloads() async throws {
            for (name, bytes) in self.files {
                let answer = try await self.town.send("GET", try await self.town.link(name))
                #expect(answer.status == 200 && answer.body == bytes, "\(name)")
            }
        }
    }

    @Test func `every file is sealed anew, nothing else changes, and the old keys are gone`()
        async throws
    {
        let house = try await House()
        let unsaved = try await house.town.upload(
            Bytes("later".utf8), to: try await house.town.ticket("later"))
        let before = try await house.asset("large")
        let link = try await house.town.link("large")
        let tag = try await house.town.send("HEAD", link).headers["ETag"]
        let (progress, failing) = try await house.rotate()
        #expect(failing.isEmpty, "\(failing)")
        #expect(progress.fileCount == 4 && progress.fileSize == 700_000 + 262_144 + 5)
        #expect(progress.keptFileCount == 0 && progress.olderKeyCount == 0)
        #expect(try await house.keys() == [2])
        var expected = try await house.asset("large")
        #expect(expected.body.keyVersion == 2 && expected.body.body != before.body.body)
        (expected.body, expected.key) = (before.body, before.key)
        #expect(expected == before)
        try await house.checkDownloads()
        #expect(try await house.town.send("HEAD", link).headers["ETag"] == tag)
        #expect(try await house.town.send("GET", link).body == AssetHandlerTests.bytes)
        // The receipt of before is good.
        let saved = try await house.town.save(unsaved, in: "later")
        #expect(saved["serverErrorCode"] == nil, "\(saved)")
        // Once more: there is a third key then, and equal files are still found.
        #expect(try await house.rotate().0.fileCount == 4)
        #expect(try await house.keys() == [3])
        try await house.checkDownloads()
        #expect(house.town.buffers.size == 0)
    }

    @Test(arguments: [0, 300_000, 699_999])
    func `a download goes on with the new body of its file`(start: Int) async throws {
        let house = try await House()
        let link = try await house.town.link("large")
        let response = await house.town.transfers.respond(
            to: HTTPRequest(
                head: RequestHead(
                    method: "GET",
                    path: String(link.dropFirst("http://ck.example.org".count)), query: nil,
                    headers: ["Range": "bytes=\(start)-"]),
                body: CollectedBody([]), peer: "192.0.2.7",
                identity: house.town.world.drawIdentity()))
        guard case .stream(let stream, let length) = response.body else {
            Issue.record("no stream")
            return
        }
        #expect(response.status == 206 && length == 700_000 - start)
        // A rotation between any two pieces; the old body's copies go at once.
        var read = Bytes()
        var rotations = 0
        while let piece = try await stream.next() {
            read += piece
            if rotations < 3 {
                try await house.rotate()
                rotations += 1
            }
        }
        #expect(read == Bytes(AssetHandlerTests.bytes[start...]))
        #expect(rotations > 0)
    }

    @Test func `a download of a file that is sealed anew before its first byte`() async throws {
        let house = try await House()
        let stored = try await house.asset("large")
        let count = Mutex(0)
        house.town.router.afterRead.withLock {
            $0 = { _ in
                let isFirst = count.withLock { count in
                    count += 1
                    return count == 1
                }
                if isFirst { _ = try? await house.rotate() }
            }
        }
        let answer = try await house.town.send("GET", try await house.town.link("large"))
        house.town.router.afterRead.withLock { $0 = nil }
        #expect(answer.status == 200 && answer.body == AssetHandlerTests.bytes)
        #expect(try await house.asset("large").body.body != stored.body.body)
    }

    @Test func `storers that the leader does not count are asked again`() async throws {
        let house = try await House()
        house.town.doubting.doubtCount.withLock { $0 = 1 }
        let (progress, failing) = try await house.rotate()
        #expect(failing.isEmpty && progress.fileCount == 3)
        let sent = house.town.doubting.replacements.withLock { $0 }
        #expect(sent.count == 4 && sent[0].new.body == sent[1].new.body)
        #expect(sent[0].new.storers.map(\.at) == [.zero])
        #expect(sent[1].new.storers.map(\.at) == [LogIndex(9)])
        try await house.checkDownloads()
    }

    @Test func `an upload goes on over a rotation, and not over an erasure`() async throws {
        let house = try await House()
        let bytes = Bytes((0..<600_000).map { UInt8(truncatingIfNeeded: $0 &* 7 >> 3) })
        let answer = try await house.town.send(
            "POST", try await house.town.ticket("new"), [],
            Interrupted(bytes) {
                _ = try? await house.town.keys.rotate(house.database, to: 2)
            })
        #expect(answer.status == 200)
        let file = try #require(try JSON(parsing: answer.body)["singleFile"])
        _ = try await house.town.save(file, in: "new")
        #expect(try await house.asset("new").body.keyVersion == 2)
        #expect(
            try await house.town.send("GET", try await house.town.link("new")).body == bytes)
        #expect(house.town.buffers.size == 0)
        let erased = try await house.town.send(
            "POST", try await house.town.ticket("newer"), [],
            Interrupted(bytes) {
                try? await house.submit(
                    RecordCommand.eraseDatabase(EraseDatabase(database: house.database)))
            })
        #expect(erased.status == 503)
        #expect(house.town.buffers.size == 0)
    }

    /// A body in two pieces, between which something happens.
    private final class Interrupted: RequestBody {
        private let bytes: Bytes
        private let act: @Sendable () async -> Void
        private let count = Mutex(0)

        init(_ bytes: Bytes, _ act: @escaping @Sendable () async -> Void) {
            self.bytes = bytes
            self.act = act
        }

        func next() async throws(RequestBodyError) -> Bytes? {
            let number = self.count.withLock { count in
                count += 1
                return count
            }
            let half = self.bytes.count / 2
            switch number {
            case 1: return Bytes(self.bytes[..<half])
            case 2:
                await self.act()
                return Bytes(self.bytes[half...])
            default: return nil
            }
        }
    }

    @Test func `a lost file keeps the key that it is under, and says so`() async throws {
        let house = try await House()
        let lost = try await house.asset("text")
        try await house.submit(LoseBody(lost.body.body))
        let (progress, failing) = try await house.rotate()
        #expect(failing.isEmpty && progress.fileCount == 2)
        #expect(progress.keptFileCount == 1 && progress.olderKeyCount == 1)
        #expect(try await house.keys() == [1, 2])
        #expect(try await house.asset("text").body.body == lost.body.body)
    }

    @Test func `a file that cannot be read now fails its database, and another run goes on`()
        async throws
    {
        let house = try await House()
        let body = try await house.asset("text").body.body
        let copies = house.town.copies.all.withLock { $0.filter { $0.key.body == body } }
        house.town.copies.all.withLock { $0 = $0.filter { $0.key.body != body } }
        let (progress, failing) = try await house.rotate()
        #expect(failing.map(\.owner) == [house.database.owner])
        #expect(
            failing.first?.reason
                == "1 files could not be sealed anew: no node has all of the file")
        #expect(progress.fileCount == 2 && progress.failingCount == 1)
        #expect(try await house.keys() == [1, 2])
        house.town.copies.all.withLock { $0.merge(copies) { $1 } }
        let (second, rest) = try await house.rotate()
        #expect(rest.isEmpty && second.fileCount == 3)
        #expect(try await house.keys() == [3])
        try await house.checkDownloads()
    }

    @Test func `a node without files leaves them as they are`() async throws {
        let house = try await House()
        let (progress, failing) = try await house.rotate(sealsFiles: false)
        #expect(failing.isEmpty && progress.keptFileCount == 3 && progress.olderKeyCount == 1)
        #expect(try await house.keys() == [1, 2])
        try await house.checkDownloads()
    }

    @Test func `a rotation that was interrupted anywhere goes on`() async throws {
        var (stops, stepCount) = (1, 2)
        while stops < stepCount {
            let house = try await House()
            if stops == 1 {
                var whole = try house.rotation()
                stepCount = 0
                while try await whole.next() { stepCount += 1 }
                #expect(stepCount > 6)
            }
            let version: UInt32 = stops == 1 ? 3 : 2
            var first = try house.rotation()
            for _ in 0..<stops { #expect(try await first.next()) }
            let (progress, failing) = try await house.rotate()
            #expect(failing.isEmpty, "stop \(stops): \(failing)")
            #expect(
                first.progress.fileCount + progress.fileCount == 3, "stop \(stops)")
            #expect(try await house.keys() == [version], "stop \(stops)")
            try await house.checkDownloads()
            stops += 1
        }
    }

    @Test func `files are read and written no faster than the rate`() async throws {
        let house = try await House()
        let before = house.town.world.now
        try await house.rotate()
        // 32 MiB a second.
        let least = Duration.seconds(Double(700_000 + 262_144) / Double(32 << 20))
        #expect(house.town.world.now - before >= least - .microseconds(1))
    }
}
