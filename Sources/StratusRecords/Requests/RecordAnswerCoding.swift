package import StratusCoding
package import StratusModel
import StratusQuery

// Record answer, format 1: the body of a `QueryAnswer`. Never stored.
//
// | bytes | what                                                                           |
// | ----- | ------------------------------------------------------------------------------ |
// | 1     | format, 1                                                                      |
// | 1     | number of the question, see `RecordQuery.Kind`; or 0: the question was refused |
// | …     | the answer                                                                     |
//
// A record in an answer: text name and flag "in the same zone as the record before it". If that is
// not set: text zone name and text zone owner. Then a record body as in a row. Lookup: count of
// items (1 found and a record, 2 refused, 3 deferred), flag and zone summary. Zones: count of items
// (1 zone summary, 2 and 1 byte refusal). Zone page: as zones, then flag and text name. Zone
// changes: flag refused and 1 byte of the zone's refusal; else count of changes (1 and a record, 2
// deleted: text name, varint tag), position, flag more. Database changes: count of changes (text
// name, 1 reason of the deletion or 0, 1 reason of an earlier one or 0, flag and position, flag and
// zone summary), position, flag more. A
// page: flag placed; then count of places (two prefixed bytes: key, marker), count of records, flag and place; or count
// of records, flag and prefixed marker, flag and zone summary, varint touches. Schema: flag and
// schema. Jobs: flag. Work: two flags. Refused: 1 reason, text subject. Judged: count of
// operations, each a flag and a refusal. Use: varints records, bytes, custom zones. Held records:
// varints records and bytes, flag and prefixed place.

extension RecordAnswer {
    package func encoded() -> Bytes {
        var writer = AnswerWriter()
        switch self {
        case .lookup(let answer):
            writer.begin(.lookup)
            writer.bytes.write(count: answer.items.count)
            for item in answer.items {
                switch item {
                case .found(let record):
                    writer.bytes.write(1 as UInt8)
                    writer.write(record)
                case .refused(let refusal):
                    writer.bytes.write(2 as UInt8)
                    writer.bytes.write(refusal)
                case .deferred: writer.bytes.write(3 as UInt8)
                }
            }
            writer.write(answer.zone)
        case .zones(let answers):
            writer.begin(.zones)
            writer.write(answers)
        case .zonePage(let answers, let next):
            writer.begin(.zonePage)
            writer.write(answers)
            writer.bytes.write(flag: next != nil)
            if let next { writer.bytes.write(text: next) }
        case .zoneChanges(let page):
            writer.begin(.zoneChanges)
            writer.bytes.write(flag: false)
            writer.bytes.write(count: page.changes.count)
            for change in page.changes {
                switch change {
                case .changed(let record):
                    writer.bytes.write(1 as UInt8)
                    writer.write(record)
                case .deleted(let name, let tag):
                    writer.bytes.write(2 as UInt8)
                    writer.bytes.write(text: name)
                    writer.bytes.write(varint: tag.raw)
                }
            }
            writer.bytes.write(page.position)
            writer.bytes.write(flag: page.moreComing)
        case .zoneRefused(let refusal):
            writer.begin(.zoneChanges)
            writer.bytes.write(flag: true)
            writer.bytes.write(refusal.rawValue)
        case .databaseChanges(let page):
            writer.begin(.databaseChanges)
            writer.bytes.write(count: page.changes.count)
            for change in page.changes {
                writer.bytes.write(text: change.name)
                writer.bytes.write(change.deletion?.rawValue ?? 0)
                writer.bytes.write(change.deletedBefore?.rawValue ?? 0)
                writer.bytes.write(flag: change.since != nil)
                if let since = change.since { writer.bytes.write(since) }
                writer.write(change.zone)
            }
            writer.bytes.write(page.position)
            writer.bytes.write(flag: page.moreComing)
        case .page(let page):
            writer.begin(.page)
            writer.bytes.write(flag: false)
            writer.bytes.write(count: page.records.count)
            for record in page.records { writer.write(record) }
            writer.bytes.write(flag: page.next != nil)
            if let next = page.next { writer.bytes.write(prefixed: next) }
            writer.write(page.zone)
            writer.bytes.write(count: page.touchCount)
        case .placedPage(let page):
            writer.begin(.page)
            writer.bytes.write(flag: true)
            writer.bytes.write(count: page.places.count)
            for place in page.places { writer.bytes.write(place) }
            writer.bytes.write(count: page.records.count)
            for record in page.records { writer.write(record) }
            writer.bytes.write(flag: page.end != nil)
            if let end = page.end { writer.bytes.write(end) }
        case .schema(let schema):
            writer.begin(.schema)
            writer.bytes.write(flag: schema != nil)
            if let schema { writer.bytes.write(schema) }
        case .jobs(let isWaiting):
            writer.begin(.jobs)
            writer.bytes.write(flag: isWaiting)
        case .work(let isWaiting, let willWait):
            writer.begin(.work)
            writer.bytes.write(flag: isWaiting)
            writer.bytes.write(flag: willWait)
        case .judged(let refusals):
            writer.begin(.judge)
            writer.bytes.write(count: refusals.count)
            for refusal in refusals {
                writer.bytes.write(flag: refusal != nil)
                if let refusal { writer.bytes.write(refusal) }
            }
        case .use(let use, let zoneCount, let assets):
            writer.begin(.use)
            writer.bytes.write(use)
            writer.bytes.write(varint: zoneCount)
            writer.bytes.write(assets)
        case .buckets(let answer):
            writer.begin(.buckets)
            writer.bytes.write(varint: answer.mask.raw)
            writer.write(answer.zone)
        case .documents(let answer):
            writer.begin(.documents)
            writer.bytes.write(answer)
        case .heldRecords(let held):
            writer.begin(.heldRecords)
            writer.bytes.write(held.use)
            writer.bytes.write(flag: held.next != nil)
            if let next = held.next { writer.bytes.write(prefixed: next) }
        case .refused(let refusal):
            writer.beginRefusal()
            writer.bytes.write(refusal.reason.rawValue)
            writer.bytes.write(text: refusal.subject)
        }
        return writer.bytes.bytes
    }

