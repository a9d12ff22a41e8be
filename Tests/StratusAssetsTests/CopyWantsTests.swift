import StratusAssets
import StratusModel
import Testing

/// Against a model that keeps everything and computes each answer anew.
@Suite struct CopyWantsTests {
    /// All rows, all entries, all copies.
    struct Dumb {
        struct Entry {
            var time: Int64
            var named: BodyManifest?
            var dropped: BodyID?
            var lost: BodyID?
            var found: BodyID?
        }

        /// The entries with indexes from 1 on.
        var entries: [Entry] = []
        var applied = 0
        var durable = 0
        var held: [CopyName: HeldCopy] = [:]

        func named(through index: Int) -> [BodyID: BodyManifest] {
            var named: [BodyID: BodyManifest] = [:]
            for (place, entry) in self.entries.prefix(index).enumerated() {
                if let body = entry.named { named[body.body] = body }
                if let body = entry.dropped { named[body] = nil }
                if let body = entry.lost { named[body]?.isLost = true }
                if let body = entry.found {
                    named[body]?.isLost = false
                    named[body]?.namedAt = LogIndex(UInt64(place + 1))
                }
            }
            return named
        }

        var missing: [CopyName] {
            self.named(through: self.applied).values.filter { !$0.isLost }.flatMap { body in
                body.chunks.indices.map { body.name(of: UInt32($0)) }
            }.filter { self.held[$0] == nil }.sorted()
        }

        var heldThrough: LogIndex {
            let named = self.named(through: self.applied)
            let first = self.missing.map { named[$0.body]!.namedAt.raw }.min()
            return LogIndex(first.map { $0 - 1 } ?? UInt64(self.applied))
        }

        /// The copies that may be removed; no others may.
        var removable: Set<CopyName> {
            let dropped = Set(self.entries.prefix(self.durable).compactMap(\.dropped))
            let time = self.entries.prefix(self.durable).last?.time ?? 0
            let applied = self.named(through: self.applied)
            let durable = self.named(through: self.durable)
            return Set(
                self.held.values.filter { copy in
                    let body = copy.name.body
                    return applied[body] == nil && durable[body] == nil
                        && (dropped.contains(body) || copy.orphanAfterMilliseconds < time)
                }.map(\.name))
        }
    }

    static func manifest(_ body: Int, at index: Int) -> BodyManifest {
        let count = body % 3 + 1
        return BodyManifest(
            body: BodyID(UInt128(body)), database: 1, namedAt: LogIndex(UInt64(index)),
            size: UInt64(count) * 64, chunkSize: 64, keyVersion: 1,
            chunks: (0..<count).map { .init(storedSize: 80, crc: UInt32(body * 10 + $0)) })
    }

    static func copy(_ body: Int, _ ordinal: Int, orphanAfter: Int64) -> HeldCopy {
        HeldCopy(
            name: CopyName(body: BodyID(UInt128(body)), ordinal: UInt32(ordinal)),
            orphanAfterMilliseconds: orphanAfter, storedSize: 80,
            crc: UInt32(body * 10 + ordinal))
    }

