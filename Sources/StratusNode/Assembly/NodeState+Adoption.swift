import StratusAdmin
import StratusAssets
import StratusCluster
import StratusCoding
import StratusModel
import StratusRecords
import StratusRuntime

/// Copies from another disk, as an administrator brings them.
extension NodeState {
    private static let adoptionPatience = Duration.seconds(10)
    /// Copies of a body that is still lost stay so long if no row names them.
    private static let adoptionMilliseconds: Int64 = 6 * 3_600_000
    /// Bodies whose members are asked at a time.
    private static let lookCountMax = 64

    func needs(of bodies: [BodyID], in group: GroupID)
        async throws(NodeControlFailure) -> [BodyNeed?]
    {
        let manifests = try await self.manifests(of: bodies, in: group)
        let adoption = self.adoption(in: group)
        var needs: [BodyNeed?] = []
        while needs.count < manifests.count {
            let part = manifests[needs.count...].prefix(Self.lookCountMax)
            needs += await withTaskGroup(of: (Int, BodyNeed?).self) { tasks in
                for (place, manifest) in part.enumerated() {
                    tasks.addTask {
                        guard let manifest, let look = await adoption.look(at: manifest) else {
                            return (place, nil)
                        }
                        return (
                            place,
                            BodyNeed(
                                chunkCount: manifest.chunks.count, isLost: manifest.isLost,
                                isWanted: look.isWanted)
                        )
                    }
                }
                var found: [BodyNeed?] = part.map { _ in nil }
                for await (place, need) in tasks { found[place] = need }
                return found
            }
        }
        return needs
    }

    func adopt(_ body: BodyID, in group: GroupID, _ copies: CopyFrames)
        async throws(NodeControlFailure) -> AdoptedBody
    {
        var copies = copies
        guard let manifest = try await self.manifests(of: [body], in: group).first ?? nil else {
            return AdoptedBody(.unknown)
        }
        let adoption = self.adoption(in: group)
        guard var look = await adoption.look(at: manifest) else { throw .unavailable }
        let isWanted = look.isWanted
        let orphanAfter =
            self.world.wallMilliseconds + max(0, self.partitions.leadMilliseconds)
            + Self.adoptionMilliseconds
        var adopted = AdoptedBody(.incomplete)
        var count = 0
        while let (ordinal, bytes) = try await copies.next() {
            count += 1
            guard count <= 2 * manifest.chunks.count else {
                throw .refused("the body has \(manifest.chunks.count) chunks: these are too many")
            }
            if !BodyAdoption.isSound(bytes, ordinal, of: manifest) {
                adopted.unsoundCount += 1
            } else if isWanted,
                await adoption.put(bytes, ordinal, &look, orphanAfter: orphanAfter)
            {
                adopted.takenCount += 1
            }
        }
        adopted.state =
            switch await adoption.finish(look, orphanAfter: orphanAfter) {
            case .held: .held
            case .found: .found
            case .incomplete: .incomplete
            case .gone: .unknown
            }
        return adopted
    }

    private func adoption(in group: GroupID) -> BodyAdoption {
        let (cluster, world) = (self.cluster, self.world)
        return BodyAdoption(
            by: cluster.copies.carrier,
            in: BodyAdoption.Partition(
                members: { cluster.bodyMembers(in: group) },
                find: { body, orphanAfter, storers in
                    await self.find(
                        FindBody {
                            $0.body = body
                            $0.orphanAfterMilliseconds = orphanAfter
                            $0.storers = storers
                        }, in: group)
                }), now: { world.now }, sleep: { try? await Task.sleep(for: $0) })
    }

    private func find(_ find: FindBody, in group: GroupID) async -> BodyAdoption.Finding {
        do throws(RouteError) {
            let isThere = try await self.partitions.plain.submit(
                find, at: .group(group), within: Self.adoptionPatience)
            return isThere ? .found : .gone
        } catch {
            // It may be done twice: the second finds that the first has done it.
            switch error {
            case .notExecuted, .outcomeUnknown: return .again
            case .upgrading, .refused, .unreadable: return .failed
            }
        }
    }

    private func manifests(of bodies: [BodyID], in group: GroupID)
        async throws(NodeControlFailure) -> [BodyManifest?]
    {
        guard self.partitions.hasPartition(group) else {
            throw .refused("there is no such partition")
        }
        let found: FoundBodies
        do throws(RouteError) {
            found = try await self.partitions.plain.ask(
                BodiesAsk(Array(bodies.prefix(BodiesAsk.countMax))), at: .group(group),
                as: .system(until: self.world.now + Self.adoptionPatience))
        } catch { throw .unavailable }
        guard !found.bodies.isEmpty, found.bodies.count <= bodies.count else {
            throw .failed("an unexpected answer about bodies")
        }
        return found.bodies
    }
}
