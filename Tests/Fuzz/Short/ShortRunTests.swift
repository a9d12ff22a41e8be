import Foundation
import StratusModel
import Testing

/// A short run of every target of `Deploy/fuzz`, without its compiler: the kept corpus and the
/// golden files as they are, and then inputs that are changed at random.
///
/// A target that traps ends the process. The seed is printed before, and repeats the run.
/// `STRATUS_FUZZ_SEED` sets it, and `STRATUS_FUZZ_RUNS` how many inputs are changed.
@Suite struct ShortRunTests {
    @Test(arguments: FuzzTarget.all)
    func `every reader of untrusted bytes takes what is kept, and changed inputs`(
        target: FuzzTarget
    ) throws {
        let seed = Self.number("STRATUS_FUZZ_SEED") ?? .random(in: 0...UInt64(UInt32.max))
        print("fuzzing '\(target.name)' from the seed \(seed)")
        let kept = try target.kept()
        try #require(!kept.isEmpty, "nothing is kept for '\(target.name)'")
        for input in kept { #expect(target.run(input) == 0) }
        var mutation = Mutation(of: kept, seed: seed)
        for _ in 0..<(Self.number("STRATUS_FUZZ_RUNS") ?? 2_000) {
            #expect(target.run(mutation.next()) == 0)
        }
    }

    /// A target without a line in the table would have no run.
    @Test func `every target stands in the table`() throws {
        let files = try FileManager.default.contentsOfDirectory(atPath: FuzzTarget.folder.path)
            .filter { $0.hasSuffix(".swift") }.map { String($0.dropLast(6)) }
        #expect(files.sorted() == FuzzTarget.all.map(\.name))
    }

    private static func number(_ name: String) -> UInt64? {
        ProcessInfo.processInfo.environment[name].flatMap { UInt64($0) }
    }
}

/// A target of `Deploy/fuzz`.
struct FuzzTarget: Sendable, CustomTestStringConvertible {
    let name: String
    let function: @Sendable (UnsafePointer<UInt8>, Int) -> CInt

    /// Sorted by name.
    static let all = [
        FuzzTarget(name: "bulletin", function: fuzzBulletin),
        FuzzTarget(name: "command", function: fuzzCommand),
        FuzzTarget(name: "http", function: fuzzHTTP),
        FuzzTarget(name: "http2", function: fuzzHTTP2),
        FuzzTarget(name: "identity", function: fuzzIdentity),
        FuzzTarget(name: "if-header", function: fuzzIfHeader),
        FuzzTarget(name: "json", function: fuzzJSON),
        FuzzTarget(name: "json5", function: fuzzJSON5),
        FuzzTarget(name: "log", function: fuzzLog),
        FuzzTarget(name: "mail", function: fuzzMail),
        FuzzTarget(name: "multipart", function: fuzzMultipart),
        FuzzTarget(name: "peer", function: fuzzPeer),
        FuzzTarget(name: "provider", function: fuzzProvider),
        FuzzTarget(name: "range", function: fuzzRange),
        FuzzTarget(name: "schema", function: fuzzSchema),
        FuzzTarget(name: "snapshot", function: fuzzSnapshot),
        FuzzTarget(name: "subscription", function: fuzzSubscription),
        FuzzTarget(name: "ticket", function: fuzzTicket),
        FuzzTarget(name: "token", function: fuzzToken),
        FuzzTarget(name: "xml", function: fuzzXML),
    ]

    static let folder = URL(filePath: #filePath).deletingLastPathComponent()
        .deletingLastPathComponent()

    var testDescription: String { self.name }

    func run(_ input: Bytes) -> CInt {
        // An empty array has no address.
        guard !input.isEmpty else { return withUnsafePointer(to: 0) { self.function($0, 0) } }
        return input.withUnsafeBufferPointer { self.function($0.baseAddress!, $0.count) }
    }

    /// The kept corpus, an input a line in base64.
    func kept() throws -> [Bytes] {
        let file = Self.folder.appending(path: "Corpus/\(self.name).corpus")
        return try String(contentsOf: file, encoding: .utf8).split(separator: "\n").map {
            Bytes(try #require(Data(base64Encoded: String($0))))
        }
    }
}

/// Inputs made of kept ones: bits turned, bytes put in, left out or said twice, ends cut off, and
/// the beginning of one before the end of another.
struct Mutation {
    private let kept: [Bytes]
    private var random: SeededGenerator

    init(of kept: [Bytes], seed: UInt64) {
        self.kept = kept
        self.random = SeededGenerator(seed: seed)
    }

    mutating func next() -> Bytes {
        var input = self.kept.randomElement(using: &self.random) ?? []
        for _ in 0..<Int.random(in: 1...4, using: &self.random) { self.change(&input) }
        return Bytes(input.prefix(1_024))
    }

    private mutating func change(_ input: inout Bytes) {
        let place = Int.random(in: 0...input.count, using: &self.random)
        let end = min(input.count, place + Int.random(in: 1...8, using: &self.random))
        switch Int.random(in: 0..<7, using: &self.random) {
        case 0 where place < input.count:
            input[place] ^= 1 << UInt8.random(in: 0..<8, using: &self.random)
        case 1 where place < input.count:
            // Bounds of numbers and lengths.
            input[place] = [0, 1, 0x7F, 0x80, 0xFF].randomElement(using: &self.random) ?? 0
        case 2: input.insert(.random(in: 0...255, using: &self.random), at: place)
        case 3: input.removeSubrange(place..<end)
        case 4: input.insert(contentsOf: Bytes(input[place..<end]), at: place)
        case 5: input.removeSubrange(place...)
        default:
            let other = self.kept.randomElement(using: &self.random) ?? []
            let from = Int.random(in: 0...other.count, using: &self.random)
            input = Bytes(input[..<place] + other[from...])
        }
    }
}
