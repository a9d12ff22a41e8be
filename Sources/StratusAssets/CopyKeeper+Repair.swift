import StratusCoding
package import StratusModel

// What the keeper does so that every copy that rows name is here, and sound: reads copies back,
// brings what is missing from other members, and says through which entry nothing is missing.
extension CopyKeeper {
    /// Copies that are fetched at a time: those of one round share a sync.
    private static let fetchCountMax = 8
    /// How fast copies are read back at least once somebody has asked for it.
    package static let askedRate = ByteCount.mebibytes(4)
    /// How long every member must lack a copy before its body is called lost, and how often all
    /// must have said so.
    package static let absentPatience = Duration.seconds(600)
    private static let absentLookCount = 5
    /// Bodies of one partition that are watched for that. The others follow once these are lost.
    private static let absentCountMax = 1_000
    /// Between two rounds of asking for what nobody had.
    private static let repairPause = Duration.seconds(5)

    // MARK: What is held

    /// Says through which entry the replica has every copy; nothing while that is not known.
    func sayHeld(of group: GroupID) {
        guard !self.isStopped, let through = self.heldThrough(of: group) else { return }
        self.setup.sayHeld(group, through)
    }

    /// The last entry through which every copy that was named is here. Nil: not known now.
    package func heldThrough(of group: GroupID) -> LogIndex? {
        // What entries up to the one that was told did to bodies is heard behind this.
        guard let applied = self.appliedNow(group), self.groups[group]!.doubtCount == 0 else {
            return nil
        }
        self.groups[group]!.wants.applied(through: applied)
        return self.groups[group]!.wants.heldThrough
    }

    /// The copies of a part of the names that the store has, sound ones or damaged ones. Nil: it
    /// cannot be read.
    func copies(
        of group: GroupID, _ from: CopyName, _ end: CopyName?, areDamaged: Bool
    ) -> [HeldCopy]? {
        guard self.groups[group]?.store != nil || self.setup.hasStore(group) else { return [] }
        var all: [HeldCopy] = []
        var next: CopyName? = from
        while let name = next {
            let page = self.attempt(group, makes: false) { store throws(StoreError) in
                areDamaged
                    ? try store.damaged(from: name, limit: 4_096)
                    : try store.held(from: name, limit: 4_096)
            }
            guard let page else { return nil }
            let inside = page.filter { copy in end.map { copy.name < $0 } ?? true }
            all += inside
            next = inside.count == 4_096 ? inside.last?.name.next : nil
        }
        return all
    }

    /// The rows call a body lost no more. What is here of it was listed nowhere while they did.
    func found(_ body: BodyManifest, in group: GroupID) {
        var held = self.copies(
            of: group, body.name(of: 0), CopyName(body: body.body, ordinal: .max),
            areDamaged: false)
        if self.setup.bugs.contains(.foundTakenAsHeld) {
            held = body.chunks.enumerated().map { ordinal, chunk in
                HeldCopy(
                    name: body.name(of: UInt32(ordinal)), orphanAfterMilliseconds: .max,
                    storedSize: chunk.storedSize, crc: chunk.crc)
            }
        }
        self.groups[group]!.wants.found(body, held: held ?? [])
        // What cannot be read now counts as missing until the next comparison.
        if held == nil { self.compareLater(group) }
    }

    // MARK: Repairing

    /// Brings copies that rows name and this node lacks, for the bytes of one second at most. Each
    /// is held against its row before it is stored.
    package func repair(at rate: ByteCount) async {
        self.noteLacks()
        guard self.setup.fetch != nil, !self.isRepairing else { return }
        self.isRepairing = true
        defer { self.isRepairing = false }
        var left = rate.raw > 0 ? rate.raw : Int.max
        for group in self.groups.keys.sorted() {
            guard let known = self.groups[group], known.wants.missingCount > 0,
                known.repairAfter.map({ self.setup.now() >= $0 }) ?? true
            else { continue }
            let wanted = known.wants.wanted(
                from: known.repairFrom, limit: Self.repairCountMax)
            var brought = 0
            var next = 0
            while next < wanted.count, left > 0, !self.isStopped {
                let first = next
                var size = 0
                while next < wanted.count, next - first < Self.fetchCountMax, size < left {
                    size += Int(wanted[next].chunk.storedSize)
                    next += 1
                }
                let round = Array(wanted[first..<next])
                let sizes = await self.bring(round, of: group)
                // Those that nobody has do not keep the others waiting.
                if let last = round.last {
                    self.groups[group]?.repairFrom = last.name.next ?? .first
                }
                brought += sizes.count
                left -= sizes.reduce(0, +)
            }
            self.repairedCount += brought
            self.groups[group]?.repairAfter =
                brought == 0 ? self.setup.now() + Self.repairPause : nil
        }
        self.noteLacks()
    }

