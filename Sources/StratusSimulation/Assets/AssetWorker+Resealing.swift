import StratusAssets
import StratusCluster
import StratusCoding
import StratusConsensus
import StratusDoubles
import StratusModel
import StratusRecords
import StratusRows
import StratusStorage

// A rotation of keys, file by file, as it goes on beside clients.
extension AssetWorker {
    /// Makes keys where there are none, and learns which one is the newest.
    func findKey(of group: GroupID) async {
        guard let newest = await self.read(KeyAsk(AssetWorld.database) { _ in }, of: group) else {
            return
        }
        if let newest { return self.assets.noteKey(newest.version, of: group) }
        for version in 0...1 as ClosedRange<UInt32> { await self.put(version, in: group) }
    }

    private func put(_ version: UInt32, in group: GroupID) async {
        let put = PutKey(AssetWorld.database) {
            $0.version = version
            $0.key = AssetWorld.key
        }
        guard case .success(let key) = await self.submit(put, in: group) else { return }
        self.assets.noteKey(key.version, of: group)
    }

    /// Puts a body under the newest key in the place of the one that the file has.
    func reseal(_ name: String, in group: GroupID) async {
        guard let (reference, stored) = await self.find(name, of: group) else { return }
        let old = stored.body
        if old.keyVersion >= self.assets.keyVersion(of: group), self.assets.draw(3) == 0 {
            await self.put(old.keyVersion + 1, in: group)
        }
        let version = self.assets.keyVersion(of: group)
        guard old.keyVersion < version else { return }
        guard let read = await self.read(old, 0..<old.size, of: group) else {
            return self.assets.count("files not read for a newer key")
        }
        self.check(read, 0..<old.size, of: old, as: reference)
        guard let (body, content) = self.assets.newBody(of: old.body), content == read,
            let members = self.members(of: group), let courier = self.life.node.assets?.courier,
            let position = self.life.node.partitions[group]?.store.appliedPosition
        else { return }
        let orphanAfter =
            max(self.world.wallMilliseconds, position.time.milliseconds)
            + AssetWorld.orphanMilliseconds
        // A gateway that is content with one storer is refused by the leader.
        let isHasty = self.assets.draw(4) == 0
        guard
            let (chunks, storers) = await self.write(
                body, content,
                to: isHasty ? Configuration(voters: [self.life.node.id]) : members, of: group,
                by: courier, orphanAfter)
        else { return }
        if self.assets.draw(3) == 0 {
            await self.life.sleep(for: .milliseconds(self.assets.draw(2_000)))
        }
        var replace = ReplaceBody(AssetWorld.database) {
            $0.asset = stored.asset
            $0.old = old.body
            $0.new = StoredBody(
                body: body, size: old.size, chunkSize: old.chunkSize, keyVersion: version,
                chunks: chunks, orphanAfterMilliseconds: orphanAfter, storers: storers)
        }
        for _ in 0..<4 {
            switch await self.submit(replace, in: group) {
            case .success(.replaced):
                self.assets.count("bodies replaced")
                return await self.retireKeys(below: old.keyVersion, in: group)
            case .failure(.notExecuted):
                if isHasty { return self.assets.count("hasty replacements refused") }
                replace.new.storers = await self.confirm(body, chunks.count, in: group, by: courier)
            case .success(let why): return self.assets.count("bodies not replaced: \(why)")
            case .failure: return self.assets.count("bodies perhaps replaced")
            }
        }
    }

    /// Destroys the older keys once no file is under one.
    private func retireKeys(below version: UInt32, in group: GroupID) async {
        guard version > 1 else { return }
        var after: AssetID?
        repeat {
            let ask = OlderFilesAsk(AssetWorld.database) {
                $0.after = after
                $0.below = version
            }
            guard let page = await self.read(ask, of: group), page.files.isEmpty else { return }
            after = page.next
        } while after != nil
        let retire = RetireKeys(AssetWorld.database) { $0.below = version }
        guard case .success = await self.submit(retire, in: group) else { return }
        self.assets.count("keys retired")
    }
}
