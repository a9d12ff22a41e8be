import StratusCoding
import StratusDoubles
import StratusModel
import StratusStorage

/// The real packs of one replica, observed: what they acknowledge must be there when they are
/// opened again, and what rows name must not leave them.
final class ObservedCopies: CopyStore {
    private let store: PackStore
    private let group: GroupID
    private let life: ProcessLife

    init(of group: GroupID, in life: ProcessLife) throws(StoreError) {
        let world = life.node.world
        var limits = PackLimits()
        limits.packSizeMax = .kibibytes(4)
        limits.compactionRoom = ByteCount(0)
        #if STRATUS_PLANTED
            if life.simulation.bugs.contains(.copyAnsweredBeforeSync) {
                limits.bugs = PackBugs([.copyAnsweredBeforeSync])
            }
        #endif
        self.store = try PackStore(
            group, in: AssetShells.directory, of: world.files, limits: limits,
            drawSalt: { world.random() })
        self.group = group
        self.life = life
        var found: [HeldCopy] = []
        var next: CopyName? = .first
        while let from = next {
            let page = try self.store.held(from: from, limit: 1_000)
            found += page
            next = page.count == 1_000 ? page.last?.name.next : nil
        }
        var sound: [CopyName: UInt32] = [:]
        for copy in found {
            guard let bytes = try self.store.copy(copy.name) else { continue }
            sound[copy.name] = CRC32C.of(bytes)
        }
        if !life.isGone { life.simulation.opened(sound, of: group, on: life.node) }
        life.node.assets?.opened(self, of: group)
    }

    func put(_ copies: [StoredCopy]) throws(StoreError) -> [HeldCopy] {
        let held = try self.store.put(copies)
        guard !self.life.isGone else { return held }
        for copy in copies {
            self.life.simulation.assets?.put(
                copy.name, CRC32C.of(copy.bytes), of: self.group, on: self.life.node.id)
        }
        return held
    }

    func remove(_ names: [CopyName]) throws(StoreError) {
        do throws(StoreError) { try self.store.remove(names) } catch {
            // A commit that failed may be on disk all the same: the next start shows it.
            self.life.simulation.removed(names, of: self.group, on: self.life.node, isSure: false)
            throw error
        }
        self.life.simulation.removed(names, of: self.group, on: self.life.node, isSure: true)
    }

    /// Damage: the copies of a body are gone, and nobody was told.
    func takeAway(_ body: BodyID) {
        guard !self.life.isGone, let assets = self.life.simulation.assets,
            let page = try? self.store.held(from: CopyName(body: body, ordinal: 0), limit: 100)
        else { return }
        let names = page.map(\.name).filter { $0.body == body }
        let isSure = (try? self.store.remove(names)) != nil
        for name in names {
            assets.removed(name, of: self.group, on: self.life.node.id, isSure: isSure)
        }
    }

    func copy(_ name: CopyName) throws(StoreError) -> Bytes? { try self.store.copy(name) }

    /// A put that failed may have left its copies all the same: they are seen when they are listed.
    func held(from name: CopyName, limit: Int) throws(StoreError) -> [HeldCopy] {
        let page = try self.store.held(from: name, limit: limit)
        guard let assets = self.life.simulation.assets, !self.life.isGone else { return page }
        for copy in page
        where !assets.has(copy.name, of: self.group, on: self.life.node.id) {
            guard let bytes = try self.store.copy(copy.name) else { continue }
            assets.put(copy.name, CRC32C.of(bytes), of: self.group, on: self.life.node.id)
        }
        return page
    }

    func damaged(from name: CopyName, limit: Int) throws(StoreError) -> [HeldCopy] {
        try self.store.damaged(from: name, limit: limit)
    }
    func advance(_ work: PackWork, _ budget: ByteCount) throws(StoreError) -> PackProgress {
        try self.store.advance(work, budget)
    }
    func seal() throws(StoreError) { try self.store.seal() }
    func sizes() throws(StoreError) -> (all: ByteCount, live: ByteCount) {
        try self.store.sizes()
    }
    func takeForgotten() -> [CopyName] { self.store.takeForgotten() }
    func takeBegunAnew() -> Bool { self.store.takeBegunAnew() }
}
