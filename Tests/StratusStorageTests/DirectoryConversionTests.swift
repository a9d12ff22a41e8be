import StratusDoubles
import StratusModel
import StratusSealing
import StratusStorage
import Synchronization
import Testing

/// A data directory that is sealed and unsealed on a simulated disk.
@Suite struct DirectoryConversionTests {
    typealias Form = DataDirectory.Form

    /// What a used directory holds: contents by their names, as a node reads them.
    static let contents: [(path: DiskPath, bytes: Bytes)] = {
        var random = SeededGenerator(seed: 21)
        func bytes(_ count: Int) -> Bytes {
            Bytes((0..<count).map { _ in UInt8(truncatingIfNeeded: random.next()) })
        }
        return [
            ("CLUSTER", bytes(90)), ("STARTS", bytes(8_192)), ("KEYS", bytes(30)),
            ("assets/00003/index.db", bytes(4_096)),
            ("log/00000001.seg", Bytes(repeating: 0, count: 5_000) + bytes(777)),
            ("log/00000002.seg", bytes(4_081)),
            ("partitions/00003/rows-1.db", bytes(8_192)),
            ("partitions/00003/rows-1.db-wal", []),
            ("partitions/00004/rows-2.db", bytes(1)),
        ]
    }()
    /// The same in both forms, and never moved.
    static let others: [(path: DiskPath, bytes: Bytes)] = [
        ("token.key", [1, 2]), ("admin.token", [3]), ("MASTER", [4]), ("tls/node.pem", [5]),
        ("assets/00003/00000001.pack", [6, 7, 8]),
    ]

    static func files(_ disk: SimulatedFiles, _ form: Form, seed: UInt64 = 5) -> any Files {
        form == .sealed ? SealedFilesTests.sealed(disk, seed: seed) : disk
    }
    static func other(_ form: Form) -> Form { form == .sealed ? .clear : .sealed }

    static func world(_ disk: SimulatedFiles) -> Outside { Outside(disk) }

    /// A world whose disk a test has in its hands.
    final class Outside: World {
        let files: any Files
        private let generator = Mutex(SeededGenerator(seed: 9))
        init(_ files: any Files) { self.files = files }
        var now: MonotonicTime { MonotonicTime(nanoseconds: 0) }
        var wallMilliseconds: Int64 { 0 }
        func random() -> UInt64 { self.generator.withLock { $0.next() } }
    }

    /// A directory that a node has used in `form`.
    static func made(_ form: Form, seed: UInt64 = 1) throws -> SimulatedFiles {
        let disk = SimulatedFiles(seed: seed)
        for path: DiskPath in [
            "log", "partitions/00003", "partitions/00004", "assets/00003", "tls",
        ] { try disk.makeDirectory(path) }
        do { _ = try DataDirectory(in: Self.world(disk), atRest: form == .sealed) }
        let files = Self.files(disk, form)
        for (path, bytes) in Self.contents {
            let file = try files.open(path, create: true)
            try SealedFilesTests.write(file, bytes)
            try file.sync()
        }
        for (path, bytes) in Self.others { disk.plant(bytes, at: path) }
        for path: DiskPath in [
            "log", "partitions/00003", "partitions/00004", "partitions", "assets/00003", "assets",
            "tls", .root,
        ] { try disk.syncDirectory(path) }
        return disk
    }

    static func conversion(
        _ disk: SimulatedFiles, to form: Form, seed: UInt64 = 31,
        progress: @escaping (UInt64, UInt64) -> Void = { _, _ in }
    ) throws -> DirectoryConversion {
        let seeds = Mutex(seed)
        return DirectoryConversion(
            of: try DataDirectory(toConvert: disk), to: form, disk: disk,
            old: Self.files(disk, Self.other(form)),
            new: {
                Self.files(
                    disk, form,
                    seed: seeds.withLock {
                        $0 += 1
                        return $0
                    })
            },
            listed: { () throws(DiskError) in try SealedSurvey.paths(in: disk) },
            progress: progress)
    }

    /// What the command does: nothing, if the directory has the form already.
    @discardableResult static func convert(
        _ disk: SimulatedFiles, to form: Form, seed: UInt64 = 31
    ) throws -> DirectoryConversion.Report? {
        if try DataDirectory(toConvert: disk).state == .whole(form) { return nil }
        return try Self.conversion(disk, to: form, seed: seed).run()
    }