    package init(decoding bytes: Bytes) throws(DecodingError) {
        var reader = AnswerReader(bytes: ByteReader(bytes))
        let version = try reader.bytes.byte()
        guard version == 1 else { throw DecodingError(.unknownVersion(version), at: 0) }
        let number = try reader.bytes.byte()
        if number == 0 {
            self = .refused(try reader.bytes.requestRefusal())
            try reader.bytes.finish()
            return
        }
        guard let kind = RecordQuery.Kind(rawValue: number) else {
            throw DecodingError(.malformed, at: 1)
        }
        switch kind {
        case .lookup: self = .lookup(try reader.lookupAnswer())
        case .zones: self = .zones(try reader.zoneAnswers())
        case .zonePage:
            let zones = try reader.zoneAnswers()
            self = .zonePage(
                zones, next: try reader.bytes.flag() ? try reader.bytes.text() : nil)
        case .zoneChanges:
            self =
                try reader.bytes.flag()
                ? .zoneRefused(try reader.bytes.zoneRefusal())
                : .zoneChanges(try reader.zoneChangesPage())
        case .databaseChanges: self = .databaseChanges(try reader.databaseChangesPage())
        case .page:
            self =
                try reader.bytes.flag()
                ? .placedPage(try reader.placedPage()) : .page(try reader.queryPage())
        case .schema: self = .schema(try reader.bytes.flag() ? try reader.bytes.schema() : nil)
        case .jobs: self = .jobs(isWaiting: try reader.bytes.flag())
        case .work:
            let isWaiting = try reader.bytes.flag()
            self = .work(isWaiting: isWaiting, willWait: try reader.bytes.flag())
        case .judge:
            var refusals: [RecordRefusal?] = []
            for _ in 0..<(try reader.bytes.count()) {
                refusals.append(
                    try reader.bytes.flag() ? try reader.bytes.recordRefusal() : nil)
            }
            self = .judged(refusals)
        case .use:
            let use = try reader.bytes.storageUse()
            let zoneCount = try reader.bytes.varint()
            self = .use(use, zoneCount: zoneCount, assets: try reader.bytes.assetUse())
        case .buckets:
            let mask = BucketMask(try reader.bytes.varint())
            self = .buckets(
                BucketsAnswer(
                    mask: mask,
                    zone: try reader.bytes.flag() ? try reader.bytes.zoneSummary() : nil))
        case .documents: self = .documents(try reader.bytes.documentsAnswer())
        case .heldRecords:
            let use = try reader.bytes.storageUse()
            self = .heldRecords(
                HeldRecords(
                    use: use, next: try reader.bytes.flag() ? try reader.bytes.prefixed() : nil))
        }
        try reader.bytes.finish()
    }
}

