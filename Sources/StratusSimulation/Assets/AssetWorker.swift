import StratusAssets
import StratusCluster
import StratusCoding
import StratusConsensus
import StratusDoubles
import StratusModel
import StratusRecords
import StratusRows
import StratusStorage

/// One client and the gateway that serves it, on one node: uploads, saves, deletes, downloads. It
/// ends with the process.
struct AssetWorker: Sendable {
    let life: ProcessLife
    private let number: Int
    let assets: AssetWorld

    init(_ life: ProcessLife, number: Int) {
        self.life = life
        self.number = number
        guard let assets = life.simulation.assets else { preconditionFailure("no assets") }
        self.assets = assets
    }

    var world: SimulatedWorld { self.life.node.world }

    func run() async {
        while !self.life.isGone {
            await self.life.sleep(for: .milliseconds(10 + self.assets.draw(150)))
            guard !self.life.isGone else { return }
            guard self.life.simulation.isBusy else { continue }
            let groups = self.life.simulation.clientGroups
            let group = groups[self.assets.draw(groups.count)]
            let name = "file\(self.assets.draw(8))"
            switch self.assets.draw(12) {
            case 0...4: await self.upload(to: group, name)
            case 5: await self.delete(name, in: group)
            case 10...11: await self.reseal(name, in: group)
            default: await self.download(name, of: group)
            }
            if self.assets.draw(30) == 0 { await self.loseAndAdopt(in: group) }
        }
    }

    // MARK: Uploads

    func members(of group: GroupID) -> Configuration? {
        let replica = self.life.isGone ? nil : self.life.node.host?.replica(of: group)
        guard let configuration = replica?.raft.configuration, !configuration.voters.isEmpty
        else { return nil }
        return configuration
    }

    private func upload(to group: GroupID, _ name: String) async {
        guard let members = self.members(of: group),
            let courier = self.life.node.assets?.courier,
            let position = self.life.node.partitions[group]?.store.appliedPosition
        else { return }
        let (body, content, digest) = self.assets.newBody()
        let orphanAfter =
            max(self.world.wallMilliseconds, position.time.milliseconds)
            + AssetWorld.orphanMilliseconds
        let cutAt = self.assets.draw(8) == 0 ? self.assets.draw(4) : Int.max
        guard
            let (chunks, storers) = await self.write(
                body, content, to: members, of: group, by: courier, orphanAfter, cutAt: cutAt)
        else { return }
        // A slow client's receipt: members may change meanwhile.
        if self.assets.draw(3) == 0 {
            await life.sleep(for: .milliseconds(self.assets.draw(2_000)))
        }
        let asset = AssetID(UInt128(world.random()) << 64 | UInt128(world.random()))
        let upload = UploadID(asset.raw)
        let pin = PinAsset(AssetWorld.database) {
            $0.upload = upload
            $0.asset = asset
            $0.stored = StoredBody(
                body: body, size: UInt64(content.count), chunkSize: AssetWorld.chunkSize,
                keyVersion: self.assets.keyVersion(of: group), chunks: chunks,
                orphanAfterMilliseconds: orphanAfter, storers: storers)
            $0.fileChecksum = Self.checksum(of: content)
            $0.digest = digest
            $0.rules = AssetWorld.rules
        }
        guard let pinned = await self.pin(pin, in: group, by: courier) else { return }
        self.assets.count("uploads")
        if self.assets.draw(6) == 0 { return }
        let reference = AssetReference(
            fileChecksum: pinned.fileChecksum, size: Int64(content.count), asset: pinned.asset,
            receipt: upload.text)
        await self.modify(
            RecordOperation(
                .forceReplace, recordName: name, recordType: "Book",
                fields: [Field(name: "file", value: .scalar(.asset(reference)))]),
            in: group, "saves")
    }

