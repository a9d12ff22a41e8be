import StratusCoding
import StratusModel
import StratusSealing
import StratusSimulation
import Synchronization
import Testing

/// Files that are sealed on a simulated disk, against a plain model.
@Suite struct SealedFilesTests {
    static let directory = RequestIdentity(high: 3, low: 4)
    static func master(_ version: UInt32, _ byte: UInt8) -> FileMasters.Master {
        FileMasters.Master(version, SecretBytes(copying: Bytes(repeating: byte, count: 32)))
    }
    static func masters(
        _ sealing: FileMasters.Master = Self.master(0, 1), _ others: FileMasters.Master...
    ) -> FileMasters {
        FileMasters(sealing: sealing, others: others, directory: Self.directory)
    }

    static func sealed(
        _ disk: SimulatedFiles, seed: UInt64 = 5, _ masters: FileMasters = Self.masters()
    ) -> SealedFiles {
        disk.failWholeSectors()
        let random = Mutex(SeededGenerator(seed: seed))
        return SealedFiles(disk, masters: masters) { random.withLock { $0.next() } }
    }

    static func read(_ file: any File, _ count: Int, at offset: Int = 0) throws -> Bytes {
        var bytes = Bytes(repeating: 0xEE, count: count)
        let read = try bytes.withUnsafeMutableBytes { try file.read($0, at: UInt64(offset)) }
        return Bytes(bytes.prefix(read))
    }

    static func write(_ file: any File, _ bytes: Bytes, at offset: Int = 0) throws {
        try bytes.withUnsafeBytes { try file.write($0, at: UInt64(offset)) }
    }

    /// What a file holds, and what is known of it after a power cut.
    struct Model {
        var bytes = Bytes()
        /// As of the last sync.
        var synced = Bytes()
        var lengths: [Int] = [0]
        /// Places whose bytes may be anything after a power cut.
        var loose: [Range<Int>] = []

        mutating func write(_ new: Bytes, at offset: Int) {
            let end = offset + new.count
            self.loose.append(min(offset, self.bytes.count)..<end)
            if end > self.bytes.count {
                self.bytes += Bytes(repeating: 0, count: end - self.bytes.count)
            }
            self.bytes.replaceSubrange(offset..<end, with: new)
            self.lengths.append(self.bytes.count)
        }

        mutating func resize(_ length: Int) {
            let before = self.bytes.count
            self.loose.append(min(length, before)..<max(length, before))
            if length < before {
                self.bytes.removeLast(before - length)
            } else {
                self.bytes += Bytes(repeating: 0, count: length - before)
            }
            self.lengths.append(length)
        }

        mutating func sync() {
            self.synced = self.bytes
            self.lengths = [self.bytes.count]
            self.loose = []
        }

