import StratusCluster
import StratusCoding
import StratusModel
import StratusQuery
import StratusRecords

// A position of a query over parts, before it is sealed:
//
// | bytes | what                                                                               |
// | ----- | ---------------------------------------------------------------------------------- |
// | 1     | kind: 1 sorted: the rest goes on in every part; 2 unsorted                         |
// | 1     | unsorted: the part to go on in; the rest is its own position, empty at its start   |

/// One page of a query over the buckets of a public database, or over all zones of a private one in
/// parts.
///
/// Sorted, it looks into all of them at once: keys first, records for the winners only
/// (``BucketMerge``). Without an order it takes one part after the other. The rows a page may touch
/// are shared out.
struct BucketQuery: Sendable {
    let queries: QueryService
    /// For the whole database; its marker is one of ours.
    let ask: QueryPageAsk
    let parts: SpreadParts
    /// The buckets in use.
    let mask: BucketMask
    let schema: Schema

    private enum Position {
        case sorted(Bytes)
        case unsorted(part: Int, Bytes?)
    }

    /// First looks that found only what was gone by the second.
    private static let roundCountMax = 3
    /// The touches that one part may always make, however many there are.
    private static let touchCountMin = 200

    private var numbers: [Int] { self.parts.numbers(self.mask) }
    private var limit: Int {
        min(
            self.ask.limit <= 0 ? RecordState.pageCountMax : self.ask.limit,
            RecordState.pageCountMax)
    }

    func page() async throws -> QueryPage {
        switch try self.position() {
        case .sorted(let marker): return try await self.sorted(after: marker)
        case .unsorted(let part, let marker): return try await self.unsorted(from: part, marker)
        case nil:
            return self.ask.predicate.sorts.isEmpty
                ? try await self.unsorted(from: 0, nil) : try await self.sorted(after: nil)
        }
    }

    private func position() throws(InputRefusal) -> Position? {
        guard let bytes = self.ask.after else { return nil }
        switch bytes.first {
        case 1: return .sorted(Bytes(bytes[1...]))
        case 2 where bytes.count >= 2 && Int(bytes[1]) < self.parts.count:
            return .unsorted(
                part: Int(bytes[1]), bytes.count > 2 ? Bytes(bytes[2...]) : nil)
        default: throw .invalidMarker
        }
    }

    private func part(_ number: Int, after: Bytes?, limit: Int, touches: Int) -> QueryPageAsk {
        var part = self.ask
        part.database = self.parts.part(number)
        // Names are each in one bucket of a public database, but may be in many zones.
        if part.zone == nil { part.part = UInt8(clamping: number) }
        part.after = after
        part.limit = limit
        part.touchCountMax = touches
        return part
    }

    // MARK: Unsorted

    private func unsorted(from first: Int, _ marker: Bytes?) async throws -> QueryPage {
        try await self.requireIndexes()
        var page = QueryPage(records: [], next: nil, zone: nil, touchCount: 0)
        for number in self.numbers where number >= first {
            let rest = self.limit - page.records.count
            let touches = self.ask.touchCountMax - page.touchCount
            guard touches > 0 else {
                page.next = [2, UInt8(number)]
                return page
            }
            // A page that is full is the last one where nothing follows: the next bucket is asked
            // for one record.
            let found = try await self.queries.page(
                self.part(
                    number, after: number == first ? marker : nil, limit: max(1, rest),
                    touches: touches),
                schema: self.schema)
            page.touchCount += found.touchCount
            guard rest > 0 else {
                if found.records.isEmpty, found.next == nil { continue }
                page.next = [2, UInt8(number)]
                return page
            }
            page.records += found.records
            if let next = found.next {
                page.next = [2, UInt8(number)] + next
                return page
            }
        }
        return page
    }

    /// While an index is built in some bucket, none answers: half of what there is would look like
    /// all of it, and the refusal would come with a later page. A sorted query asks all of them
    /// anyway.
    private func requireIndexes() async throws {
        guard self.ask.requiresIndexes else { return }
        let question = ReadyQueries.Question(
            self.ask.predicate, in: self.parts, self.mask, schemaVersion: self.schema.version)
        if self.queries.exchange.kernel.caches.readyQueries.holds(question) { return }
        try await withThrowingTaskGroup(of: Void.self) { tasks in
            for number in self.numbers {
                let part = self.part(number, after: nil, limit: 1, touches: 1)
                tasks.addTask { _ = try await self.queries.answer(part, schema: self.schema) }
            }
            try await tasks.waitForAll()
        }
        self.queries.exchange.kernel.caches.readyQueries.insert(question)
    }

    // MARK: Sorted

    private func sorted(after marker: Bytes?) async throws -> QueryPage {
        let numbers = self.numbers
        let touches = max(Self.touchCountMin, self.ask.touchCountMax / numbers.count)
        for _ in 0..<Self.roundCountMax {
            var asks: [QueryPageAsk?] = []
            for number in numbers {
                var ask = self.part(number, after: marker, limit: self.limit, touches: touches)
                ask.placed = .only
                asks.append(ask)
            }
            guard let first = try await self.look(asks) else {
                // Nothing it could be sorted by.
                return try await self.unsorted(from: 0, nil)
            }
            let merge = BucketMerge(
                first.map { .init(places: $0.places, end: $0.end) }, limit: self.limit)
            for number in asks.indices {
                asks[number]?.placed = .withRecords
                asks[number]?.limit = merge.counts[number]
                if merge.counts[number] == 0 { asks[number] = nil }
            }
            guard let second = try await self.look(asks) else {
                throw RouteError.notExecuted(retryAfter: .seconds(1))
            }
            let page = merge.page(second.map { .init(places: $0.places, end: $0.end) })
            if page.isStuck { continue }
            return QueryPage(
                records: page.taken.map { second[$0.part].records[$0.position] },
                next: page.next.map { [1] + $0.marker }, zone: nil, touchCount: 0)
        }
        throw RouteError.notExecuted(retryAfter: .seconds(1))
    }

    /// All at once; nothing where there is no question. Nil: some bucket does not sort what it
    /// answers.
    private func look(_ asks: [QueryPageAsk?]) async throws -> [PlacedPage]? {
        try await withThrowingTaskGroup(of: (Int, RecordAnswer).self) { tasks in
            for (number, ask) in asks.enumerated() {
                guard let ask else { continue }
                tasks.addTask { (number, try await self.queries.answer(ask, schema: self.schema)) }
            }
            var pages = asks.map { _ in PlacedPage(places: [], records: [], end: nil) }
            for try await (number, answer) in tasks {
                switch answer {
                case .placedPage(let page):
                    guard page.records.isEmpty || page.records.count == page.places.count else {
                        throw RouteError.refused("records without their places")
                    }
                    pages[number] = page
                case .page(let page) where page.records.isEmpty && page.next == nil: break
                default: return nil
                }
            }
            return pages
        }
    }
}