    @Test(arguments: 0..<160 as Range<UInt64>)
    func `A-31 any history wants, lacks and lets go what the model says`(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        var dumb = Dumb()
        var time: Int64 = 100
        var limits = CopyWants.Limits()
        let isSmall = seed % 4 == 0
        if isSmall { limits.countMax = 3 }
        var wants = CopyWants(applied: .zero, milliseconds: 0, limits: limits)
        var isCompared = false
        var putBodies: Set<Int> = []
        var namedBodies: Set<Int> = []
        for step in 0..<150 {
            switch Int.random(in: 0..<18, using: &random) {
            case 0..<5:
                // A put, or a copy that was fetched: only of what was never let go.
                let body = Int.random(in: 0..<12, using: &random)
                let everDropped = dumb.entries.contains { $0.dropped?.raw == UInt128(body) }
                guard !everDropped else { continue }
                let copy = Self.copy(
                    body, Int.random(in: 0...(body % 3), using: &random),
                    orphanAfter: time + Int64.random(in: 0...50, using: &random))
                guard dumb.held[copy.name] == nil else { continue }
                putBodies.insert(body)
                dumb.held[copy.name] = copy
                wants.stored(copy)
            case 5..<7:
                let body = Int.random(in: 0..<12, using: &random)
                guard namedBodies.insert(body).inserted else { continue }
                time += Int64.random(in: 0...20, using: &random)
                dumb.entries.append(
                    .init(time: time, named: Self.manifest(body, at: dumb.entries.count + 1)))
            case 7:
                let named = dumb.named(through: dumb.entries.count).keys.sorted()
                guard let body = named.first else { continue }
                time += Int64.random(in: 0...20, using: &random)
                dumb.entries.append(.init(time: time, dropped: body))
            case 16:
                let named = dumb.named(through: dumb.entries.count).filter { !$0.value.isLost }
                guard let body = named.keys.sorted().randomElement(using: &random) else { continue }
                dumb.entries.append(.init(time: time, lost: body))
            case 17:
                let named = dumb.named(through: dumb.entries.count).filter(\.value.isLost)
                guard let body = named.keys.sorted().first else { continue }
                dumb.entries.append(.init(time: time, found: body))
            case 8:
                time += Int64.random(in: 0...60, using: &random)
                dumb.entries.append(.init(time: time))
            case 9..<12:
                guard dumb.applied < dumb.entries.count else { continue }
                let entry = dumb.entries[dumb.applied]
                let before = dumb.named(through: dumb.applied)
                dumb.applied += 1
                let index = LogIndex(UInt64(dumb.applied))
                if let body = entry.named { wants.named(body) }
                if let body = entry.dropped {
                    wants.dropped(
                        body, chunkCount: UInt32(before[body]!.chunks.count), at: index)
                }
                if let body = entry.lost {
                    wants.dropped(
                        body, chunkCount: UInt32(before[body]!.chunks.count), at: index,
                        isLost: true)
                }
                if let body = entry.found {
                    wants.found(
                        dumb.named(through: dumb.applied)[body]!,
                        held: dumb.held.values.filter { $0.name.body == body })
                }
                wants.applied(through: index)
            case 12:
                dumb.durable = Int.random(in: dumb.durable...dumb.applied, using: &random)
                guard dumb.durable > 0 else { continue }
                wants.durable(
                    through: LogIndex(UInt64(dumb.durable)),
                    milliseconds: dumb.entries[dumb.durable - 1].time)
            case 13:
                guard let name = dumb.held.keys.sorted().randomElement(using: &random) else {
                    continue
                }
                dumb.held[name] = nil
                wants.forgotten(name, of: dumb.named(through: dumb.applied)[name.body])
            case 14:
                let names = wants.removable(limit: 5)
                for name in names {
                    #expect(
                        dumb.held[name] == nil || dumb.removable.contains(name),
                        "seed \(seed), step \(step): \(name) goes and must not")
                    dumb.held[name] = nil
                }
                wants.removed(names)
            default:
                // The node ends: rows are the durable ones again, and all is compared anew.
                if Bool.random(using: &random) {
                    dumb.applied = dumb.durable
                    let last = dumb.entries.prefix(dumb.durable).last
                    wants = CopyWants(
                        applied: LogIndex(UInt64(dumb.durable)), milliseconds: last?.time ?? 0,
                        limits: limits)
                    isCompared = false
                    #expect(wants.heldThrough == nil)
                }
                let rows = dumb.named(through: dumb.applied)
                repeat {
                    let from = wants.nextPage
                    let end = CopyName(
                        body: BodyID(from.body.raw + UInt128.random(in: 1...6, using: &random)),
                        ordinal: 0)
                    let isLast = end.body.raw > 12
                    wants.compare(
                        .init(
                            from: from, end: isLast ? nil : end,
                            bodies: rows.values.filter {
                                $0.body >= from.body && (isLast || $0.body < end.body)
                            }.sorted { $0.body < $1.body },
                            held: dumb.held.values.filter {
                                $0.name >= from && (isLast || $0.name < end)
                            }.sorted { $0.name < $1.name }))
                    if isLast { break }
                } while true
                isCompared = true
            }
            guard isCompared else { continue }
            let through = try #require(wants.heldThrough)
            if isSmall {
                // With lists that are too short it may say less, never more.
                #expect(through <= dumb.heldThrough, "seed \(seed), step \(step)")
                #expect(
                    wants.hasUnlisted
                        || Set(dumb.missing).isSubset(of: wants.wanted(limit: 99).map(\.name)),
                    "seed \(seed), step \(step)")
            } else {
                #expect(through == dumb.heldThrough, "seed \(seed), step \(step)")
                #expect(
                    wants.wanted(limit: 99).map(\.name) == dumb.missing,
                    "seed \(seed), step \(step)")
                let held = wants.removable(limit: 999).filter { dumb.held[$0] != nil }
                // What a start forgot about a drop goes as an orphan does, later.
                #expect(Set(held).isSubset(of: dumb.removable), "seed \(seed), step \(step)")
            }
        }
    }

    @Test func `a copy that is not what the row says is still wanted`() {
        var wants = CopyWants(applied: .zero, milliseconds: 0)
        wants.compare(.init(from: .first, end: nil, bodies: [], held: []))
        wants.named(Self.manifest(3, at: 1))
        wants.applied(through: LogIndex(1))
        var copy = Self.copy(3, 0, orphanAfter: 5)
        copy.crc += 1
        wants.stored(copy)
        #expect(wants.heldThrough == .zero)
        wants.stored(Self.copy(3, 0, orphanAfter: 5))
        #expect(wants.heldThrough == LogIndex(1))
    }

    @Test func `a lost body is waited for by nobody, and its copies stay`() {
        var wants = CopyWants(applied: .zero, milliseconds: 0)
        wants.compare(.init(from: .first, end: nil, bodies: [], held: []))
        wants.stored(Self.copy(5, 0, orphanAfter: 5))
        wants.named(Self.manifest(5, at: 1))
        wants.applied(through: LogIndex(1))
        #expect(wants.missingCount == 2)
        wants.dropped(BodyID(5), chunkCount: 3, at: LogIndex(2), isLost: true)
        wants.applied(through: LogIndex(2))
        wants.durable(through: LogIndex(2), milliseconds: 1_000)
        #expect(wants.heldThrough == LogIndex(2))
        #expect(wants.removable(limit: 9).isEmpty)
    }

    @Test func `copies of a lost body that come later stay, and count once it is found`() {
        var wants = CopyWants(applied: .zero, milliseconds: 0)
        wants.compare(.init(from: .first, end: nil, bodies: [], held: []))
        wants.named(Self.manifest(5, at: 1))
        wants.dropped(BodyID(5), chunkCount: 3, at: LogIndex(2), isLost: true)
        wants.stored(Self.copy(5, 0, orphanAfter: 5))
        wants.stored(Self.copy(5, 2, orphanAfter: 5))
        wants.applied(through: LogIndex(2))
        wants.durable(through: LogIndex(2), milliseconds: 1_000)
        #expect(wants.removable(limit: 9).isEmpty)
        #expect(wants.unnamedCount == 0)
        let held = [0, 2].map { Self.copy(5, $0, orphanAfter: 5) }
        wants.found(Self.manifest(5, at: 3), held: held)
        wants.applied(through: LogIndex(3))
        #expect(wants.wanted(limit: 9).map(\.name.ordinal) == [1])
        #expect(wants.heldThrough == LogIndex(2))
        wants.stored(Self.copy(5, 1, orphanAfter: 5))
        #expect(wants.heldThrough == LogIndex(3))
    }

    @Test func `while more bodies are lost than are listed, no copy that comes goes`() {
        var limits = CopyWants.Limits()
        limits.countMax = 2
        var wants = CopyWants(applied: .zero, milliseconds: 0, limits: limits)
        wants.compare(.init(from: .first, end: nil, bodies: [], held: []))
        // Each has one chunk.
        for body in [3, 6, 9] {
            wants.named(Self.manifest(body, at: body))
            wants.dropped(
                BodyID(UInt128(body)), chunkCount: 1, at: LogIndex(UInt64(body)), isLost: true)
        }
        wants.applied(through: LogIndex(9))
        wants.stored(Self.copy(9, 0, orphanAfter: 5))
        wants.durable(through: LogIndex(9), milliseconds: 1_000)
        #expect(!wants.wantsComparison)
        #expect(wants.removable(limit: 9).isEmpty)
        // Two go, so the next comparison lists the third.
        for body in [3, 6] {
            wants.dropped(BodyID(UInt128(body)), chunkCount: 1, at: LogIndex(9))
        }
        #expect(wants.wantsComparison)
        var lost = Self.manifest(9, at: 9)
        lost.isLost = true
        let copy = Self.copy(9, 0, orphanAfter: 5)
        wants.compare(.init(from: .first, end: nil, bodies: [lost], held: [copy]))
        #expect(!wants.wantsComparison)
        #expect(wants.isLost(BodyID(9)))
        #expect(wants.unnamedCount == 0)
    }

    @Test func `a dropped body with more copies than one answer names goes all the same`() {
        var wants = CopyWants(applied: .zero, milliseconds: 0)
        wants.compare(.init(from: .first, end: nil, bodies: [], held: []))
        wants.dropped(BodyID(5), chunkCount: 7, at: LogIndex(1))
        wants.dropped(BodyID(6), chunkCount: 0, at: LogIndex(1))
        wants.dropped(BodyID(8), chunkCount: 1, at: LogIndex(1))
        wants.applied(through: LogIndex(1))
        wants.durable(through: LogIndex(1), milliseconds: 1)
        var gone: [CopyName] = []
        for _ in 0..<4 {
            let names = wants.removable(limit: 2)
            gone += names
            wants.removed(names)
        }
        let rest = (0..<7).map { CopyName(body: BodyID(5), ordinal: $0) }
        #expect(gone == rest + [CopyName(body: BodyID(8), ordinal: 0)])
        #expect(wants.removable(limit: 9).isEmpty)
    }

    @Test func `no ordinal that a peer chose stops the removal of a body`() {
        var wants = CopyWants(applied: .zero, milliseconds: 0)
        wants.dropped(BodyID(5), chunkCount: 1, at: LogIndex(1))
        wants.removed([CopyName(body: BodyID(5), ordinal: .max)])
        wants.durable(through: LogIndex(1), milliseconds: 1)
        #expect(wants.removable(limit: 9) == [CopyName(body: BodyID(5), ordinal: 0)])
    }

    @Test
    func `while more bodies were dropped than are listed, nothing goes before that is durable`() {
        var limits = CopyWants.Limits()
        limits.countMax = 1
        var wants = CopyWants(applied: .zero, milliseconds: 0, limits: limits)
        wants.dropped(BodyID(5), chunkCount: 1, at: LogIndex(1))
        wants.dropped(BodyID(6), chunkCount: 1, at: LogIndex(2))
        wants.applied(through: LogIndex(2))
        let copy = Self.copy(6, 0, orphanAfter: 5)
        wants.compare(.init(from: .first, end: nil, bodies: [], held: [copy]))
        wants.durable(through: LogIndex(1), milliseconds: 9)
        #expect(wants.removable(limit: 9) == [CopyName(body: BodyID(5), ordinal: 0)])
        wants.durable(through: LogIndex(2), milliseconds: 9)
        #expect(wants.removable(limit: 9).contains(copy.name))
    }

    @Test func `missing copies are asked for in turn, whoever has the first of them`() {
        var wants = CopyWants(applied: .zero, milliseconds: 0)
        wants.named(CopyKeeperTests.manifest(1, chunkCount: 3))
        wants.named(CopyKeeperTests.manifest(2, chunkCount: 2))
        var asked: [CopyName] = []
        var from = CopyName.first
        for _ in 0..<3 {
            let names = wants.wanted(from: from, limit: 2).map(\.name)
            asked += names
            from = names.last?.next ?? .first
        }
        #expect(Set(asked).count == 5)
        #expect(asked[5] == asked[0])
        #expect(wants.wanted(from: from, limit: 9).map(\.name).sorted() == asked.prefix(5).sorted())
    }

    @Test func `orphans that the list has no room for are found once the others have gone`() {
        var limits = CopyWants.Limits()
        limits.countMax = 2
        var wants = CopyWants(applied: .zero, milliseconds: 0, limits: limits)
        let held = (1...5).map { number in
            HeldCopy(
                name: CopyName(body: BodyID(UInt128(number)), ordinal: 0),
                orphanAfterMilliseconds: 10, storedSize: 1, crc: 1)
        }
        var left = held
        for _ in 0..<3 {
            wants.compare(CopyWants.Page(from: .first, end: nil, bodies: [], held: left))
            #expect(!wants.wantsComparison)
            wants.durable(through: LogIndex(1), milliseconds: 11)
            let names = wants.removable(limit: 100)
            #expect(names.count == min(2, left.count))
            wants.removed(names)
            left.removeAll { names.contains($0.name) }
            #expect(wants.wantsComparison == !left.isEmpty)
        }
        #expect(left.isEmpty)
    }
}
