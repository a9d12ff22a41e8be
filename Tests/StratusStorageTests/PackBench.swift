import StratusCoding
import StratusDoubles
import StratusModel
import StratusStorage

/// A store of copies over a simulated disk, with a model of what it must have.
final class PackBench {
    static let group = GroupID(12)

    let files: SimulatedFiles
    private(set) var salts: SeededGenerator

    init(seed: UInt64 = 1) {
        self.files = SimulatedFiles(seed: seed)
        self.salts = SeededGenerator(seed: seed &* 77 &+ 5)
    }

    static func limits(_ bugs: [PackBug] = []) -> PackLimits {
        var limits = PackLimits()
        limits.packSizeMax = 4_096
        limits.compactionRoom = 8_192
        limits.openPackCountMax = 2
        limits.indexFrameCountMax = 24
        #if STRATUS_PLANTED
            limits.bugs = PackBugs(bugs)
        #endif
        return limits
    }

    func open(_ bugs: [PackBug] = []) throws(StoreError) -> PackStore {
        try PackStore(
            Self.group, in: "assets", of: self.files, limits: Self.limits(bugs),
            drawSalt: { self.salts.next() })
    }

    /// The copy of a name is the same whenever it is made.
    static func copy(_ body: Int, _ ordinal: UInt32 = 0) -> StoredCopy {
        let name = CopyName(body: BodyID(UInt128(body)), ordinal: ordinal)
        var random = SeededGenerator(seed: UInt64(body) &* 1_000 &+ UInt64(ordinal))
        let count = Int.random(in: 18...700, using: &random)
        return StoredCopy(
            name: name, orphanAfterMilliseconds: Int64(body) * 10,
            bytes: (0..<count).map { _ in UInt8.random(in: .min ... .max, using: &random) })
    }

    static func all(in store: PackStore) throws(StoreError) -> [HeldCopy] {
        var found: [HeldCopy] = []
        var name: CopyName? = .first
        while let from = name {
            let page = try store.held(from: from, limit: 3)
            found += page
            name = page.last?.name.next
            if page.isEmpty { break }
        }
        return found
    }

    var packs: [DiskPath] { self.files.allFiles.filter { $0.raw.hasSuffix(".pack") } }
}
