import StratusCoding
import StratusDoubles
import StratusModel
import StratusStorage
import Testing

@Suite struct PackStoreTests {
    @Test func `what was put comes back, in the order of names, whatever was put twice`() throws {
        let bench = PackBench()
        let store = try bench.open()
        let copies = [3, 1, 2].map { PackBench.copy($0) } + [PackBench.copy(2, 7)]
        try store.put(copies)
        try store.put([PackBench.copy(1), PackBench.copy(4), PackBench.copy(4)])
        for copy in copies + [PackBench.copy(4)] {
            #expect(try store.copy(copy.name) == copy.bytes)
        }
        #expect(try store.copy(PackBench.copy(9).name) == nil)
        let held = try PackBench.all(in: store)
        #expect(held.map(\.name.body.raw) == [1, 2, 2, 3, 4])
        #expect(held.map(\.orphanAfterMilliseconds) == [10, 20, 20, 30, 40])
        #expect(
            held.map(\.storedSize)
                == held.map { held in
                    UInt32(PackBench.copy(Int(held.name.body.raw), held.name.ordinal).bytes.count)
                })
        #expect(held.first?.crc == CRC32C.of(PackBench.copy(1).bytes))
    }

    @Test func `packs are sealed at their size, and what is removed gives its room back`() throws {
        let bench = PackBench()
        let store = try bench.open()
        for body in 0..<60 { try store.put([PackBench.copy(body)]) }
        #expect(bench.packs.count > 3)
        for path in bench.packs {
            #expect(bench.files.contents(of: path)!.count <= 4_096 + PackFormat.sealSize)
        }
        try store.seal()
        let before = try store.sizes()
        #expect(before.live.raw > before.all.raw * 8 / 10)
        try store.remove((0..<60).filter { $0 % 5 != 0 }.map { PackBench.copy($0).name })
        var rounds = 0
        while try !store.advance(.compact, 1_024).isDone {
            rounds += 1
            try #require(rounds < 500)
        }
        let after = try store.sizes()
        #expect(after.all.raw < before.all.raw / 2)
        for body in stride(from: 0, to: 60, by: 5) {
            #expect(try store.copy(PackBench.copy(body).name) == PackBench.copy(body).bytes)
        }
        // What the store says of its files is what is there.
        let sum = bench.packs.reduce(0) { $0 + bench.files.contents(of: $1)!.count }
        #expect(sum == after.all.raw)
    }

    @Test func `small packs of many starts are put together`() throws {
        let bench = PackBench()
        for body in 0..<12 { try bench.open().put([PackBench.copy(body)]) }
        #expect(bench.packs.count == 12)
        let store = try bench.open()
        while try !store.advance(.compact, .mebibytes(1)).isDone {}
        #expect(bench.packs.count <= 4)
        for body in 0..<12 {
            #expect(try store.copy(PackBench.copy(body).name) == PackBench.copy(body).bytes)
        }
    }

    @Test func `compaction rests while the disk has too little room, but removes what is empty`()
        throws
    {
        let bench = PackBench()
        let store = try bench.open()
        for body in 0..<20 { try store.put([PackBench.copy(body)]) }
        try store.seal()
        let first = bench.packs[0]
        try store.remove((0..<20).map { PackBench.copy($0).name })
        bench.files.setCapacity(ByteCount(bench.files.usedSize.raw + 6_000))
        while try !store.advance(.compact, 4_096).isDone {}
        #expect(bench.files.contents(of: first) == nil)
        #expect(bench.packs.isEmpty)
    }

    @Test func `A-29 a copy that rots is missing, told once, and stored anew`() throws {
        let bench = PackBench()
        let store = try bench.open()
        for body in 0..<5 { try store.put([PackBench.copy(body)]) }
        try store.seal()
        let bytes = bench.files.contents(of: bench.packs[0])!
        let needle = PackBench.copy(2).bytes
        let offset = (0..<bytes.count).first { bytes[$0...].starts(with: needle) }!
        bench.files.flip(bit: 3, at: offset + 9, of: bench.packs[0])
        while try !store.advance(.readBack, 512).isDone {}
        #expect(store.takeForgotten() == [PackBench.copy(2).name])
        #expect(store.takeForgotten().isEmpty)
        #expect(try store.copy(PackBench.copy(2).name) == nil)
        #expect(try PackBench.all(in: store).map(\.name.body.raw) == [0, 1, 3, 4])
        try store.put([PackBench.copy(2)])
        #expect(try store.copy(PackBench.copy(2).name) == needle)
        let again = try bench.open()
        #expect(try again.copy(PackBench.copy(2).name) == needle)
    }

    @Test func `a read that fails once damages nothing`() throws {
        let bench = PackBench()
        let store = try bench.open()
        try store.put([PackBench.copy(1)])
        for effect in [DiskFault.Effect.flipBit, .fail(.io), .misdirect(8)] {
            bench.files.plan(
                DiskFault(
                    at: bench.files.operationCount + 1, effect, kinds: [.read],
                    prefix: "assets/00012/00"))
            #expect(try store.copy(PackBench.copy(1).name) == PackBench.copy(1).bytes)
        }
        #expect(store.takeForgotten().isEmpty)
    }

    @Test(arguments: [DiskError.Kind.io, .tooManyOpen])
    func `compaction gives nothing up that the disk refuses for a while`(kind: DiskError.Kind)
        throws
    {
        let bench = PackBench()
        let store = try bench.open()
        for body in 0..<30 { try store.put([PackBench.copy(body)]) }
        try store.seal()
        try store.remove((0..<30).filter { $0 % 3 != 0 }.map { PackBench.copy($0).name })
        bench.files.plan(
            DiskFault(
                at: bench.files.operationCount + 1, .fail(kind), isSticky: true,
                kinds: [.read], prefix: "assets/00012/00"))
        for _ in 0..<100 { _ = try? store.advance(.compact, 1_024) }
        bench.files.clearFaults()
        // What was marked meanwhile is found sound when it is read back.
        while try !store.advance(.readBack, 512).isDone {}
        for _ in 0..<200 where try !store.advance(.compact, 1_024).isDone {}
        for body in stride(from: 0, to: 30, by: 3) {
            #expect(try store.copy(PackBench.copy(body).name) == PackBench.copy(body).bytes)
        }
    }

    @Test func `a store that was made again says so, once`() throws {
        let bench = PackBench()
        let store = try bench.open()
        #expect(store.takeBegunAnew())
        for body in 0..<5 { try store.put([PackBench.copy(body)]) }
        #expect(!store.takeBegunAnew())
        let again = try bench.open()
        #expect(!again.takeBegunAnew())
        bench.files.uproot("assets/00012/index.db")
        bench.files.restart(after: .processCrash)
        let third = try bench.open()
        #expect(third.takeBegunAnew() && !third.takeBegunAnew())
        bench.files.uproot(bench.packs[0])
        bench.files.restart(after: .processCrash)
        #expect(try bench.open().takeBegunAnew())
    }

    @Test func `S-16 an index that is gone, cut or damaged is made again from the packs`() throws {
        for damage in 0..<4 {
            let bench = PackBench(seed: UInt64(damage))
            do {
                let store = try bench.open()
                for body in 0..<30 { try store.put([PackBench.copy(body)]) }
                try store.remove([PackBench.copy(3).name])
            }
            let index: DiskPath = "assets/00012/index.db"
            switch damage {
            case 0: bench.files.uproot(index)
            case 1: bench.files.plant(Bytes(repeating: 7, count: 9_000), at: index)
            case 2: bench.files.plant([], at: index)
            default:
                var bytes = bench.files.contents(of: index)!
                for offset in stride(from: 100, to: bytes.count, by: 97) { bytes[offset] ^= 0x10 }
                bench.files.plant(bytes, at: index)
            }
            bench.files.restart(after: .processCrash)
            let store = try bench.open()
            for body in 0..<30 where body != 3 {
                #expect(
                    try store.copy(PackBench.copy(body).name) == PackBench.copy(body).bytes,
                    "damage \(damage), body \(body)")
            }
        }
    }

    @Test func `a pack's header may rot, or its first record, not both`() throws {
        for rotten in [[0], [64], [0, 64]] {
            let bench = PackBench()
            do {
                let store = try bench.open()
                for body in 0..<5 { try store.put([PackBench.copy(body)]) }
            }
            for place in rotten { bench.files.flip(bit: 0, at: place + 20, of: bench.packs[0]) }
            bench.files.restart(after: .processCrash)
            let store = try bench.open()
            let found = try PackBench.all(in: store).filter { held in
                try store.copy(held.name) != nil
            }
            #expect(found.count == [[0]: 5, [64]: 4][rotten, default: 0], "\(rotten)")
            let aside = bench.files.allFiles.filter { $0.raw.hasSuffix(".damaged") }
            #expect(aside.count == (rotten.count == 2 ? 1 : 0))
        }
    }

    @Test func `a pack that is gone takes its own copies with it`() throws {
        let bench = PackBench()
        do {
            let store = try bench.open()
            for body in 0..<20 { try store.put([PackBench.copy(body)]) }
        }
        bench.files.uproot(bench.packs[0])
        bench.files.restart(after: .processCrash)
        let store = try bench.open()
        let held = try PackBench.all(in: store)
        #expect(held.count > 5 && held.count < 20)
        for copy in held { #expect(try store.copy(copy.name) != nil) }
        try store.put((0..<20).map { PackBench.copy($0) })
        #expect(try PackBench.all(in: store).count == 20)
    }

    @Test func `a partition that left takes all its files with it`() throws {
        let bench = PackBench()
        try bench.open().put([PackBench.copy(1)])
        try PackDirectory.remove(PackBench.group, in: "assets", from: bench.files)
        #expect(bench.files.allFiles.isEmpty)
        try PackDirectory.remove(PackBench.group, in: "assets", from: bench.files)
        #expect(try PackBench.all(in: bench.open()).isEmpty)
    }

    /// Everything against a dictionary, with starts, removals, compaction and lost indexes in
    /// between.
    @Test(arguments: 0..<60 as Range<UInt64>)
    func `any history leaves what a dictionary says`(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        let bench = PackBench(seed: seed)
        var store = try bench.open()
        var model: [CopyName: StoredCopy] = [:]
        var removed: Set<CopyName> = []
        for step in 0..<120 {
            switch Int.random(in: 0..<14, using: &random) {
            case 0..<6:
                let copies = (0..<Int.random(in: 1...4, using: &random)).map { _ in
                    PackBench.copy(
                        Int.random(in: 0..<40, using: &random), .random(in: 0..<3, using: &random))
                }
                try store.put(copies)
                for copy in copies {
                    model[copy.name] = copy
                    removed.remove(copy.name)
                }
            case 6..<9:
                let names = model.keys.sorted().filter { _ in
                    Int.random(in: 0..<4, using: &random) == 0
                }
                try store.remove(names)
                for name in names {
                    model[name] = nil
                    removed.insert(name)
                }
            case 9: try store.seal()
            case 10, 11:
                _ = try store.advance(
                    .compact, ByteCount(Int.random(in: 1...3_000, using: &random)))
            case 12: _ = try store.advance(.readBack, 2_000)
            default:
                let restart: DiskRestart = Bool.random(using: &random) ? .powerLoss : .processCrash
                bench.files.restart(after: restart)
                store = try bench.open()
                // A removal need not last over a power cut: rows do not name what comes back, and
                // it is removed again. It must be sound all the same.
                for held in try PackBench.all(in: store) where model[held.name] == nil {
                    #expect(removed.contains(held.name), "seed \(seed), step \(step)")
                    #expect(try store.copy(held.name) != nil, "seed \(seed), step \(step)")
                }
                try store.remove(removed.sorted())
            }
            #expect(
                try PackBench.all(in: store).map(\.name) == model.keys.sorted(),
                "seed \(seed), step \(step)")
        }
        for (name, copy) in model {
            #expect(try store.copy(name) == copy.bytes, "seed \(seed), \(name)")
        }
        #expect(store.takeForgotten().isEmpty, "seed \(seed)")
    }
}
