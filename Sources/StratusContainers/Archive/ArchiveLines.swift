import StratusCluster
import StratusCoding
import StratusHTTP
import StratusIdentity
import StratusModel
import StratusRecords
import StratusRuntime
import Synchronization

/// The archive as it goes out: a page in memory, never more.
///
/// A rotation may destroy the key of what a page holds, after it was read. Then the page is read
/// again. An archive that cannot have what a person has sealed ends with an error: it never goes
/// out without it.
final class ArchiveLines: ResponseBody {
    /// How often a page is read whose keys are gone.
    private static let readCountMax = 4

    private let state: Mutex<(head: Bytes?, walk: ArchiveWalk)>

    private let form: RecordForm
    private let keys: DatabaseKeys?
    private let files: (any ExportedFiles)?

    init(
        head: Bytes, walk: ArchiveWalk, form: RecordForm, keys: DatabaseKeys?,
        files: (any ExportedFiles)? = nil
    ) {
        self.keys = keys
        self.files = files
        self.state = Mutex((head, walk))
        self.form = form
    }

    func next() async throws -> Bytes? {
        let head = self.state.withLock { state -> Bytes? in
            defer { state.head = nil }
            return state.head
        }
        if let head { return head }
        // Asked for one piece at a time, so nobody else moves the walk meanwhile.
        var walk = self.state.withLock { $0.walk }
        defer { self.state.withLock { [walk] in $0.walk = walk } }
        var readCount = 0
        while true {
            let place = walk
            guard let piece = try await walk.next() else { return nil }
            switch piece {
            case .records(let records, let database):
                if records.isEmpty { continue }
                let opened = try await self.open(records, of: database)
                if opened.lacksKeys {
                    readCount += 1
                    guard readCount < Self.readCountMax else {
                        throw RouteError.refused("the keys of encrypted fields are gone")
                    }
                    walk = place
                    continue
                }
                return self.lines(records, opened, in: database)
            case .subscriptions(let found, let scope):
                if !found.isEmpty { return self.lines(found, in: scope) }
            case .keyValues(let entries, let scope):
                if !entries.isEmpty { return try self.lines(entries, in: scope) }
            case .documents(let changes, let scope):
                if !changes.isEmpty { return Self.lines(changes, in: scope) }
            case .content(let content, let database):
                return content.lines(in: database, from: self.files)
            case .begunAgain(let zone, let scope):
                return self.line(about: zone, in: scope, "begunAgain")
            case .incomplete(let zone, let scope):
                return self.line(about: zone, in: scope, "incomplete")
            }
        }
    }

    private func open(_ records: [Record], of database: DatabaseID) async throws -> OpenedFields {
        if let keys = self.keys { return try await keys.open(records) { _ in database } }
        let hasSealed = records.contains { record in
            record.fields.contains { if case .sealed = $0.value { true } else { false } }
        }
        guard !hasSealed else {
            throw RouteError.refused("this node has no keys for encrypted fields")
        }
        return .none
    }

    private func lines(
        _ records: [Record], _ opened: OpenedFields, in database: DatabaseID
    ) -> Bytes {
        var lines = Bytes()
        for record in records {
            let files = self.files == nil ? [] : ArchivedFile.all(of: record)
            var writer = JSONWriter(reserving: 512)
            writer.object {
                $0.member("database", database.scope.name)
                $0.key("record")
                self.form.record(record, opened, &$0)
                let closed = opened.closed(of: record)
                if !closed.isEmpty {
                    $0.key("unopened")
                    $0.array { list in for one in closed { list.write(one.field) } }
                }
                if !files.isEmpty {
                    $0.member("files", objects: files) { json, file in
                        json.member("field", file.field)
                        json.member("file", file.name)
                    }
                }
            }
            lines += writer.finish()
            lines.append(0x0A)
            guard let source = self.files else { continue }
            for file in files { lines += file.line(in: database, from: source) }
        }
        return lines
    }

    private func lines(_ subscriptions: [Subscription], in scope: DatabaseScope) -> Bytes {
        var lines = Bytes()
        for subscription in subscriptions {
            var writer = JSONWriter()
            writer.object {
                $0.member("database", scope.name)
                $0.key("subscription")
                self.form.subscription(subscription, &$0)
            }
            lines += writer.finish()
            lines.append(0x0A)
        }
        return lines
    }

    /// A key that stands on two lines changed while the archive was written: the later line counts.
    private func lines(
        _ entries: [KeyValuesPage.Entry], in scope: DatabaseScope
    ) throws -> Bytes {
        var lines = Bytes()
        for entry in entries {
            var writer = JSONWriter()
            try writer.object { (object) throws in
                object.member("database", scope.name)
                object.key("keyValue")
                try object.object { (item) throws in
                    item.member("key", entry.key)
                    if let value = entry.value {
                        item.key("value")
                        item.write(try PropertyListValue(decoding: value))
                    } else {
                        item.member("removed", true)
                    }
                }
            }
            lines += writer.finish()
            lines.append(0x0A)
        }
        return lines
    }

    private func line(
        about zone: ZoneID, in scope: DatabaseScope, _ remark: StaticString
    ) -> Bytes {
        var writer = JSONWriter()
        writer.object {
            $0.member("database", scope.name)
            $0.key("zoneID")
            self.form.zone(zone, &$0)
            $0.member(remark.description, true)
        }
        return writer.finish() + [0x0A]
    }
}