/// Writes answers. A record's row is copied into them as it is, without being decoded.
struct AnswerWriter {
    var bytes: ByteWriter
    private var lastZone: ZoneID?

    /// - Parameter capacity: about the size of the answer. One that grows is copied each time.
    init(reserving capacity: Int = 1_024) {
        self.bytes = ByteWriter(reserving: capacity)
    }

    mutating func begin(_ question: RecordQuery.Kind) {
        self.bytes.write(1 as UInt8)
        self.bytes.write(question.rawValue)
    }

    mutating func beginRefusal() {
        self.bytes.write(1 as UInt8)
        self.bytes.write(0 as UInt8)
    }

    mutating func write(_ record: Record) {
        self.writeHead(name: record.name, zone: record.zone)
        self.bytes.write(recordBody: record)
    }

    mutating func write(row: Bytes, name: String, zone: ZoneID) {
        self.writeHead(name: name, zone: zone)
        self.bytes.write(raw: row)
    }

    private mutating func writeHead(name: String, zone: ZoneID) {
        self.bytes.write(text: name)
        // Not compared as optionals, which takes four times as long.
        let isLast = if let lastZone = self.lastZone { lastZone == zone } else { false }
        self.bytes.write(flag: isLast)
        if isLast { return }
        self.lastZone = zone
        self.bytes.write(text: zone.name)
        self.bytes.write(text: zone.owner)
    }

    mutating func write(_ zones: [ZoneAnswer]) {
        self.bytes.write(count: zones.count)
        for answer in zones {
            switch answer {
            case .zone(let zone):
                self.bytes.write(1 as UInt8)
                self.bytes.write(zone)
            case .refused(let refusal):
                self.bytes.write(2 as UInt8)
                self.bytes.write(refusal.rawValue)
            }
        }
    }

    mutating func write(_ zone: ZoneSummary?) {
        self.bytes.write(flag: zone != nil)
        if let zone { self.bytes.write(zone) }
    }
}

private struct AnswerReader {
    var bytes: ByteReader
    private var lastZone: ZoneID?

    init(bytes: ByteReader) { self.bytes = bytes }

    mutating func record() throws(DecodingError) -> Record {
        let name = try self.bytes.text()
        let start = self.bytes.offset
        if try !self.bytes.flag() {
            let zoneName = try self.bytes.text()
            self.lastZone = ZoneID(name: zoneName, owner: try self.bytes.text())
        }
        guard let zone = self.lastZone else { throw DecodingError(.malformed, at: start) }
        return try self.bytes.recordBody(name: name, zone: zone)
    }

    mutating func optionalZone() throws(DecodingError) -> ZoneSummary? {
        try self.bytes.flag() ? try self.bytes.zoneSummary() : nil
    }

    mutating func lookupAnswer() throws(DecodingError) -> LookupAnswer {
        var items: [LookupAnswer.Item] = []
        for _ in 0..<(try self.bytes.count()) {
            switch try self.bytes.byte() {
            case 1: items.append(.found(try self.record()))
            case 2: items.append(.refused(try self.bytes.recordRefusal()))
            case 3: items.append(.deferred)
            default: throw DecodingError(.malformed, at: self.bytes.offset - 1)
            }
        }
        return LookupAnswer(items: items, zone: try self.optionalZone())
    }

