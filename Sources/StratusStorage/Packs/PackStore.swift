import StratusCoding
package import StratusModel

/// One partition's copies on this node's disk: packs that only grow, and an index that can be made
/// again from them.
///
/// Owned by the thread that reads and writes packs: not `Sendable`. After a failure the next call
/// opens packs and index again, as a start does; nothing here ends the process, since a copy that
/// is not stored is told to nobody.
package final class PackStore: CopyStore {
    let directory: PackDirectory
    let files: any Files
    let limits: PackLimits
    private let drawSalt: () -> UInt64
    private var opened: OpenPacks?
    /// False once the index is known not to be trusted: the next opening makes it again.
    private var isIndexKept = true
    private var forgotten: Set<CopyName> = []
    /// Something made the index anew, or set a pack aside, since the last question.
    private var hasBegunAnew = false
    /// Packs whose last copies can be neither read nor given up: compaction leaves them alone.
    var stuckPacks: Set<UInt64> = []
    /// The position at which reading back continues.
    private var readBackPlace: (pack: UInt64, position: UInt64) = (0, 0)

    /// - Parameters:
    ///   - parent: the directory of all partitions' copies.
    ///   - drawSalt: unpredictable for whoever chooses the bytes of copies.
    package init(
        _ group: GroupID, in parent: DiskPath, of files: any Files, limits: PackLimits = .init(),
        drawSalt: @escaping () -> UInt64
    ) throws(StoreError) {
        self.directory = PackDirectory(group, in: parent)
        self.files = files
        self.limits = limits
        self.drawSalt = drawSalt
        try self.withPacks { (_) throws(StoreError) in }
    }

    // MARK: What copies are asked for

    @discardableResult
    package func put(_ copies: [StoredCopy]) throws(StoreError) -> [HeldCopy] {
        precondition(
            copies.reduce(0) { $0 + $1.bytes.count } <= CopyRound.sizeMax.raw,
            "more than a round of copies in one put")
        return try self.withPacks { (open) throws(StoreError) in
            var names: Set<CopyName> = []
            var new: [StoredCopy] = []
            var held: [HeldCopy] = []
            for copy in copies where names.insert(copy.name).inserted {
                precondition(
                    copy.bytes.count <= Int(AssetLimits.storedSizeMax), "a copy beyond its size")
                let place = try open.index.place(of: copy.name)
                if let place, !place.isDamaged {
                    held.append(place.record.copy)
                } else {
                    new.append(copy)
                }
            }
            try self.store(new, in: &open)
            return held
        }
    }

    package func copy(_ name: CopyName) throws(StoreError) -> Bytes? {
        try self.withPacks { (open) throws(StoreError) -> Bytes? in
            guard let place = try open.index.place(of: name), !place.isDamaged else { return nil }
            if case .sound(let bytes) = try self.content(of: place, in: &open) { return bytes }
            try open.index.change { () throws(StoreError) in
                try open.index.set(name, isDamaged: true)
            }
            self.forgotten.insert(name)
            return nil
        }
    }

    package func held(from name: CopyName, limit: Int) throws(StoreError) -> [HeldCopy] {
        try self.withPacks { (open) throws(StoreError) in
            try open.index.held(from: name, limit: limit)
        }
    }

    package func damaged(from name: CopyName, limit: Int) throws(StoreError) -> [HeldCopy] {
        try self.withPacks { (open) throws(StoreError) in
            try open.index.held(from: name, limit: limit, areDamaged: true)
        }
    }

    package func remove(_ names: [CopyName]) throws(StoreError) {
        try self.withPacks { (open) throws(StoreError) in
            var sizes: [UInt64: UInt64] = [:]
            try open.index.change { () throws(StoreError) in
                for name in names {
                    guard let place = try open.index.place(of: name) else { continue }
                    sizes[place.pack, default: 0] += place.record.end - place.record.position
                    try open.index.remove(name)
                }
            }
            for (number, size) in sizes { open.packs[number]?.liveSize -= size }
        }
    }

    package func takeForgotten() -> [CopyName] {
        defer { self.forgotten = [] }
        return self.forgotten.sorted()
    }

    package func takeBegunAnew() -> Bool {
        defer { self.hasBegunAnew = false }
        return self.hasBegunAnew
    }

    package func advance(_ work: PackWork, _ budget: ByteCount) throws(StoreError) -> PackProgress {
        try self.withPacks { (open) throws(StoreError) in
            switch work {
            case .compact: try self.compact(budget, in: &open)
            case .readBack: try self.readBack(budget, in: &open)
            }
        }
    }

    /// Ends the pack that puts go to, if there is one: what came is at rest and can be compacted.
    /// To be called when no upload has come for a while.
    package func seal() throws(StoreError) {
        try self.withPacks { (open) throws(StoreError) in try self.sealCurrent(in: &open) }
    }

    package func sizes() throws(StoreError) -> (all: ByteCount, live: ByteCount) {
        try self.withPacks { (open) throws(StoreError) in
            (
                ByteCount(open.packs.values.reduce(0) { $0 + Int($1.size) }),
                ByteCount(open.packs.values.reduce(0) { $0 + Int($1.liveSize) })
            )
        }
    }

    // MARK: Opening

    /// Runs `body` over the open packs. After a throw they are opened again by the next call.
    private func withPacks<Result>(_ body: (inout OpenPacks) throws(StoreError) -> Result)
        throws(StoreError) -> Result
    {
        var open: OpenPacks
        if let known = self.opened {
            open = known
            self.opened = nil
        } else {
            let recovery = PackRecovery(
                directory: self.directory, files: self.files, limits: self.limits)
            open = try recovery.run(isIndexKept: self.isIndexKept)
            if open.hasBegunAnew { self.hasBegunAnew = true }
            self.isIndexKept = true
            self.stuckPacks = []
        }
        do throws(StoreError) {
            let result = try body(&open)
            self.opened = open
            return result
        } catch {
            if error.kind == .corrupt || open.index.hasFailedSync { self.isIndexKept = false }
            if self.keepsPacks(after: error, &open) { self.opened = open }
            throw error
        }
    }

    /// Whether a failure left packs and index as they are known: a put that was refused a pack did.
    private func keepsPacks(after error: StoreError, _ open: inout OpenPacks) -> Bool {
        defer { self.isPackFailure = false }
        return self.isPackFailure && !open.index.hasFailedSync
    }

    private var isPackFailure = false

    // MARK: Storing

    /// Appends copies to the pack that is open, syncs them, and takes them into the index.
    func store(
        _ copies: [StoredCopy], in open: inout OpenPacks, isSynced: Bool = true,
        beforeIndexing: () throws(DiskError) -> Void = {}
    ) throws(StoreError) {
        var rest = copies[...]
        while !rest.isEmpty {
            let pack = try self.pack(for: rest.first!, in: &open)
            var end = pack.end
            var count = 0
            for copy in rest {
                end += UInt64(PackFormat.recordSize(of: UInt32(copy.bytes.count)))
                if count > 0, end > self.sizeMax { break }
                count += 1
            }
            let records = try self.append(
                Array(rest.prefix(count)), to: pack, in: &open,
                isSynced: isSynced && !self.limits.bugs.contains(.copyAnsweredBeforeSync))
            try onDisk { () throws(DiskError) in try beforeIndexing() }
            var freed: [UInt64: UInt64] = [:]
            let index = open.index
            try index.change { () throws(StoreError) in
                for record in records {
                    if let old = try index.place(of: record.copy.name) {
                        freed[old.pack, default: 0] += old.record.end - old.record.position
                    }
                    try index.put(record, in: pack.number)
                }
                try index.note(
                    PackIndex.Pack(number: pack.number, indexedTo: pack.end, isSealed: false))
            }
            for (number, size) in freed { open.packs[number]?.liveSize -= size }
            for record in records {
                open.packs[pack.number]?.liveSize += record.end - record.position
            }
            open.packs[pack.number]?.size = pack.end
            rest = rest.dropFirst(count)
        }
        if open.index.walFrameCount > self.limits.indexFrameCountMax {
            try open.index.checkpoint()
        }
    }

    private var sizeMax: UInt64 { UInt64(self.limits.packSizeMax.raw) }

    private func append(
        _ copies: [StoredCopy], to pack: PackFile, in open: inout OpenPacks, isSynced: Bool
    ) throws(StoreError) -> [PackRecord] {
        do throws(PackFailure) {
            return try pack.append(copies, isSynced: isSynced)
        } catch {
            self.isPackFailure = true
            if error.isSyncFailure {
                // The next put makes another file. What this one had synced before stays good.
                open.current = nil
            } else {
                do throws(DiskError) { try pack.cut() } catch { open.current = nil }
            }
            throw StoreError(error.error)
        }
    }

    /// The pack that a copy goes to.
    private func pack(for copy: StoredCopy, in open: inout OpenPacks) throws(StoreError)
        -> PackFile
    {
        let size = UInt64(PackFormat.recordSize(of: UInt32(copy.bytes.count)))
        if let current = open.current {
            let isEmpty = current.end <= UInt64(PackFormat.headerSize)
            if isEmpty || current.end + size <= self.sizeMax { return current }
            try self.sealCurrent(in: &open)
        }
        let number = open.nextNumber
        open.nextNumber += 1
        let header = PackHeader(
            group: self.directory.group, number: number, salt: self.drawSalt())
        do throws(DiskError) {
            let pack = try PackFile.make(header, in: self.directory, self.files)
            pack.asksTwice = self.limits.bugs.contains(.packUsedAfterFailedSync)
            open.current = pack
            open.packs[number] = OpenPacks.Pack(size: pack.end, liveSize: 0, isSealed: false)
            return pack
        } catch {
            // A full disk must not fill with files that were never begun.
            try? self.files.remove(self.directory.pack(number))
            self.isPackFailure = true
            throw StoreError(error)
        }
    }

    private func sealCurrent(in open: inout OpenPacks) throws(StoreError) {
        guard let pack = open.current else { return }
        open.current = nil
        do throws(PackFailure) { try pack.seal() } catch { throw StoreError(error.error) }
        let end = pack.end + UInt64(PackFormat.sealSize)
        try open.index.change { () throws(StoreError) in
            try open.index.note(
                PackIndex.Pack(number: pack.number, indexedTo: end, isSealed: true))
        }
        open.packs[pack.number]?.isSealed = true
        open.packs[pack.number]?.size = end
    }

    // MARK: Reading

    func forget(_ name: CopyName) { self.forgotten.insert(name) }

    /// What reading a copy's place came to.
    enum Reading {
        case sound(Bytes)
        /// Twice it did not read as it was written.
        case unsound
        /// The disk refused, which may be for a moment only.
        case unreadable
    }

    /// Reads a copy. A place that cannot be read is tried once more.
    ///
    /// - Throws: where nothing can be said of the place: too many files are open, for example.
    func content(of place: PackIndex.Place, in open: inout OpenPacks) throws(StoreError) -> Reading
    {
        var reading = Reading.unsound
        for _ in 0..<2 {
            do throws(DiskError) {
                let pack = try open.reader(
                    place.pack, in: self.directory, self.files,
                    countMax: self.limits.openPackCountMax)
                if let bytes = try pack?.content(of: place.record) { return .sound(bytes) }
            } catch {
                switch error.kind {
                case .notFound: reading = .unsound
                case .io: reading = .unreadable
                default: throw StoreError(error)
                }
            }
        }
        return reading
    }

    private func readBack(_ budget: ByteCount, in open: inout OpenPacks) throws(StoreError)
        -> PackProgress
    {
        var size = 0
        let (pack, position) = self.readBackPlace
        let places = try open.index.places(from: pack, position, limit: 256)
        for place in places {
            if size > 0, size >= budget.raw {
                return PackProgress(size: ByteCount(size), isDone: false)
            }
            size += Int(place.record.end - place.record.position)
            var isDamaged = true
            if case .sound = try self.content(of: place, in: &open) { isDamaged = false }
            if isDamaged != place.isDamaged {
                let name = place.record.copy.name
                try open.index.change { () throws(StoreError) in
                    try open.index.set(name, isDamaged: isDamaged)
                }
                if isDamaged { self.forgotten.insert(name) }
            }
            self.readBackPlace = (place.pack, place.record.end)
        }
        let isDone = places.count < 256
        if isDone { self.readBackPlace = (0, 0) }
        return PackProgress(size: ByteCount(size), isDone: isDone)
    }
}
