import StratusModel
import StratusRecords

/// Every record of one incarnation of a zone, at every tag it ever had. Tags count a zone's
/// changes, so a tag determines all its content.
struct ZoneHistory {
    private struct Version {
        var tag: UInt64
        /// Nil: deleted.
        var record: Record?
    }

    private(set) var lastTag: UInt64
    private var versions: [String: [Version]] = [:]

    init(after tag: UInt64) { self.lastTag = tag }

    /// Adds what has changed since, as the model has it now.
    mutating func advance(to zone: RecordModel.Zone) {
        guard zone.lastTag > self.lastTag else { return }
        for (name, record) in zone.records where record.tag.raw > self.lastTag {
            self.versions[name, default: []].append(
                Version(tag: record.tag.raw, record: record))
        }
        for (name, tag) in zone.tombstones where tag.raw > self.lastTag {
            self.versions[name, default: []].append(Version(tag: tag.raw, record: nil))
        }
        self.lastTag = zone.lastTag
    }

    func record(_ name: String, at tag: ChangeTag) -> Record? {
        self.versions[name]?.last { $0.tag <= tag.raw }?.record
    }

    func records(at tag: ChangeTag) -> [String: Record] {
        var records: [String: Record] = [:]
        for name in self.versions.keys {
            if let record = self.record(name, at: tag) { records[name] = record }
        }
        return records
    }
}