    /// - Returns: the sizes of those that were brought and stored.
    private func bring(
        _ round: [(name: CopyName, chunk: BodyManifest.Chunk)], of group: GroupID
    ) async -> [Int] {
        await withTaskGroup(of: Int.self, returning: [Int].self) { tasks in
            for item in round {
                let (name, chunk) = item
                tasks.addTask { await self.bring(name, chunk, of: group) }
            }
            var sizes: [Int] = []
            for await size in tasks where size > 0 { sizes.append(size) }
            return sizes
        }
    }

    /// - Returns: its size; 0 where nobody had it as its row says.
    private func bring(
        _ name: CopyName, _ chunk: BodyManifest.Chunk, of group: GroupID
    ) async -> Int {
        guard let fetch = self.setup.fetch else { return 0 }
        let fetched = await fetch(name, group)
        self.note(fetched, of: name, in: group)
        guard let bytes = fetched.bytes, bytes.count == Int(chunk.storedSize),
            Self.checksum(bytes) == chunk.crc
        else { return 0 }
        let copy = StoredCopy(name: name, orphanAfterMilliseconds: .max, bytes: bytes)
        guard case .stored = await self.put(copy, of: group) else { return 0 }
        return bytes.count
    }

    /// Every member has said for ten minutes that it lacks the copy: nobody waits for its body any
    /// more, once the leader says so. One that does not answer may have it, and ends that time.
    private func note(_ fetched: CopyFetch, of name: CopyName, in group: GroupID) {
        guard let known = self.groups[group] else { return }
        let now = self.setup.now()
        guard case .absent = fetched else {
            self.groups[group]!.absent[name.body] = nil
            return
        }
        guard var absence = known.absent[name.body] else {
            if known.absent.count < Self.absentCountMax {
                self.groups[group]!.absent[name.body] = Absence(since: now)
            }
            return
        }
        absence.lookCount += 1
        self.groups[group]!.absent[name.body] = absence
        guard now >= absence.since + Self.absentPatience,
            absence.lookCount >= Self.absentLookCount, known.isCompared, known.doubtCount == 0,
            self.setup.mayLose(group),
            // It counts only if this node's own disk can be read and says the same.
            case .absent = self.fetch(name, of: group),
            self.groups[group]?.wants.isMissing(name) == true
        else { return }
        self.groups[group]!.absent[name.body] = nil
        self.lostCount += 1
        self.setup.trouble(group, "\(name.body) is lost: no member has a sound copy of \(name)")
        self.setup.loseBody(group, name.body)
    }

    private func noteLacks() {
        let now = self.setup.now()
        for group in self.groups.keys.sorted() {
            let lacks = self.groups[group]!.wants.missingCount > 0
            if !lacks {
                self.groups[group]!.lacksSince = nil
                self.groups[group]!.absent = [:]
            } else if self.groups[group]!.lacksSince == nil {
                self.groups[group]!.lacksSince = now
            }
        }
    }

    // MARK: Reading back

    /// Reads copies and checks them, for the bytes of one second at most: what has rotted is found
    /// before somebody asks for it, while other members still have it.
    ///
    /// - Parameter interval: between two times that the same copy is read.
    package func readBack(at rate: ByteCount, every interval: Duration) async {
        let isAsked = self.groups.values.contains { $0.isReadingBack }
        guard rate.raw > 0 || isAsked else { return }
        var left = max(rate.raw, Self.askedRate.raw)
        for group in self.groups.keys.sorted() {
            guard let known = self.groups[group],
                known.isReadingBack || self.setup.now() >= known.readBackAt + interval,
                known.readBackAfter.map({ self.setup.now() >= $0 }) ?? true
            else { continue }
            guard known.store != nil || self.setup.hasStore(group) else {
                self.groups[group]!.readBackAt = self.setup.now()
                self.groups[group]!.isReadingBack = false
                continue
            }
            self.groups[group]!.isReadingBack = true
            while left > 0, !self.isStopped, self.groups[group]?.puts.isEmpty == true {
                let budget = ByteCount(min(left, Self.slice.raw))
                let progress = self.attempt(group, makes: false) { store throws(StoreError) in
                    try store.advance(.readBack, budget)
                }
                guard let progress else {
                    // What failed once may go well later. Nothing was read, so nothing is done.
                    let now = self.setup.now()
                    if let pause = self.groups[group]?.readBackFailures.add(at: now) {
                        self.groups[group]?.readBackAfter = now + pause
                    }
                    break
                }
                self.groups[group]?.readBackAfter = nil
                guard !progress.isDone else {
                    self.groups[group]?.isReadingBack = false
                    self.groups[group]?.readBackAt = self.setup.now()
                    break
                }
                left -= max(1, progress.size.raw)
                await Task.yield()
            }
            if left <= 0 || self.isStopped { return }
        }
    }

    /// Reads everything back now, whenever it was read last.
    ///
    /// - Returns: how many partitions have copies here.
    package func readBackSoon() -> Int {
        var count = 0
        for group in self.groups.keys.sorted() where self.setup.hasStore(group) {
            count += 1
            self.groups[group]!.isReadingBack = true
        }
        return count
    }
}
