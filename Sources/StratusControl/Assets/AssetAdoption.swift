import StratusAdminModel
import StratusCoding
import StratusCommandLine
import StratusHTTP
import StratusModel
import StratusProcess
import StratusRuntime
import Synchronization

/// `stratusctl assets adopt`: brings copies back from the packs of another disk.
struct AssetAdoption: AdminConversation {
    let context: ControlContext

    init(_ context: ControlContext) { self.context = context }

    static let command = ControlCommand(
        "adopt", "Take copies of files that are lost or missing from another disk",
        discussion: [
            "Reads the packs below DIRECTORY and writes nothing there. It is a node's data "
                + "directory, its folder 'assets', or one partition's folder in that, of this "
                + "cluster. The disk may be mounted read-only, and its 'index.db' is not needed.",
            "A copy is taken if a row names it, it is as that row says, and a member of its "
                + "partition lacks it. A file that was lost can be read again once a majority of "
                + "the members has all of it. What one disk lacks may come from the next: run "
                + "the command for each.",
            "Exit code 1 if a file whose copies were wanted is still not whole, or a pack could "
                + "not be read.",
        ],
        options: [.flag("dry-run", nil, "Only tell which files copies would be taken of")],
        positionals: [
            PositionalDefinition("DIRECTORY", .directory, "where the other disk's packs are")
        ],
        examples: [
            .init(
                "stratusctl assets adopt /mnt/old-node/data",
                "The disk of a node that does not start any more")
        ],
        run: AssetAdoption.run)

    /// Bodies that are asked about at a time.
    private static let askCountMax = 256
    /// Tries of one request that is answered with *later*.
    private static let tryCountMax = 5
    private static let pause = Duration.seconds(2)

    private struct Tally {
        var found = 0
        var completed = 0
        var incomplete = 0
        var wanted = 0
        var held = 0
        var unknown = 0
        var unsound = 0
        var troubles = 0
    }

    func run() async throws(AdminClient.Failure) -> ExitCode {
        let directory = self.invocation["DIRECTORY"] ?? ""
        let folders: [FoundPacks.Folder]
        do throws(SmallFile.Failure) { folders = try FoundPacks.folders(in: directory) } catch {
            throw Failure(.missingInput, "\(error)")
        }
        guard !folders.isEmpty else {
            throw Failure(
                .missingInput,
                "'\(directory)' holds no packs: give a node's data directory, or its folder "
                    + "'assets'")
        }
        var tally = Tally()
        for folder in folders {
            let packs: FoundPacks
            do throws(SmallFile.Failure) { packs = try FoundPacks(in: folder) } catch {
                tally.troubles += 1
                try self.say(AdoptionTrouble { $0.trouble = "\(error)" }, "\(error)\n")
                continue
            }
            for trouble in packs.troubles {
                tally.troubles += 1
                try self.say(AdoptionTrouble { $0.trouble = trouble }, "\(trouble)\n")
            }
            try await self.adopt(packs, &tally)
        }
        try self.end(tally)
        return tally.incomplete + tally.troubles == 0 ? .success : .refused
    }

    private func adopt(_ packs: FoundPacks, _ tally: inout Tally)
        async throws(AdminClient.Failure)
    {
        let partition = Int64(packs.group.raw) - 1
        var left = packs.bodies[...]
        while !left.isEmpty {
            let asked = Array(left.prefix(Self.askCountMax))
            let needs = try await self.needs(of: asked, in: partition)
            left = left.dropFirst(needs.count)
            for (body, need) in zip(asked, needs) {
                guard need.isKnown else {
                    tally.unknown += 1
                    continue
                }
                guard need.isWanted == true else {
                    tally.held += 1
                    continue
                }
                tally.wanted += 1
                try await self.adopt(body, need, packs, &tally)
            }
        }
    }

    private func needs(of bodies: [BodyID], in partition: Int64)
        async throws(AdminClient.Failure) -> [WantedRow]
    {
        let body = WantedBody {
            $0.partition = partition
            $0.bodies = bodies.map { String($0.raw, radix: 16) }
        }
        let answer = try await self.repeated { () async throws(Failure) in
            try await self.ask("POST", "/v1/assets/wanted", body)
        }
        let needs = (try answer.read() as Listing<WantedRow>).rows
        guard !needs.isEmpty, needs.count <= bodies.count else {
            throw Failure(.inputOutput, "the node's answer is not about what it was asked")
        }
        return needs
    }

