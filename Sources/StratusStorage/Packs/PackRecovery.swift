import StratusCoding
import StratusModel

/// Brings index and packs together when a store is opened.
///
/// The packs are the truth. A pack that ends with its seal was synced whole. Of every other pack
/// the part behind the place that the index notes is read, written over itself and synced before it
/// counts; then it is sealed.
struct PackRecovery {
    let directory: PackDirectory
    let files: any Files
    let limits: PackLimits

    /// - Parameter isIndexKept: false to make the index again from the packs.
    func run(isIndexKept: Bool) throws(StoreError) -> OpenPacks {
        try onDisk { () throws(DiskError) in
            try self.files.makeDirectory(self.directory.path)
            try self.files.syncDirectories(upFrom: self.directory.path)
        }
        let isNew = try onDisk { () throws(DiskError) in
            try !self.files.exists(self.directory.index)
        }
        if !isIndexKept { try RowDatabase.discard(self.directory.index, in: self.files) }
        do throws(StoreError) {
            var open = try self.settle()
            if !isIndexKept || isNew { open.hasBegunAnew = true }
            return open
        } catch {
            guard error.kind == .corrupt, isIndexKept else { throw error }
        }
        try RowDatabase.discard(self.directory.index, in: self.files)
        var open = try self.settle()
        open.hasBegunAnew = true
        return open
    }

    private func settle() throws(StoreError) -> OpenPacks {
        var open = OpenPacks(try PackIndex(self.directory, in: self.files))
        let known = try open.index.packs()
        let numbers = try onDisk { () throws(DiskError) in
            try self.files.list(self.directory.path).compactMap(self.directory.number).sorted()
        }
        let present = Set(numbers)
        let gone = known.map(\.number).filter { !present.contains($0) }
        if !gone.isEmpty {
            open.hasBegunAnew = true
            try open.index.change { () throws(StoreError) in
                for number in gone { try open.index.remove(pack: number) }
            }
        }
        for number in numbers {
            let noted = known.first { $0.number == number }
            guard let pack = try self.open(number, open.index, isKnown: noted != nil) else {
                if noted != nil { open.hasBegunAnew = true }
                continue
            }
            if noted?.isSealed != true { try self.takeUp(pack, noted, open.index) }
            open.packs[number] = OpenPacks.Pack(
                size: try onDisk { () throws(DiskError) in try pack.length }, liveSize: 0,
                isSealed: true)
        }
        for (number, size) in try open.index.liveSizes() { open.packs[number]?.liveSize = size }
        open.nextNumber = (max(numbers.last ?? 0, known.last?.number ?? 0)) + 1
        return open
    }

    /// Opens a pack. Nil: it is none, and not in the way any more.
    private func open(_ number: UInt64, _ index: PackIndex, isKnown: Bool) throws(StoreError)
        -> PackFile?
    {
        let path = self.directory.pack(number)
        let found = try onDisk { () throws(DiskError) -> PackFile? in
            if let pack = try PackFile.open(number, in: self.directory, self.files) { return pack }
            let length = try self.files.open(path, create: false).length
            if length <= UInt64(PackFormat.headerSize) {
                // Its maker ended before the first record.
                try self.files.remove(path)
            } else {
                // Nothing tells its salt, so nothing in it can be told from what somebody chose. It
                // stays beside the others, for whoever wants to look.
                try self.files.rename(path, to: DiskPath(path.raw + ".damaged"))
            }
            try self.files.syncDirectory(self.directory.path)
            return nil
        }
        if found == nil, isKnown {
            try index.change { () throws(StoreError) in try index.remove(pack: number) }
        }
        return found
    }

    /// Reads what the index does not know of a pack, and makes sure of it.
    private func takeUp(_ pack: PackFile, _ noted: PackIndex.Pack?, _ index: PackIndex)
        throws(StoreError)
    {
        let start = noted?.indexedTo ?? UInt64(PackFormat.headerSize)
        let records = try onDisk { () throws(DiskError) -> [PackRecord] in
            if let seal = try pack.sealPosition() {
                // Synced before it was sealed. What the index lacks is read by its headers alone
                // where all of a pack is lacking: bytes that rotted are found when they are read.
                return try self.scan(pack, from: start, to: seal, readsContent: noted != nil).0
            }
            let (records, end) = try self.scan(
                pack, from: start, to: try pack.length, readsContent: true)
            try pack.makeDurable(from: start, to: end)
            do throws(PackFailure) { try pack.seal() } catch { throw error.error }
            return records
        }
        let end = try onDisk { () throws(DiskError) in try pack.length }
        try index.change { () throws(StoreError) in
            for record in records { try index.put(record, in: pack.number) }
            try index.note(
                PackIndex.Pack(number: pack.number, indexedTo: end, isSealed: true))
        }
    }

    /// The sound records of a part of a pack, and the place behind the last of them.
    private func scan(
        _ pack: PackFile, from start: UInt64, to limit: UInt64, readsContent: Bool
    ) throws(DiskError) -> ([PackRecord], UInt64) {
        let reads = readsContent && !self.limits.bugs.contains(.tornCopyIndexed)
        return try PackScan.records(
            in: pack.header, from: start, to: limit,
            read: { (count, position) throws(DiskError) in try pack.bytes(count, at: position) },
            isSound: { (record) throws(DiskError) in
                if !reads { return true }
                return try pack.content(of: record) != nil
            })
    }
}