    mutating func zoneAnswers() throws(DecodingError) -> [ZoneAnswer] {
        var answers: [ZoneAnswer] = []
        for _ in 0..<(try self.bytes.count(minimumSize: 2)) {
            switch try self.bytes.byte() {
            case 1: answers.append(.zone(try self.bytes.zoneSummary()))
            case 2: answers.append(.refused(try self.bytes.zoneRefusal()))
            default: throw DecodingError(.malformed, at: self.bytes.offset - 1)
            }
        }
        return answers
    }

    mutating func zoneChangesPage() throws(DecodingError) -> ZoneChangesPage {
        var changes: [ZoneChangesPage.Change] = []
        for _ in 0..<(try self.bytes.count(minimumSize: 3)) {
            switch try self.bytes.byte() {
            case 1: changes.append(.changed(try self.record()))
            case 2:
                let name = try self.bytes.text()
                changes.append(.deleted(name: name, tag: ChangeTag(try self.bytes.varint())))
            default: throw DecodingError(.malformed, at: self.bytes.offset - 1)
            }
        }
        let position = try self.bytes.feedPosition()
        return ZoneChangesPage(
            changes: changes, position: position, moreComing: try self.bytes.flag())
    }

    mutating func databaseChangesPage() throws(DecodingError) -> DatabaseChangesPage {
        var changes: [DatabaseChangesPage.Change] = []
        for _ in 0..<(try self.bytes.count(minimumSize: 5)) {
            let name = try self.bytes.text()
            let deletion = try self.bytes.deletionReason()
            let before = try self.bytes.deletionReason()
            let since = try self.bytes.flag() ? try self.bytes.feedPosition() : nil
            changes.append(
                DatabaseChangesPage.Change(
                    name: name, deletion: deletion, deletedBefore: before, since: since,
                    zone: try self.optionalZone()))
        }
        let position = try self.bytes.databasePosition()
        return DatabaseChangesPage(
            changes: changes, position: position, moreComing: try self.bytes.flag())
    }

    mutating func placedPage() throws(DecodingError) -> PlacedPage {
        var page = PlacedPage(places: [], records: [], end: nil)
        for _ in 0..<(try self.bytes.count(minimumSize: 2)) {
            page.places.append(try self.bytes.mergePlace())
        }
        for _ in 0..<(try self.bytes.count(minimumSize: 8)) {
            page.records.append(try self.record())
        }
        if try self.bytes.flag() { page.end = try self.bytes.mergePlace() }
        return page
    }

    mutating func queryPage() throws(DecodingError) -> QueryPage {
        var records: [Record] = []
        for _ in 0..<(try self.bytes.count(minimumSize: 8)) { records.append(try self.record()) }
        let next = try self.bytes.flag() ? try self.bytes.prefixed() : nil
        let zone = try self.optionalZone()
        return QueryPage(
            records: records, next: next, zone: zone, touchCount: try self.bytes.boundedInt())
    }
}

extension ByteWriter {
    mutating func write(_ place: MergePlace) {
        self.write(prefixed: place.key)
        self.write(prefixed: place.marker)
    }
}

extension ByteReader {
    mutating func mergePlace() throws(DecodingError) -> MergePlace {
        let key = try self.prefixed()
        return MergePlace(key: key, marker: try self.prefixed())
    }
}

// Records one after the other, each as in an answer, among what is laid.

extension ByteWriter {
    mutating func write(run records: [Record]) {
        self.write(count: records.count)
        var run = AnswerWriter(reserving: 0)
        swap(&run.bytes, &self)
        for record in records { run.write(record) }
        swap(&run.bytes, &self)
    }
}

extension ByteReader {
    mutating func recordRun() throws(DecodingError) -> [Record] {
        let count = try self.count(minimumSize: 8)
        var run = AnswerReader(bytes: self)
        var records: [Record] = []
        for _ in 0..<count { records.append(try run.record()) }
        self = run.bytes
        return records
    }
}
