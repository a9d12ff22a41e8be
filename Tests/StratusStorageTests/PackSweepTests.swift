import StratusDoubles
import StratusModel
import StratusStorage
import Testing

/// A store's scripted life, failed and cut off at every one of its file operations.
///
/// What a put answered must be there afterwards unless it was removed; what was removed may be
/// back, since rows do not name it, and is sound then; compaction ends, and takes nothing with it.
@Suite struct PackSweepTests {
    struct Ledger {
        /// Answered by a put and not removed since.
        var stored: Set<Int> = []
        /// A removal was tried: there or not.
        var removed: Set<Int> = []
    }

    /// Puts, removes, compacts, seals and reads back until done or an error.
    static func run(_ bench: PackBench, _ bugs: [PackBug] = [], retries: Bool) -> Ledger {
        var ledger = Ledger()
        var attempts = 0
        func attempt(_ body: () throws(StoreError) -> Void) -> Bool {
            while true {
                do throws(StoreError) {
                    try body()
                    return true
                } catch {
                    attempts += 1
                    guard retries, attempts < 12 else { return false }
                }
            }
        }
        var store: PackStore?
        guard attempt({ () throws(StoreError) in store = try bench.open(bugs) }), let store else {
            return ledger
        }
        for round in 0..<7 {
            for pair in 0..<3 {
                let bodies = [round * 6 + pair * 2, round * 6 + pair * 2 + 1]
                let isStored = attempt { () throws(StoreError) in
                    try store.put(bodies.map { PackBench.copy($0) })
                }
                guard isStored else { return ledger }
                ledger.stored.formUnion(bodies)
            }
            let gone = ledger.stored.filter { $0 % 3 != 0 && $0 < round * 6 }
            ledger.removed.formUnion(gone)
            ledger.stored.subtract(gone)
            let isDone = attempt { () throws(StoreError) in
                try store.remove(gone.sorted().map { PackBench.copy($0).name })
                if round % 3 == 2 { try store.seal() }
                _ = try store.advance(.compact, 2_000)
                _ = try store.advance(.compact, 2_000)
                _ = try store.advance(.readBack, 2_000)
            }
            guard isDone else { return ledger }
        }
        return ledger
    }

    /// Opens again and looks for everything; nil if all is well, else what is missing.
    static func trouble(_ bench: PackBench, _ ledger: Ledger) -> String? {
        do throws(StoreError) {
            let store = try bench.open()
            if let text = try Self.missing(store, ledger) { return text }
            // What came back goes again, and compaction takes nothing else with it.
            try store.remove(ledger.removed.sorted().map { PackBench.copy($0).name })
            var rounds = 0
            while try !store.advance(.compact, 3_000).isDone {
                rounds += 1
                if rounds > 300 { return "compaction does not end" }
            }
            if let text = try Self.missing(store, ledger) { return "compacted: \(text)" }
            // A second start finds the same.
            let again = try bench.open()
            return try Self.missing(again, ledger).map { "opened twice: \($0)" }
        } catch {
            return "\(error)"
        }
    }

    private static func missing(_ store: PackStore, _ ledger: Ledger) throws(StoreError) -> String?
    {
        for body in ledger.stored.sorted() {
            let copy = PackBench.copy(body)
            if try store.copy(copy.name) != copy.bytes { return "body \(body) is missing" }
        }
        for held in try PackBench.all(in: store) {
            let copy = PackBench.copy(Int(held.name.body.raw))
            if try store.copy(held.name) != copy.bytes { return "\(held.name) is held, not sound" }
        }
        return nil
    }

    static let operationCount: Int = {
        let bench = PackBench()
        _ = Self.run(bench, retries: false)
        return bench.files.operationCount
    }()

    @Test(arguments: [DiskRestart.processCrash, .powerLoss, .powerLossLosingAll])
    func `A-26 S-34 an end at any file operation loses nothing that was answered`(
        restart: DiskRestart
    ) throws {
        let variant = [.powerLoss: 0, .processCrash: 1][restart, default: 2]
        for number in Sweep.operations(Self.operationCount, variant: variant) {
            let bench = PackBench(seed: UInt64(number) &* 31)
            bench.files.plan(DiskFault(at: number, .crash))
            let ledger = Self.run(bench, retries: false)
            bench.files.restart(after: restart)
            // The recovery of the first end ends too, at some operation of its own.
            bench.files.plan(DiskFault(at: bench.files.operationCount + 1 + number % 40, .crash))
            if (try? bench.open()) == nil { bench.files.restart(after: restart) }
            bench.files.clearFaults()
            bench.files.restart(after: .powerLoss)
            let trouble = Self.trouble(bench, ledger)
            #expect(trouble == nil, "crash at \(number)")
        }
    }

    @Test(arguments: [false, true], [DiskError.Kind.io, .full])
    func `A-26 S-01 S-03 a failure at any file operation loses nothing that was answered`(
        isSticky: Bool, kind: DiskError.Kind
    ) throws {
        for number in Sweep.operations(Self.operationCount, variant: isSticky ? 1 : 0) {
            let bench = PackBench(seed: UInt64(number))
            bench.files.plan(DiskFault(at: number, .fail(kind), isSticky: isSticky))
            let ledger = Self.run(bench, retries: true)
            bench.files.clearFaults()
            bench.files.restart(after: number % 2 == 0 ? .powerLoss : .processCrash)
            let trouble = Self.trouble(bench, ledger)
            #expect(trouble == nil, "\(kind) at \(number)")
        }
    }

    /// A full disk that stays full: tries must not fill it with files that were never begun.
    @Test func `S-03 puts on a full disk leave no more files than they found`() throws {
        let bench = PackBench()
        let store = try bench.open()
        try store.put([PackBench.copy(1)])
        bench.files.setCapacity(bench.files.usedSize)
        let before = bench.files.allFiles
        for _ in 0..<50 { #expect(throws: StoreError.self) { try store.put([PackBench.copy(2)]) } }
        #expect(bench.files.allFiles == before)
        bench.files.setCapacity(nil)
        try store.put([PackBench.copy(2)])
        #expect(try store.copy(PackBench.copy(2).name) == PackBench.copy(2).bytes)
    }

    // MARK: Planted bugs

    /// Ends and failures at every operation, until one of them finds the bug.
    private static func finds(_ bug: PackBug) -> String? {
        let count = { () -> Int in
            let bench = PackBench()
            _ = Self.run(bench, [bug], retries: false)
            return bench.files.operationCount
        }()
        for number in 1...count {
            for effect in [DiskFault.Effect.crash, .fail(.io)] {
                let bench = PackBench(seed: UInt64(number) &* 31)
                bench.files.plan(DiskFault(at: number, effect))
                let ledger = Self.run(bench, [bug], retries: effect != .crash)
                bench.files.clearFaults()
                bench.files.restart(after: .powerLoss)
                if bug == .tornCopyIndexed {
                    // The bug is in the opening itself.
                    guard let store = try? bench.open([bug]) else { continue }
                    if let text = try? Self.missing(store, ledger) {
                        return "\(effect) at \(number): \(text)"
                    }
                } else if let text = Self.trouble(bench, ledger) {
                    return "\(effect) at \(number): \(text)"
                }
            }
        }
        return nil
    }

    @Test(.enabled(if: PackBugs.isPossible), arguments: PackBug.allCases)
    func `a planted bug of the packs is found`(bug: PackBug) {
        #expect(Self.finds(bug) != nil, "\(bug)")
    }
}