    private func adopt(
        _ body: BodyID, _ need: WantedRow, _ packs: FoundPacks, _ tally: inout Tally
    ) async throws(AdminClient.Failure) {
        let name = String(body.raw, radix: 16)
        let partition = Int64(packs.group.raw) - 1
        let (chunkCount, ordinals) = (need.chunks ?? 0, packs.ordinals(of: body))
        let isLost = need.isLost == true
        func line(_ state: String, _ text: String, _ taken: Int64 = 0) throws(Failure) {
            try self.say(
                AdoptionLine {
                    $0.partition = partition
                    $0.body = name
                    $0.chunks = chunkCount
                    $0.here = Int64(ordinals.count)
                    $0.isLost = isLost
                    $0.state = state
                    $0.taken = taken
                },
                "partition \(partition): body \(name): \(ordinals.count) of \(chunkCount) chunks "
                    + "are here: \(text)\n")
        }
        guard !self.invocation.flag("dry-run") else {
            return try line("wanted", isLost ? "it is lost" : "members lack some of it")
        }
        let answer = try await self.repeated { () async throws(Failure) in
            try self.client.require(
                try await self.client.send(
                    "POST", "/v1/assets/adopt?partition=\(partition)&body=\(name)",
                    stream: CopyStream(body, ordinals, packs)))
        }
        let adopted: AdoptedAnswer = try answer.read()
        let taken = adopted.taken
        tally.unsound += Int(adopted.unsound)
        let state = adopted.state
        switch state {
        case "found":
            tally.found += 1
            try line(state, "it was lost, and can be read again", taken)
        case "held":
            tally.completed += 1
            try line(state, "every member has all of it now", taken)
        case "unknown":
            tally.unknown += 1
            try line(state, "it was deleted meanwhile", taken)
        default:
            tally.incomplete += 1
            try line(
                state,
                isLost
                    ? "it is still lost: a majority lacks some of it"
                    : "a member still lacks some of it, or is away", taken)
        }
    }

    /// Repeats what is answered with *later*: what was taken stays.
    private func repeated(
        _ work: () async throws(AdminClient.Failure) -> AdminClient.Answer
    ) async throws(AdminClient.Failure) -> AdminClient.Answer {
        for _ in 1..<Self.tryCountMax {
            do throws(Failure) { return try await work() } catch {
                guard error.code == .temporary else { throw error }
            }
            try? await Task.sleep(for: Self.pause)
        }
        return try await work()
    }

    private func end(_ tally: Tally) throws(AdminClient.Failure) {
        let isDry = self.invocation.flag("dry-run")
        var text =
            isDry
            ? "copies of \(tally.wanted) files are wanted"
            : "\(tally.found) files were lost and can be read again"
        if !isDry {
            text += ", \(tally.completed) were completed, \(tally.incomplete) are still not whole"
        }
        text +=
            "; \(tally.held) are whole without this disk, \(tally.unknown) are named by no row\n"
        if tally.unsound > 0 { text += "\(tally.unsound) copies were not as their rows say\n" }
        try self.say(
            AdoptionSummary {
                $0.isDone = true
                $0.wanted = Int64(tally.wanted)
                $0.found = Int64(tally.found)
                $0.completed = Int64(tally.completed)
                $0.incomplete = Int64(tally.incomplete)
                $0.held = Int64(tally.held)
                $0.unknown = Int64(tally.unknown)
                $0.unsound = Int64(tally.unsound)
                $0.troubles = Int64(tally.troubles)
            }, text)
    }

    private func say(_ object: some NamedMembers, _ text: String) throws(AdminClient.Failure) {
        guard self.show(object, text) == .success else {
            throw Failure(.inputOutput, "nobody reads the output")
        }
    }
}

/// The sound copies of one body, one piece each.
private final class CopyStream: ResponseBody {
    private let body: BodyID
    private let packs: FoundPacks
    private let left: Mutex<ArraySlice<UInt32>>

    init(_ body: BodyID, _ ordinals: [UInt32], _ packs: FoundPacks) {
        self.body = body
        self.packs = packs
        self.left = Mutex(ordinals[...])
    }

    func next() async throws -> Bytes? {
        while let ordinal = self.left.withLock({ $0.popFirst() }) {
            guard let bytes = self.packs.copy(self.body, ordinal) else { continue }
            return CopyFrame(ordinal: ordinal, storedSize: UInt32(bytes.count)).encoded() + bytes
        }
        return nil
    }
}