    /// Seals a body and brings it to the members.
    ///
    /// - Parameter cutAt: the chunk before which the client goes away.
    func write(
        _ body: BodyID, _ content: Bytes, to members: Configuration, of group: GroupID,
        by courier: CopyCourier, _ orphanAfter: Int64, cutAt: Int = .max
    ) async -> (chunks: [BodyManifest.Chunk], storers: [CopyHolding])? {
        let deadline = self.world.now + .seconds(4)
        let (life, world) = (self.life, self.world)
        let writing = BodyWriting(
            BodyWriter(
                body, orphanAfterMilliseconds: orphanAfter, members: Set(members.members),
                voterSets: members.isJoint
                    ? [Set(members.voters), Set(members.incoming)] : [Set(members.voters)],
                deadline: deadline), of: group, by: courier, deadline: deadline,
            // Behind the process' end time is over: nothing is tried again.
            now: { life.isGone ? world.now + .seconds(60) : world.now },
            sleep: { await life.sleep(for: $0) }, on: life.executor)
        var chunks: [BodyManifest.Chunk] = []
        do throws(BodyWriter.Failure) {
            var offset = 0
            while offset < content.count {
                if chunks.count == cutAt {
                    await writing.cancel()
                    self.assets.count("uploads cut")
                    return nil
                }
                let end = min(offset + Int(AssetWorld.chunkSize), content.count)
                let stored = AssetWorld.seal(
                    Bytes(content[offset..<end]),
                    CopyName(body: body, ordinal: UInt32(chunks.count)))
                chunks.append(
                    .init(storedSize: UInt32(stored.count), crc: CRC32C.of(stored)))
                try await writing.add(stored)
                offset = end
            }
            return (chunks, try await writing.finish())
        } catch {
            self.assets.count("uploads failed")
            return nil
        }
    }

    private func pin(_ first: PinAsset, in group: GroupID, by courier: CopyCourier) async
        -> PinnedAsset?
    {
        var pin = first
        for _ in 0..<4 {
            switch await self.submit(pin, in: group, as: RecordWorld.users[0]) {
            case .success(let pinned): return pinned
            case .failure(.refused(let refusal)) where refusal.reason == .keyMissing:
                await self.findKey(of: group)
                // The mark of a chunk says no key, so the body need not be sealed anew.
                pin.stored.keyVersion = self.assets.keyVersion(of: group)
            case .failure(.notExecuted):
                self.assets.count("storers asked again")
                pin.stored.storers = await self.confirm(
                    pin.stored.body, pin.stored.chunks.count, in: group, by: courier)
            case .failure: return nil
            }
        }
        return nil
    }

    func confirm(
        _ body: BodyID, _ chunkCount: Int, in group: GroupID, by courier: CopyCourier
    ) async -> [CopyHolding] {
        var holdings: [CopyHolding] = []
        for node in self.members(of: group)?.members.sorted() ?? [] {
            let answer = await courier.confirm(
                body, chunkCount: UInt32(chunkCount), of: group, on: node,
                deadline: self.world.now + .milliseconds(400))
            if case .stored(let index) = answer {
                holdings.append(CopyHolding(node: node, at: index))
            }
        }
        return holdings
    }

    private static func checksum(of content: Bytes) -> String {
        "crc\(CRC32C.of(content))-\(content.count)"
    }

    private func delete(_ name: String, in group: GroupID) async {
        await self.modify(RecordOperation(.forceDelete, recordName: name), in: group, "deletions")
    }

    private func modify(_ operation: RecordOperation, in group: GroupID, _ what: String) async {
        var modify = ModifyRecords(
            database: AssetWorld.database,
            drawnIncarnation: ZoneIncarnation(self.world.random()), operations: [operation])
        modify.resolvesAssets = !operation.kind.isDelete
        guard
            case .success(.records(let modified)) = await self.submit(
                RecordCommand.modifyRecords(modify), in: group, as: RecordWorld.users[0])
        else { return }
        if case .refused? = modified.results.first {
            self.assets.count("\(what) refused")
        } else {
            self.assets.count(what)
        }
    }

    // MARK: Downloads

    private func download(_ name: String, of group: GroupID) async {
        guard let (reference, stored) = await self.find(name, of: group) else { return }
        let size = stored.body.size
        let start = UInt64(self.assets.draw(Int(size)))
        let range = self.assets.draw(2) == 0 ? 0..<size : start..<size
        guard let read = await self.read(stored.body, range, of: group) else {
            return self.assets.count("downloads failed")
        }
        self.assets.count("downloads")
        self.check(read, range, of: stored.body, as: reference)
    }

    /// The file of a record. What a record holds must be there.
    func find(_ name: String, of group: GroupID) async -> (AssetReference, StoredAsset)? {
        guard let (first, reference) = await self.record(name, of: group),
            let asset = reference.asset,
            let found = await self.read(
                AssetAsk(AssetWorld.database) { $0.asset = asset }, of: group)
        else { return nil }
        guard let stored = found else {
            if let (second, _) = await self.record(name, of: group), second == first {
                self.life.simulation.report(
                    asset: "\(asset) cannot be read, and record \(name) holds it")
            }
            return nil
        }
        if stored.fileChecksum != reference.fileChecksum {
            self.life.simulation.report(
                asset: "\(asset) has \(stored.fileChecksum), not \(reference.fileChecksum)")
        }
        return (reference, stored)
    }

