import StratusCoding
import StratusModel

/// Gives back the room of what was removed.
///
/// What is still wanted of a pack is appended to the pack that is open, synced there and then
/// indexed there, slice by slice. A pack that nothing in the index speaks of goes. Wherever it is
/// cut off, each copy is in one pack or in both, and the index, whichever of its states is found,
/// or the tail behind it, names one that is there.
extension PackStore {
    func compact(_ budget: ByteCount, in open: inout OpenPacks) throws(StoreError) -> PackProgress {
        if let empty = open.numbers(where: { $0.isSealed && $0.liveSize == 0 }).first {
            try self.remove(pack: empty, in: &open)
            return PackProgress(size: 0, isDone: false)
        }
        guard let number = self.victim(in: open) else {
            return PackProgress(size: 0, isDone: true)
        }
        let space = try onDisk { () throws(DiskError) in try self.files.space() }
        guard space.free >= UInt64(self.limits.compactionRoom.raw) else {
            return PackProgress(size: 0, isDone: true)
        }
        var copies: [StoredCopy] = []
        var gone: [(name: CopyName, size: UInt64)] = []
        var damaged: [CopyName] = []
        var size = 0
        var read = 0
        for place in try open.index.places(from: number, 0, limit: 256) where place.pack == number {
            let next = Int(place.record.copy.storedSize)
            if read > 0, read + next > budget.raw || size + next > CopyRound.sizeMax.raw { break }
            read += next
            switch try self.content(of: place, in: &open) {
            case .sound(let bytes):
                size += next
                copies.append(
                    StoredCopy(
                        name: place.record.copy.name,
                        orphanAfterMilliseconds: place.record.copy.orphanAfterMilliseconds,
                        bytes: bytes))
            case .unsound where place.isDamaged:
                gone.append(
                    (place.record.copy.name, place.record.end - place.record.position))
            case .unsound, .unreadable:
                if !place.isDamaged { damaged.append(place.record.copy.name) }
            }
        }
        if !damaged.isEmpty {
            // Its place is kept, and read once more by a later slice.
            try open.index.change { () throws(StoreError) in
                for name in damaged { try open.index.set(name, isDamaged: true) }
            }
            for name in damaged { self.forget(name) }
        }
        if self.limits.bugs.contains(.packRemovedBeforeIndex) {
            try self.store(copies, in: &open, isSynced: false) { () throws(DiskError) in
                try self.files.remove(self.directory.pack(number))
                try self.files.syncDirectory(self.directory.path)
            }
        } else {
            try self.store(copies, in: &open)
        }
        if !gone.isEmpty {
            // It was damaged before, and again does not read as it was written: it does not go to
            // another pack.
            try open.index.change { () throws(StoreError) in
                for (name, _) in gone { try open.index.remove(name) }
            }
            for (_, size) in gone { open.packs[number]?.liveSize -= size }
        }
        if copies.isEmpty, gone.isEmpty, damaged.isEmpty { self.stuckPacks.insert(number) }
        return PackProgress(size: ByteCount(read), isDone: false)
    }

    /// The pack that compaction takes next: one of which half is garbage, the least wanted first;
    /// else the smallest of several small ones.
    private func victim(in open: OpenPacks) -> UInt64? {
        let half = open.numbers { $0.isSealed && $0.liveSize * 2 <= $0.size }
            .filter { !self.stuckPacks.contains($0) }
        if let least = half.min(by: { open.packs[$0]!.liveSize < open.packs[$1]!.liveSize }) {
            return least
        }
        let small = UInt64(self.limits.packSizeMax.raw / self.limits.smallPackPart)
        let several = open.numbers { $0.isSealed && $0.size < small }
            .filter { !self.stuckPacks.contains($0) }
        guard several.count >= 2 else { return nil }
        return several.min { open.packs[$0]!.size < open.packs[$1]!.size }
    }

    /// Removes a pack that the index does not speak of.
    private func remove(pack number: UInt64, in open: inout OpenPacks) throws(StoreError) {
        // What was in it is in other packs by commits that must last as long as its absence.
        try open.index.checkpoint()
        let path = self.directory.pack(number)
        open.closeReader(number)
        try onDisk { () throws(DiskError) in
            if try self.files.exists(path) { try self.files.remove(path) }
            try self.files.syncDirectory(self.directory.path)
        }
        try open.index.change { () throws(StoreError) in try open.index.remove(pack: number) }
        open.packs[number] = nil
    }
}
