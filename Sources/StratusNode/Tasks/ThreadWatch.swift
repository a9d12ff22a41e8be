import StratusCluster
import StratusCoding
import StratusModel
import StratusRecords
import StratusRows
import StratusRuntime
import Synchronization

/// Checks twice a second what the storage thread and the event loops are doing. It reports what
/// blocks them in the log, in `/readyz` and as metrics. It runs on none of them.
final class ThreadWatch: Sendable {
    private static let interval = Duration.milliseconds(500)

    private let replicas: NodeReplicas
    private let loops: [EventLoop]
    private let world: any World
    private let health: Health
    private let log: Log
    private let times: PieceTimes?
    private let state = Mutex(StallWatch())

    init(
        _ replicas: NodeReplicas, loops: [EventLoop], world: any World, health: Health, log: Log,
        times: PieceTimes? = .ofProcess
    ) {
        self.replicas = replicas
        self.loops = loops
        self.world = world
        self.health = health
        self.log = log
        self.times = times
        replicas.watch.name(by: PieceName.of)
    }

    /// Threads stuck now, and stalls since the start.
    var figures: (now: Int, total: Int) { self.state.withLock { ($0.stalls.count, $0.count) } }

    func run() -> Task<Void, Never> {
        if self.times != nil { self.log.info("pieces of work are measured") }
        return Task.detached {
            while !Task.isCancelled {
                try? await Task.sleep(for: Self.interval)
                self.look()
            }
        }
    }

    func look() {
        self.tellLongPieces()
        let now = self.world.now
        var busy: [StallWatch.Busy] = []
        if let work = self.replicas.watch.work {
            busy.append(
                StallWatch.Busy(thread: "storage", since: work.since) { Self.text(work) })
        }
        for loop in self.loops {
            guard let since = loop.busySince else { continue }
            busy.append(
                StallWatch.Busy(thread: loop.name, since: since) { "one round of its events" })
        }
        let (news, text) = self.state.withLock { watch in
            (watch.look(busy, at: now), watch.text(at: now))
        }
        for item in news {
            switch item {
            case .began(let stall):
                self.log.error(
                    "a thread is stuck",
                    ["thread": .text(stall.thread), "work": .text(stall.what)])
            case .ended(let stall):
                let milliseconds = (now - stall.since).clampedNanoseconds / 1_000_000
                self.log.warning(
                    "the thread continues",
                    [
                        "thread": .text(stall.thread), "work": .text(stall.what),
                        "milliseconds": .integer(milliseconds),
                    ])
            }
        }
        if let text {
            self.health.raise("threads", text)
        } else if !news.isEmpty {
            self.health.clear("threads")
        }
    }

    /// Only a build that measures pieces has any.
    private func tellLongPieces() {
        for piece in self.times?.take() ?? [] {
            self.log.info(
                "a long piece",
                [
                    "thread": .text(piece.thread), "work": .text(piece.work),
                    "milliseconds": .integer(piece.longest.clampedNanoseconds / 1_000_000),
                    "count": .count(piece.count),
                ])
        }
    }

    // MARK: Saying what it is

    static func text(_ work: WorkWatch.Work) -> String {
        switch work.kind {
        case .read(let query): "\(Self.text(query)) in \(work.group)"
        case .apply(let entries):
            "entries \(entries.first?.index ?? .zero) to \(entries.last?.index ?? .zero)"
                + " in \(work.group)\(Self.identity(entries))"
        }
    }

    private static func identity(_ entries: ArraySlice<Entry>) -> String {
        guard let first = entries.first(where: { $0.kind == .command }),
            let command = try? Command(decoding: first.payload)
        else { return "" }
        return ", the first is request \(command.identity.uuid)"
            + " of \(command.container.container)"
    }

    private static func text(_ query: Query) -> String {
        if let (question, asker) = RecordState.questions.question(in: query) {
            let what = question.namedDatabase.map { " of \(Self.text($0))" } ?? ""
            return "\(type(of: question))\(what) for \(asker.kind) '\(asker.userRecordName)'"
        }
        guard query.kind == .records, let asked = try? RecordQuery(decoding: query.body) else {
            return "a read of kind \(query.kind)"
        }
        let who = "for \(asked.principal.kind) '\(asked.principal.userRecordName)'"
        switch asked.ask {
        case .page(let ask):
            return
                "a query of type '\(ask.predicate.recordType)' of \(Self.text(ask.database)) \(who)"
        case .lookup(let ask): return "a lookup of \(Self.text(ask.database)) \(who)"
        case .zones(let database, _), .zonePage(let database, _, _):
            return "zones of \(Self.text(database)) \(who)"
        case .zoneChanges(let ask): return "changes of a zone of \(Self.text(ask.database)) \(who)"
        case .databaseChanges(let ask): return "changes of \(Self.text(ask.database)) \(who)"
        case .judge(let ask): return "a batch of \(Self.text(ask.modify.database)) \(who)"
        case .use(let database): return "usage of \(Self.text(database)) \(who)"
        case .schema(let container): return "the schema of \(container.container)"
        case .buckets(let ask): return "the buckets in use of \(Self.text(ask.database)) \(who)"
        case .documents(let ask): return "documents of \(Self.text(ask.database)) \(who)"
        case .jobs, .work: return "a look for jobs"
        case .heldRecords: return "a count of records"
        }
    }

    private static func text(_ database: DatabaseID) -> String {
        "\(database.container.container) \(database.container.environment.name) \(database.scope.name)"
    }
}