    private func record(_ name: String, of group: GroupID) async -> (Record, AssetReference)? {
        let lookup = RecordLookup(
            database: AssetWorld.database, zone: ZoneID.defaultName, names: [name])
        guard
            case .lookup(let found)? = await self.read(
                RecordQuery.Ask.lookup(lookup), of: group, as: RecordWorld.users[0]),
            case .found(let record)? = found.items.first,
            case .scalar(.asset(let reference))? = record.value(of: "file")
        else { return nil }
        return (record, reference)
    }

    /// Nil: not all of it can be had now.
    func read(_ manifest: BodyManifest, _ range: Range<UInt64>, of group: GroupID) async -> Bytes? {
        guard let members = self.members(of: group), let courier = self.life.node.assets?.courier
        else { return nil }
        let own = self.life.node.id
        let others = members.members.filter { $0 != own }.sorted()
        var reader = BodyReader(
            manifest, range, sources: [.here] + others.map { .node($0) },
            deadline: self.world.now + .seconds(4))
        var read = Bytes()
        var actions = reader.advance()[...]
        while let action = actions.popFirst(), !self.life.isGone {
            switch action {
            case .fetch(let name, let source):
                let node = if case .node(let node) = source { node } else { own }
                let fetched = await courier.fetch(
                    name, of: group, from: node, deadline: self.world.now + .milliseconds(700))
                actions += reader.arrived(fetched.bytes, name, from: source)
            case .open(let ordinal, let bytes):
                actions += reader.opened(
                    AssetWorld.open(bytes, manifest.name(of: ordinal)), ordinal)
            case .send(let bytes): read += bytes
            case .repair(let name, let bytes):
                _ = await courier.put(
                    StoredCopy(name: name, orphanAfterMilliseconds: .max, bytes: bytes),
                    of: group, on: own, deadline: self.world.now + .seconds(1))
            case .failed: return nil
            case .finished: return read
            }
            if actions.isEmpty {
                actions += reader.tick(self.world.now) + reader.advance()
            }
        }
        return nil
    }

    func check(
        _ read: Bytes, _ range: Range<UInt64>, of manifest: BodyManifest,
        as reference: AssetReference
    ) {
        let sent = self.assets.contents[manifest.body]
        let part = sent.map { Bytes($0[Int(range.lowerBound)..<Int(range.upperBound)]) }
        guard part == read, sent.map(Self.checksum) == reference.fileChecksum else {
            return self.life.simulation.report(
                asset: "\(manifest.body): \(read.count) bytes were read that nobody sent")
        }
    }

    // MARK: Requests

    func submit<Operation: Submittable>(
        _ operation: Operation, in group: GroupID, as principal: Principal = RecordWorld.system
    ) async -> Result<Operation.Response, PartitionError<Operation.Refusal>> {
        guard !self.life.isGone, let partitions = self.life.node.assets?.partitions else {
            return .failure(.outcomeUnknown)
        }
        do throws(PartitionError<Operation.Refusal>) {
            return .success(
                try await partitions.submit(
                    operation, at: .group(group), as: Caller(principal, in: RecordWorld.container),
                    within: AssetWorld.commandLife))
        } catch {
            self.note(error, of: Operation.self)
            return .failure(error)
        }
    }

    /// Nil: it was not answered, or refused.
    func read<Question: Askable>(
        _ question: Question, of group: GroupID, as principal: Principal = RecordWorld.system
    ) async -> Question.Response? {
        guard !self.life.isGone, let partitions = self.life.node.assets?.partitions else {
            return nil
        }
        do throws(PartitionError<Question.Refusal>) {
            return try await partitions.ask(question, at: .group(group), as: Caller(principal))
        } catch {
            self.note(error, of: Question.self)
            return nil
        }
    }

    private func note<Refusal, Asked>(_ error: PartitionError<Refusal>, of _: Asked.Type) {
        guard case .unreadable(let why) = error else { return }
        self.life.simulation.report(asset: "\(Asked.self): \(why)")
    }
}