    /// Looks at a directory as a node does that starts with it: it has one form, and all of it.
    static func expect(
        _ disk: SimulatedFiles, _ form: Form, _ name: String,
        at location: SourceLocation = #_sourceLocation
    ) throws {
        do { _ = try DataDirectory(in: Self.world(disk), atRest: form == .sealed) }
        let files = Self.files(disk, form)
        for (path, bytes) in Self.contents {
            let file = try files.open(path, create: false)
            let found = try SealedFilesTests.read(file, bytes.count + 1)
            #expect(found == bytes, "\(name): \(path)", sourceLocation: location)
        }
        let names = try SealedSurvey.paths(in: disk)
        #expect(
            names == Self.contents.map(\.path).sorted(), "\(name)", sourceLocation: location)
        for (path, bytes) in Self.others {
            #expect(disk.contents(of: path) == bytes, "\(name): \(path)", sourceLocation: location)
        }
        if form == .sealed {
            try SealedFilesTests.survey(disk, SealedFilesTests.masters())
        }
    }

    /// The old files, where they are kept.
    static func expectKept(_ disk: SimulatedFiles, from form: Form, _ name: String) throws {
        let kept = DirectoryConversion.kept(from: form)
        let files = Self.files(disk, form)
        for (path, bytes) in Self.contents {
            let file = try files.open(kept.appending(path.raw), create: false)
            #expect(
                try SealedFilesTests.read(file, bytes.count + 1) == bytes, "\(name): \(path)")
        }
    }

    @Test(arguments: [Form.sealed, .clear])
    func `a directory gets the other form, keeps its content, and comes back`(form: Form) throws {
        let disk = try Self.made(Self.other(form))
        let identity = try DataDirectory(toConvert: disk).identity
        var told: [UInt64] = []
        let report = try Self.conversion(disk, to: form) { done, all in
            told.append(done)
            #expect(all == 2 * Self.contents.reduce(0) { $0 + UInt64($1.bytes.count) })
        }.run()
        #expect(report.fileCount == Self.contents.count && !report.isResumed)
        #expect(told == told.sorted() && told.last == 2 * report.size)
        try Self.expect(disk, form, "there")
        try Self.expectKept(disk, from: Self.other(form), "there")
        #expect(try DataDirectory(toConvert: disk).identity == identity)
        #expect(try !disk.exists(DirectoryConversion.unfinished))

        try Self.convert(disk, to: Self.other(form))
        try Self.expect(disk, Self.other(form), "and back")
        try Self.expectKept(disk, from: form, "and back")
        #expect(
            throws: DirectoryConversion.Refusal.isKept(
                DirectoryConversion.kept(from: Self.other(form)))
        ) { try Self.convert(disk, to: form) }
        try Self.expect(disk, Self.other(form), "refused")
    }

    @Test(arguments: [Form.sealed, .clear])
    func `the old files go when they are to, and nothing else does`(form: Form) throws {
        let disk = try Self.made(Self.other(form))
        try Self.convert(disk, to: form)
        #expect(try DirectoryConversion.remains(in: disk).count == 1)
        #expect(try Self.conversion(disk, to: form).removeKept())
        #expect(try DirectoryConversion.remains(in: disk) == [])
        #expect(try !Self.conversion(disk, to: form).removeKept())
        try Self.expect(disk, form, "removed")
        try Self.convert(disk, to: Self.other(form))
        try Self.expect(disk, Self.other(form), "and back")
    }

    @Test(
        arguments: [Form.sealed, .clear],
        [DiskRestart.processCrash, .powerLoss, .powerLossLosingAll])
    func
        `wherever a conversion ends, the directory has one form or none, and the next one finishes`(
            form: Form, restart: DiskRestart
        ) throws
    {
        let before = Self.other(form)
        let trial = try Self.made(before)
        let begun = trial.operationCount
        try Self.convert(trial, to: form)
        let count = trial.operationCount - begun
        #expect(count > 150)
        var found: [String: Int] = [:]
        for number in Sweep.operations(count, variant: form == .sealed ? 0 : 1) {
            let name = "\(form), \(restart), operation \(number)"
            let disk = try Self.made(before, seed: UInt64(number))
            disk.plan(DiskFault(at: disk.operationCount + number, .crash))
            #expect(throws: (any Error).self, "\(name)") { try Self.convert(disk, to: form) }
            disk.clearFaults()
            disk.restart(after: restart)
            let state = try DataDirectory(toConvert: disk).state
            found["\(state)", default: 0] += 1
            switch state {
            case .whole(let form): try Self.expect(disk, form, name)
            case .converting(let target):
                #expect(target == form)
                for atRest in [false, true] {
                    #expect(throws: DataDirectory.Refusal.isBeingConverted(to: form)) {
                        _ = try DataDirectory(in: Self.world(disk), atRest: atRest)
                    }
                }
            }
            // The next one ends in its middle too, at another operation.
            disk.plan(DiskFault(at: disk.operationCount + 1 + number * 37 % count, .crash))
            _ = try? Self.convert(disk, to: form, seed: 91)
            disk.clearFaults()
            disk.restart(after: restart)
            if case .whole(let form) = try DataDirectory(toConvert: disk).state {
                try Self.expect(disk, form, "\(name), again")
            }
            try Self.convert(disk, to: form, seed: 92)
            try Self.expect(disk, form, "\(name), finished")
            try Self.expectKept(disk, from: before, name)
            disk.restart(after: .powerLossLosingAll)
            try Self.expect(disk, form, "\(name), after another power cut")
            try Self.expectKept(disk, from: before, name)
        }
        // The last change of all is not there after a power cut that loses all that may be lost.
        #expect(found.count >= (restart == .powerLossLosingAll ? 2 : 3), "the sweep met \(found)")
    }

    @Test(arguments: [Form.sealed, .clear], [DiskError.Kind.io, .full])
    func `a failure anywhere leaves a directory that can be used or converted`(
        form: Form, kind: DiskError.Kind
    ) throws {
        let before = Self.other(form)
        let trial = try Self.made(before)
        let begun = trial.operationCount
        try Self.convert(trial, to: form)
        let count = trial.operationCount - begun
        for number in Sweep.operations(count, variant: form == .sealed ? 1 : 2) {
            let name = "\(form), \(kind), operation \(number)"
            let disk = try Self.made(before, seed: UInt64(number))
            disk.plan(DiskFault(at: disk.operationCount + number, .fail(kind)))
            _ = try? Self.convert(disk, to: form)
            disk.clearFaults()
            switch try DataDirectory(toConvert: disk).state {
            case .whole(let form): try Self.expect(disk, form, name)
            case .converting(let target): #expect(target == form, "\(name)")
            }
            try Self.convert(disk, to: form, seed: 92)
            try Self.expect(disk, form, "\(name), finished")
        }
    }

    @Test func `a removal of old files that ends in its middle goes on`() throws {
        let trial = try Self.made(.clear)
        try Self.convert(trial, to: .sealed)
        let begun = trial.operationCount
        #expect(try Self.conversion(trial, to: .sealed).removeKept())
        for number in 1...(trial.operationCount - begun) {
            let disk = try Self.made(.clear)
            try Self.convert(disk, to: .sealed)
            disk.plan(DiskFault(at: disk.operationCount + number, .crash))
            _ = try? Self.conversion(disk, to: .sealed).removeKept()
            disk.clearFaults()
            disk.restart(after: .powerLoss)
            try Self.expect(disk, .sealed, "\(number)")
            _ = try Self.conversion(disk, to: .sealed).removeKept()
            #expect(try DirectoryConversion.remains(in: disk) == [], "\(number)")
            try Self.expect(disk, .sealed, "\(number)")
        }
    }

    @Test(arguments: [Form.sealed, .clear])
    func `a disk without room is refused before a byte is written`(form: Form) throws {
        let disk = try Self.made(Self.other(form))
        let used = disk.usedSize.raw
        disk.setCapacity(ByteCount(used + 40_000))
        let files = disk.allFiles
        do {
            try Self.convert(disk, to: form)
            Issue.record("a conversion began without room")
        } catch let refusal as DirectoryConversion.Refusal {
            guard case .isTooFull(let needed, let free) = refusal else {
                throw refusal
            }
            #expect(free == 40_000 && needed > free)
            #expect(refusal.description.contains("1 MiB beside the old ones"))
        }
        #expect(disk.allFiles == files && disk.usedSize.raw == used)
        // What is said to be needed is enough.
        let needed = Self.contents.reduce(0) { $0 + $1.bytes.count + 3 * 4_096 }
        disk.setCapacity(ByteCount(used + needed))
        try Self.convert(disk, to: form)
        try Self.expect(disk, form, "with room")
    }

    @Test(arguments: [Form.sealed, .clear])
    func `what the disk did not keep is found by reading it back`(form: Form) throws {
        let before = Self.other(form)
        let faults: [(effect: DiskFault.Effect, kinds: Set<DiskOperation>)] = [
            (.loseWrite, [.write]), (.flipBit, [.read]), (.misdirect(512), [.write]),
        ]
        for (effect, kinds) in faults {
            var noticed = 0
            for number in Sweep.operations(400, variant: 0) {
                let disk = try Self.made(before, seed: UInt64(number))
                disk.plan(
                    DiskFault(
                        at: disk.operationCount + number, effect, isSticky: effect == .flipBit,
                        kinds: kinds, prefix: "conversion/log"))
                do { try Self.convert(disk, to: form) } catch is DirectoryConversion.Refusal {
                    noticed += 1
                    disk.clearFaults()
                    try Self.expect(disk, before, "\(effect) at \(number)")
                    #expect(try !disk.exists(DirectoryConversion.unfinished))
                }
                disk.clearFaults()
                if case .whole(form) = try DataDirectory(toConvert: disk).state {
                    try Self.expect(disk, form, "\(effect) at \(number)")
                }
            }
            #expect(noticed > 0, "\(effect)")
        }
    }

    @Test func `a file that does not open is named, and nothing is written`() throws {
        let disk = try Self.made(.sealed)
        for slot in [0, 2_048] { disk.flip(bit: 0, at: slot + 30, of: "log/00000002.seg") }
        let files = disk.allFiles
        do {
            try Self.convert(disk, to: .clear)
            Issue.record("a damaged file was converted")
        } catch let refusal as DirectoryConversion.Refusal {
            #expect(refusal.description.contains("log/00000002.seg"))
        }
        #expect(disk.allFiles == files)
    }

    @Test(arguments: [Form.sealed, .clear])
    func `an unfinished file of the old form is not in the way of its next writing`(
        form: Form
    ) throws {
        let disk = try Self.made(Self.other(form))
        let unfinished = try Self.files(disk, Self.other(form)).open("KEYS.new", create: true)
        try SealedFilesTests.write(unfinished, [1, 2, 3])
        try disk.syncDirectory(.root)
        disk.plant([1], at: "notes.new")
        try Self.convert(disk, to: form)
        try Self.files(disk, form).replace("KEYS", with: Self.contents[2].bytes)
        try Self.expect(disk, form, "replaced")
        #expect(disk.contents(of: "notes.new") == [1], "a file of the operator's")
    }

    @Test func `the new files of a conversion that was given up are removed`() throws {
        let disk = try Self.made(.sealed)
        disk.plan(DiskFault(at: disk.operationCount + 60, .crash))
        #expect(throws: (any Error).self) { try Self.convert(disk, to: .clear) }
        disk.clearFaults()
        disk.restart(after: .processCrash)
        #expect(try DirectoryConversion.remains(in: disk) == [DirectoryConversion.unfinished])
        try Self.conversion(disk, to: .sealed).removeUnfinished()
        #expect(try DirectoryConversion.remains(in: disk) == [])
        try Self.expect(disk, .sealed, "given up")
    }

    @Test func `a directory that is in use or was never used is not converted`() throws {
        let disk = try Self.made(.clear)
        do {
            let held = try DataDirectory(in: Self.world(disk))
            #expect(throws: DataDirectory.Refusal.inUse) { try Self.convert(disk, to: .sealed) }
            withExtendedLifetime(held) {}
        }
        let empty = SimulatedFiles(seed: 3)
        #expect(throws: DataDirectory.Refusal.self) { try Self.convert(empty, to: .sealed) }
    }
}
