import StratusAssets
import StratusCoding
import StratusConsensus
import StratusDoubles
import StratusModel
import StratusRecords
import StratusStorage

/// An administrator who finds copies of lost bodies on another disk. Bodies are called lost by hand
/// here, and copies are taken from some disks: simulated clusters do not run long enough to lose any.
extension AssetWorker {
    func loseAndAdopt(in group: GroupID) async {
        let bodies = self.assets.present(in: group)
        guard !bodies.isEmpty else { return }
        let body = bodies[self.assets.draw(bodies.count)]
        guard
            case .success(true) = await self.submit(LoseBody(body), in: group)
        else { return }
        self.assets.count("bodies lost by hand")
        for node in self.life.simulation.nodes where self.assets.draw(3) > 0 {
            node.assets?.takeAway(body, of: group)
        }
        for _ in 0..<(1 + self.assets.draw(3)) {
            await self.life.sleep(for: .milliseconds(self.assets.draw(2_000)))
            guard !self.life.isGone else { return }
            await self.adopt(body, in: group)
        }
    }

    private func adopt(_ body: BodyID, in group: GroupID) async {
        guard let content = self.assets.contents[body],
            let courier = self.life.node.assets?.courier,
            let position = self.life.node.partitions[group]?.store.appliedPosition,
            let found = await self.read(BodiesAsk([body]), of: group),
            let manifest = found.bodies.first ?? nil, manifest.isLost
        else { return }
        let (life, world) = (self.life, self.world)
        let adoption = BodyAdoption(
            by: courier,
            in: BodyAdoption.Partition(
                members: {
                    self.members(of: group).map {
                        BodyMembers(
                            group: group, all: Set($0.members),
                            voterSets: $0.isJoint
                                ? [Set($0.voters), Set($0.incoming)] : [Set($0.voters)])
                    }
                },
                find: { body, orphanAfter, storers in
                    await self.find(
                        FindBody {
                            $0.body = body
                            $0.orphanAfterMilliseconds = orphanAfter
                            $0.storers = storers
                        }, in: group)
                }), now: { life.isGone ? world.now + .seconds(60) : world.now },
            sleep: { await life.sleep(for: $0) })
        guard var look = await adoption.look(at: manifest), !life.isGone else { return }
        let orphanAfter =
            max(world.wallMilliseconds, position.time.milliseconds) + AssetWorld.orphanMilliseconds
        // Some disks have a part only.
        let missing = self.assets.draw(3) == 0 ? self.assets.draw(manifest.chunks.count) : -1
        for ordinal in manifest.chunks.indices where ordinal != missing {
            let start = ordinal * Int(AssetWorld.chunkSize)
            let end = min(start + Int(AssetWorld.chunkSize), content.count)
            let bytes = AssetWorld.seal(
                Bytes(content[start..<end]), manifest.name(of: UInt32(ordinal)))
            guard BodyAdoption.isSound(bytes, UInt32(ordinal), of: manifest) else {
                return life.simulation.report(asset: "\(body): a sound copy is called unsound")
            }
            _ = await adoption.put(bytes, UInt32(ordinal), &look, orphanAfter: orphanAfter)
            guard !life.isGone else { return }
        }
        if self.assets.draw(4) == 0 {
            await life.sleep(for: .milliseconds(self.assets.draw(5_000)))
        }
        let result = await adoption.finish(look, orphanAfter: orphanAfter)
        if !life.isGone { self.assets.count("adoptions \(result)") }
    }

    private func find(_ find: FindBody, in group: GroupID) async -> BodyAdoption.Finding {
        switch await self.submit(find, in: group) {
        case .success(let isThere): isThere ? .found : .gone
        case .failure(.notExecuted): .again
        case .failure: .failed
        }
    }
}
