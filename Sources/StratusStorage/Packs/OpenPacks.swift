import StratusModel

/// The packs of a store, as it knows them while it is open.
struct OpenPacks {
    struct Pack {
        /// The size of the file.
        var size: UInt64
        /// The size of the records that the index names.
        var liveSize: UInt64
        var isSealed: Bool
    }

    let index: PackIndex
    /// The index was made again, or a pack that it spoke of is gone.
    var hasBegunAnew = false
    var packs: [UInt64: Pack] = [:]
    /// The one that puts go to. Nil: the next put makes one.
    var current: PackFile?
    var nextNumber: UInt64 = 1
    /// Open for reading, the last used first.
    private var readers: [PackFile] = []

    init(_ index: PackIndex) { self.index = index }

    /// A pack to read from.
    mutating func reader(
        _ number: UInt64, in directory: PackDirectory, _ files: any Files, countMax: Int
    ) throws(DiskError) -> PackFile? {
        if let current = self.current, current.number == number { return current }
        if let position = self.readers.firstIndex(where: { $0.number == number }) {
            let pack = self.readers.remove(at: position)
            self.readers.insert(pack, at: 0)
            return pack
        }
        guard let pack = try PackFile.open(number, in: directory, files) else { return nil }
        self.readers.insert(pack, at: 0)
        if self.readers.count > countMax { self.readers.removeLast() }
        return pack
    }

    mutating func closeReader(_ number: UInt64) { self.readers.removeAll { $0.number == number } }

    /// The numbers of packs that `isWanted` says yes to, ascending.
    func numbers(where isWanted: (Pack) -> Bool) -> [UInt64] {
        self.packs.filter { isWanted($0.value) }.map(\.key).sorted()
    }
}