        /// Looks at what a power cut left, and goes on from there.
        mutating func expect(_ found: Bytes, _ name: String) {
            #expect(
                (self.lengths.min()!...self.lengths.max()!).contains(found.count),
                "\(name): \(found.count) bytes of \(self.lengths)")
            for (index, byte) in found.enumerated()
            where index < self.synced.count && byte != self.synced[index] {
                let isLoose = self.loose.contains { $0.contains(index) }
                #expect(isLoose, "\(name): byte \(index) was synced and is lost")
                if !isLoose { break }
            }
            self.bytes = found
            self.sync()
        }
    }

    /// One random change of file and model.
    static func step(
        _ random: inout SeededGenerator, _ file: any File, _ model: inout Model
    ) throws {
        func draw(_ count: Int) -> Int { Int.random(in: 0..<count, using: &random) }
        switch draw(12) {
        case 0:
            let length = draw(3) == 0 ? draw(9_000) : draw(model.bytes.count + 40)
            model.resize(length)
            try file.resize(UInt64(length))
        case 1:
            try file.sync()
            model.sync()
        default:
            let offset =
                switch draw(4) {
                case 0: model.bytes.count
                case 1: draw(model.bytes.count + 1)
                case 2: draw(model.bytes.count + 100)
                default: draw(3) * 4_096
                }
            let count = draw(5) == 0 ? 4_096 : 1 + draw(70)
            let bytes = Bytes((0..<count).map { _ in UInt8(truncatingIfNeeded: random.next()) })
            model.write(bytes, at: offset)
            try Self.write(file, bytes, at: offset)
        }
    }

    @Test(arguments: 1...40 as ClosedRange<UInt64>)
    func `random reads and changes are those of a plain file`(
        seed: UInt64
    ) throws {
        let disk = SimulatedFiles(seed: seed)
        var files = Self.sealed(disk, seed: seed)
        var random = SeededGenerator(seed: seed)
        func draw(_ count: Int) -> Int { Int.random(in: 0..<count, using: &random) }
        var name: DiskPath = "a"
        var model = Model()
        var handles = [try files.open(name, create: true), try files.open(name, create: false)]
        for number in 0..<250 {
            let file = handles[draw(2)]
            try Self.step(&random, file, &model)
            #expect(try file.length == UInt64(model.bytes.count), "seed \(seed), step \(number)")
            let offset = draw(model.bytes.count + 20)
            let count = draw(3) == 0 ? 4_096 : draw(60)
            let expected = Bytes(model.bytes.dropFirst(offset).prefix(count))
            let found = try Self.read(handles[draw(2)], count, at: offset)
            #expect(found == expected, "seed \(seed), step \(number)")
            switch draw(20) {
            case 0:
                let other: DiskPath = name == "a" ? "b" : "a"
                try files.rename(name, to: other)
                name = other
                handles[1] = try files.open(name, create: false)
            case 1:
                // The process ends, and another one begins.
                handles = []
                files = Self.sealed(disk, seed: seed &+ UInt64(number))
                handles = [try files.open(name, create: false), try files.open(name, create: true)]
            default: break
            }
        }
        let all = try Self.read(handles[0], model.bytes.count + 1)
        #expect(all == model.bytes, "seed \(seed)")
    }

    @Test(arguments: 1...60 as ClosedRange<UInt64>)
    func `a power cut at any operation harms only what was not synced`(
        seed: UInt64
    ) throws {
        let disk = SimulatedFiles(seed: seed)
        var random = SeededGenerator(seed: seed)
        var model = Model()
        try disk.makeDirectory("d")
        try disk.syncDirectory(.root)
        for life in 0..<12 {
            let name = "seed \(seed), life \(life)"
            let files = Self.sealed(disk, seed: seed &+ UInt64(life) &* 1_000)
            do {
                let file = try files.open("d/a", create: true)
                let length = Int(try file.length)
                model.expect(try Self.read(file, length + 1), name)
                try files.syncDirectory("d")
                let number = disk.operationCount + 1 + Int.random(in: 0..<40, using: &random)
                disk.plan(DiskFault(at: number, .crash))
                while true { try Self.step(&random, file, &model) }
            } catch let error as DiskError {
                #expect(disk.isCrashed, "\(name): \(error)")
            }
            disk.clearFaults()
            disk.restart(after: [.powerLoss, .powerLossLosingAll][life % 2])
        }
    }

    @Test(arguments: 1...30 as ClosedRange<UInt64>, [DiskError.Kind.io, .full])
    func `a failed operation harms only what it was to write`(
        seed: UInt64, kind: DiskError.Kind
    ) throws {
        let disk = SimulatedFiles(seed: seed)
        var random = SeededGenerator(seed: seed)
        var model = Model()
        let file = try Self.sealed(disk, seed: seed).open("a", create: true)
        for number in 0..<40 {
            let fault = disk.operationCount + 1 + Int.random(in: 0..<12, using: &random)
            disk.plan(DiskFault(at: fault, .fail(kind), kinds: [.write, .resize, .read]))
            var hasFailed = false
            while disk.operationCount < fault {
                do { try Self.step(&random, file, &model) } catch { hasFailed = true }
                if hasFailed { break }
            }
            disk.clearFaults()
            let name = "seed \(seed), failure \(number)"
            let found = try Self.read(file, Int(try file.length) + 1)
            if hasFailed {
                model.expect(found, name)
            } else {
                #expect(found == model.bytes, "\(name)")
            }
        }
    }

    // MARK: Headers

    @Test func `a file of a node that ends at its first writes is empty or there`() throws {
        for number in 1...12 {
            for restart in [DiskRestart.processCrash, .powerLoss, .powerLossLosingAll] {
                let disk = SimulatedFiles(seed: UInt64(number))
                disk.plan(DiskFault(at: number, .crash))
                func run() throws {
                    let file = try Self.sealed(disk).open("a", create: true)
                    try Self.write(file, Bytes("first".utf8))
                    try file.sync()
                    try disk.syncDirectory(.root)
                }
                let isDone = (try? run()) != nil
                disk.restart(after: restart)
                disk.clearFaults()
                let file = try Self.sealed(disk, seed: 6).open("a", create: true)
                let found = try Self.read(file, 100)
                if isDone || !found.isEmpty { #expect(found.count <= 5, "\(number)") }
                if isDone { #expect(found == Bytes("first".utf8)) }
                try Self.write(file, Bytes("second".utf8))
                #expect(try Self.read(file, 100) == Bytes("second".utf8), "\(number)")
            }
        }
    }

    static func made(_ masters: FileMasters = Self.masters()) throws -> SimulatedFiles {
        let disk = SimulatedFiles(seed: 1)
        try disk.makeDirectory("log")
        let file = try Self.sealed(disk, masters).open("log/a", create: true)
        try Self.write(file, Bytes("what nobody may read".utf8))
        try file.sync()
        try disk.syncDirectory("log")
        try disk.syncDirectory(.root)
        return disk
    }

    static func content(_ disk: SimulatedFiles, _ masters: FileMasters = Self.masters()) throws
        -> Bytes
    {
        try Self.read(Self.sealed(disk, masters).open("log/a", create: false), 100)
    }

    static func kind(_ body: () throws -> Void) -> DiskError.Kind? {
        do { try body() } catch { return (error as? DiskError)?.kind }
        return nil
    }

    @Test func `either slot of a header opens the file, and none is an error`() throws {
        let disk = try Self.made()
        let plain = Bytes("what nobody may read".utf8)
        disk.flip(bit: 3, at: 40, of: "log/a")
        #expect(try Self.content(disk) == plain)
        disk.flip(bit: 3, at: 40, of: "log/a")
        disk.flip(bit: 0, at: 2_048 + 17, of: "log/a")
        #expect(try Self.content(disk) == plain)
        disk.flip(bit: 1, at: 5, of: "log/a")
        #expect(Self.kind { _ = try Self.content(disk) } == .damaged, "one mark is left")
        disk.flip(bit: 1, at: 5, of: "log/a")
        disk.flip(bit: 1, at: 20, of: "log/a")
        #expect(Self.kind { _ = try Self.content(disk) } == .damaged)
        // A whole page that came back as zeros.
        let bytes = try #require(disk.contents(of: "log/a"))
        disk.plant(Bytes(repeating: 0, count: 4_096) + bytes[4_096...], at: "log/a")
        #expect(Self.kind { _ = try Self.content(disk) } == .damaged)
    }

    @Test func `a key that is missing, exchanged or of another directory opens nothing`() throws {
        let disk = try Self.made(Self.masters(Self.master(3, 9)))
        #expect(Self.kind { _ = try Self.content(disk) } == .sealed)
        #expect(
            Self.kind { _ = try Self.content(disk, Self.masters(Self.master(3, 8))) } == .sealed)
        let elsewhere = FileMasters(
            sealing: Self.master(3, 9), directory: RequestIdentity(high: 3, low: 5))
        #expect(Self.kind { _ = try Self.content(disk, elsewhere) } == .damaged)
        let both = Self.masters(Self.master(3, 8), Self.master(3, 9))
        #expect(try Self.content(disk, both) == Bytes("what nobody may read".utf8))
    }

    @Test func `a clear file is refused, whatever its size`() throws {
        for size in [1, 7, 100, 4_096, 5_000] {
            let disk = SimulatedFiles(seed: 1)
            try disk.makeDirectory("log")
            disk.plant(Bytes(repeating: 0x41, count: size), at: "log/a")
            #expect(Self.kind { _ = try Self.content(disk) } == .sealed, "\(size)")
            #expect(throws: SealedSurvey.Refusal.self, "\(size)") {
                try Self.survey(disk, Self.masters())
            }
            #expect(disk.contents(of: "log/a") == Bytes(repeating: 0x41, count: size))
        }
    }

    @Test func `locks, stamps and packs are written as they are`() throws {
        let disk = SimulatedFiles(seed: 1)
        let files = Self.sealed(disk)
        try disk.makeDirectory("assets/00012")
        for path: DiskPath in ["STRATUS", "MASTER", "assets/00012/00000001.pack"] {
            try Self.write(files.open(path, create: true), Bytes("as it is".utf8))
            #expect(disk.contents(of: path) == Bytes("as it is".utf8))
        }
        for path: DiskPath in [
            "KEYS", "VIEW", "assets/00012/index.db", "assets/00012/index.db-wal",
        ] {
            try Self.write(files.open(path, create: true), Bytes("as it is".utf8))
            #expect(disk.contents(of: path)?.count == 4_096 + 8 + 15)
        }
    }

    // MARK: Rotation

    @discardableResult static func survey(
        _ disk: SimulatedFiles, _ masters: FileMasters, seed: UInt64 = 77
    ) throws -> SealedSurvey {
        var random = SeededGenerator(seed: seed)
        var survey = SealedSurvey(disk, masters: masters) { random.next() }
        try survey.run()
        return survey
    }

    @Test func `a newer master key takes over every file, at whatever operation the node ends`()
        throws
    {
        let (old, new) = (Self.master(0, 1), Self.master(2, 5))
        let plain = Bytes("what nobody may read".utf8)
        let trial = try Self.made()
        let before = trial.operationCount
        #expect(try Self.survey(trial, Self.masters(new, old)).rewrappedCount == 1)
        let count = trial.operationCount - before
        #expect(try Self.survey(trial, Self.masters(new, old)).rewrappedCount == 0)
        #expect(try Self.content(trial, Self.masters(new)) == plain)
        #expect(Self.kind { _ = try Self.content(trial) } == .sealed, "the old key is of no use")
        for number in 1...count {
            for restart in [DiskRestart.processCrash, .powerLoss, .powerLossLosingAll] {
                for effect in [DiskFault.Effect.crash, .fail(.io)] {
                    let disk = try Self.made()
                    disk.plan(DiskFault(at: disk.operationCount + number, effect))
                    _ = try? Self.survey(disk, Self.masters(new, old))
                    disk.clearFaults()
                    disk.restart(after: .processCrash)
                    // The next start ends in its middle too, after it has seen what is in memory.
                    disk.plan(DiskFault(at: disk.operationCount + 4 + number % 5, .crash))
                    _ = try? Self.survey(disk, Self.masters(new, old), seed: 78)
                    disk.restart(after: restart)
                    disk.clearFaults()
                    let name = "\(effect) at \(number), \(restart)"
                    #expect(try Self.content(disk, Self.masters(new, old)) == plain, "\(name)")
                    try Self.survey(disk, Self.masters(new, old), seed: 79)
                    #expect(try Self.content(disk, Self.masters(new)) == plain, "\(name)")
                }
            }
        }
    }

    @Test func `a survey names the file whose master key is missing, and passes damaged ones`()
        throws
    {
        let disk = try Self.made(Self.masters(Self.master(3, 9)))
        do {
            try Self.survey(disk, Self.masters())
            Issue.record("the survey passed a file that does not open")
        } catch let refusal as SealedSurvey.Refusal {
            #expect(refusal.path == "log/a" && refusal.problem == .missing(version: 3))
        }
        for slot in [0, 2_048] { disk.flip(bit: 0, at: slot + 30, of: "log/a") }
        #expect(try Self.survey(disk, Self.masters()).damaged == ["log/a"])
    }

    // MARK: The format

    @Test func `a sealed file of version 1 reads and writes as ever`() throws {
        let disk = SimulatedFiles(seed: 1)
        try disk.makeDirectory("log")
        let number = Mutex<UInt64>(0)
        let files = SealedFiles(disk, masters: Self.masters(Self.master(7, 0x4D))) {
            number.withLock { number in
                number += 0x0101_0101_0101_0101
                return number
            }
        }
        let file = try files.open("log/a", create: true)
        try Self.write(file, Bytes("a file of version 1".utf8), at: 4_100)
        try Self.write(file, Bytes("its beginning".utf8))
        let bytes = try #require(disk.contents(of: "log/a"))
        try FormatTests.expect(bytes[..<FileSeal.encodedSize], "sealed-file-1-header")
        try FormatTests.expect(bytes, "sealed-file-1")
        let other = SimulatedFiles(seed: 2)
        try other.makeDirectory("log")
        other.plant(try FormatTests.golden("sealed-file-1"), at: "log/a")
        let read = try Self.read(
            Self.sealed(other, Self.masters(Self.master(7, 0x4D))).open("log/a", create: false),
            5_000)
        #expect(
            read == Bytes("its beginning".utf8) + Bytes(repeating: 0, count: 4_087)
                + Bytes("a file of version 1".utf8))
    }

    @Test func `damaged headers are never taken for sound ones`() throws {
        let header = try Bytes(#require(Self.made().contents(of: "log/a"))[..<4_096])
        var random = SeededGenerator(seed: 11)
        for _ in 0..<3_000 {
            var bytes = header
            for _ in 0..<Int.random(in: 1...200, using: &random) {
                let slot = [0, 2_048].randomElement(using: &random)!
                let place = slot + Int.random(in: 0..<FileSeal.encodedSize, using: &random)
                bytes[place] = UInt8(truncatingIfNeeded: random.next())
            }
            bytes.removeLast(Int.random(in: 0..<3, using: &random) * 1_500)
            switch FileSeal.find(in: bytes, length: 9_000) {
            case .sealed(let slots):
                for slot in slots {
                    let place = slot.offset..<(slot.offset + FileSeal.encodedSize)
                    #expect(Bytes(bytes[place]) == Bytes(header[place]))
                }
            case .damaged, .clear: break
            case .empty: Issue.record("a file with content is not empty")
            }
        }
    }
}
