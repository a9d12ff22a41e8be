package import StratusModel
package import StratusRecords

/// The records' state as a dictionary: every rule in its simplest form, no rows, no formats.
/// `RecordState` is compared with it, on one partition's store and in the simulator.
///
/// It has no size limits and no jobs: cascades end in one entry, and tombstones stay for ever.
package struct RecordModel {
    package struct Zone: Equatable {
        package var lastTag: UInt64
        var lastMilliseconds: Int64 = .min
        package var records: [String: Record] = [:]
        package var tombstones: [String: ChangeTag] = [:]
    }

    package struct Place: Hashable, Sendable {
        package var database: DatabaseID
        package var zone: String

        package init(database: DatabaseID, zone: String) {
            self.database = database
            self.zone = zone
        }
    }

    package private(set) var zones: [Place: Zone] = [:]
    private var graves: ZoneGraves

    package init(deletedZoneCountMax: UInt64 = RecordState.Bounds().deletedZoneCountMax) {
        self.graves = ZoneGraves(countMax: deletedZoneCountMax)
    }

    // MARK: Zones

    package mutating func apply(_ modify: ModifyZones) -> [Bool] {
        var named: Set<String> = []
        return modify.operations.map { operation in
            let place = Place(database: modify.database, zone: operation.zone)
            guard modify.database.scope == .private, !operation.zone.hasPrefix("_"),
                named.insert(operation.zone).inserted
            else { return false }
            switch operation.kind {
            case .create:
                if self.zones[place] == nil {
                    self.zones[place] = Zone(lastTag: self.graves.reopen(place))
                }
                return true
            case .delete:
                guard let zone = self.zones.removeValue(forKey: place) else { return false }
                self.graves.bury(place, lastTag: zone.lastTag)
                return true
            }
        }
    }

    /// Whether there is anything to be erased: zones, or memories of them.
    package func remembers(_ database: DatabaseID) -> Bool {
        self.graves.remember(database) || self.zones.keys.contains { $0.database == database }
    }

    /// - Returns: how many records went.
    package mutating func erase(_ database: DatabaseID) -> Int {
        let gone = self.zones.filter { $0.key.database == database }
        self.graves.erase(database, lastTags: gone.values.map(\.lastTag))
        for place in gone.keys { self.zones[place] = nil }
        return gone.values.map(\.records.count).reduce(0, +)
    }

    /// The names of a zone's records of a type that have `least` or more in an integer field,
    /// ordered by that field, then by name.
    package func query(
        _ place: Place, _ type: String, _ field: String, least: Int64, descending: Bool
    ) -> [String] {
        let records = self.zones[place]?.records ?? [:]
        return Self.query(
            Array(records.values), type, field, least: least, descending: descending)
    }

    /// The same of any records.
    package static func query(
        _ records: [Record], _ type: String, _ field: String, least: Int64, descending: Bool
    ) -> [String] {
        let found = records.compactMap {
            record -> (value: Int64, name: String)? in
            guard record.type == type,
                case .scalar(.int64(let value))? = record.fields.first(where: { $0.name == field })?
                    .value, value >= least
            else { return nil }
            return (value, record.name)
        }
        return found.sorted { one, two in
            if one.value != two.value { return (one.value < two.value) != descending }
            // Ties fall to the name, in the direction of the sort.
            return (one.name < two.name) != descending
        }.map(\.name)
    }

    // MARK: Records

    package enum Result: Equatable {
        case saved(Record)
        case deleted(ChangeTag?)
        case refused(RecordRefusal.Reason)
    }

    /// Nil: the request is refused as a whole.
    package mutating func apply(
        _ modify: ModifyRecords, by principal: Principal, at milliseconds: Int64
    ) -> [Result]? {
        let place = Place(database: modify.database, zone: modify.zone)
        let isDefault = modify.zone == ZoneID.defaultName
        let fresh = Zone(lastTag: self.graves.floor(of: place.database))
        guard var zone = self.zones[place] ?? (isDefault ? fresh : nil) else {
            return nil
        }
        if isDefault, modify.isAtomic { return nil }
        if Set(modify.operations.map(\.recordName)).count < modify.operations.count { return nil }
        let before = zone
        var step = Step(
            modify: modify, principal: principal,
            milliseconds: max(milliseconds, zone.lastMilliseconds), zone: zone)
        step.run()
        let results = modify.operations.indices.map { step.results[$0]! }
        let isRefused = results.contains { if case .refused = $0 { true } else { false } }
        if modify.isAtomic, isRefused {
            return results.map { if case .refused = $0 { $0 } else { .refused(.atomicFailure) } }
        }
        zone = step.zone
        if zone.lastTag != before.lastTag {
            zone.lastMilliseconds = step.milliseconds
            self.zones[place] = zone
        }
        return results
    }

    /// The feed, as a list of (name, record or nil for a deletion).
    package func feed(_ place: Place) -> [(name: String, record: Record?)] {
        guard let zone = self.zones[place] else { return [] }
        var changes: [(tag: ChangeTag, name: String, record: Record?)] = []
        for (name, record) in zone.records { changes.append((record.tag, name, record)) }
        for (name, tag) in zone.tombstones { changes.append((tag, name, nil)) }
        return changes.sorted { $0.tag < $1.tag }.map { ($0.name, $0.record) }
    }
}

/// One batch on a copy of one zone.
private struct Step {
    let modify: ModifyRecords
    let principal: Principal
    let milliseconds: Int64
    var zone: RecordModel.Zone
    var results: [Int: RecordModel.Result] = [:]

    private var entered: Set<Int> = []
    private var order: [Int] = []

    init(
        modify: ModifyRecords, principal: Principal, milliseconds: Int64, zone: RecordModel.Zone
    ) {
        self.modify = modify
        self.principal = principal
        self.milliseconds = milliseconds
        self.zone = zone
    }

    mutating func run() {
        for index in self.modify.operations.indices { self.enter(index) }
        // Deletions that others stood against are decided again, the last one first.
        var waiting = self.order.filter { self.results[$0] == .refused(.parentOfOthers) }
        while !waiting.isEmpty {
            for index in waiting.reversed() {
                self.results[index] = self.delete(self.modify.operations[index])
            }
            let left = waiting.filter { self.results[$0] == .refused(.parentOfOthers) }
            if left.count == waiting.count { return }
            waiting = left
        }
    }

    /// Custom zones of private databases keep who is whose parent.
    private var hasTree: Bool {
        self.modify.database.scope == .private && self.modify.zone != ZoneID.defaultName
    }

    /// Why a record may not come below another one.
    private func refusal(of name: String, below parent: String) -> RecordRefusal.Reason? {
        if parent == name { return self.hasTree ? .parentCircle : .parentMissing }
        guard self.zone.records[parent] != nil else {
            return self.hasTree ? .treeParentMissing : .parentMissing
        }
        var above = [parent]
        while above.count < (self.hasTree ? 256 : 257), let last = above.last,
            let next = self.zone.records[last]?.parent
        {
            if next == name { return .parentCircle }
            above.append(next)
        }
        return above.count < (self.hasTree ? 256 : 257) ? nil : .parentCircle
    }

    private mutating func enter(_ index: Int) {
        guard self.entered.insert(index).inserted else { return }
        let operation = self.modify.operations[index]
        if !operation.kind.isDelete {
            var needed: [String] = []
            if case .set(let parent) = operation.parent { needed.append(parent) }
            needed += Self.references(operation.fields, .validate)
            for name in needed {
                let maker = self.modify.operations.firstIndex {
                    $0.recordName == name && $0.kind.createsMissing
                }
                if let maker { self.enter(maker) }
            }
        }
        self.order.append(index)
        self.results[index] =
            operation.kind.isDelete ? self.delete(operation) : self.save(operation)
    }

    static func references(_ fields: [Field], _ action: Reference.Action) -> [String] {
        fields.flatMap { field -> [String] in
            let scalars: [Scalar] =
                switch field.value {
                case .scalar(let scalar): [scalar]
                case .list(_, let list): list
                case .sealed: []
                }
            return scalars.compactMap {
                if case .reference(let reference) = $0, reference.action == action {
                    reference.recordName
                } else {
                    nil
                }
            }
        }
    }

    private func mayWrite(_ record: Record) -> Bool {
        self.modify.database.scope == .private
            || record.created.userRecordName == self.principal.userRecordName
    }

    private func referrers(of target: String, _ action: Reference.Action) -> [String] {
        self.zone.records.values.filter {
            Self.references($0.fields, action).contains(target)
        }.map(\.name).sorted()
    }

    private mutating func save(_ operation: RecordOperation) -> RecordModel.Result {
        let name = operation.recordName
        if name.hasPrefix("_") { return .refused(.nameInvalid) }
        let old = self.zone.records[name]
        if let old, operation.kind != .create, !self.mayWrite(old) {
            return .refused(.writeDenied)
        }
        switch (operation.kind, old) {
        case (.create, .some): return .refused(.exists)
        case (.update, .none), (.replace, .none): return .refused(.notFound)
        case (.update, .some(let old)), (.replace, .some(let old)):
            guard let tag = operation.changeTag else { return .refused(.tagMissing) }
            if tag != old.tag.text { return .refused(.tagMismatch) }
        default: break
        }
        if let old, let type = operation.recordType, type != old.type {
            return .refused(.typeMismatch)
        }
        guard let type = old?.type ?? operation.recordType else { return .refused(.typeMissing) }

        let merges = operation.kind.merges
        var fields: [String: FieldValue] = [:]
        if merges { for field in old?.fields ?? [] { fields[field.name] = field.value } }
        for name in operation.clearedFields { fields[name] = nil }
        for field in operation.fields { fields[field.name] = field.value }
        var parent = merges ? old?.parent : nil
        switch operation.parent {
        case .unmentioned: break
        case .cleared: parent = nil
        case .set(let name): parent = name
        }
        let stamp = ChangeStamp(
            milliseconds: self.milliseconds, userRecordName: self.principal.userRecordName,
            deviceID: self.modify.deviceID)
        let record = Record(
            name: name, type: type,
            zone: ZoneID(name: self.modify.zone, owner: self.modify.database.owner),
            tag: ChangeTag(self.zone.lastTag + 1), created: old?.created ?? stamp,
            modified: stamp,
            fields: fields.sorted { $0.key < $1.key }.map { Field(name: $0.key, value: $0.value) },
            parent: parent)
        if let parent, parent != old?.parent,
            let reason = self.refusal(of: name, below: parent)
        {
            return .refused(reason)
        }
        for action in [Reference.Action.deleteSelf, .validate] {
            let had = Set(Self.references(old?.fields ?? [], action))
            for target in Set(Self.references(record.fields, action)).subtracting(had).sorted() {
                if action == .validate {
                    if target != name, self.zone.records[target] == nil {
                        return .refused(.referenceTargetMissing)
                    }
                } else if self.referrers(of: target, action).count
                    >= self.modify.rules.deleteSelfReferrerCountMax
                {
                    return .refused(.tooManyReferrers)
                }
            }
        }
        self.zone.lastTag += 1
        self.zone.records[name] = record
        self.zone.tombstones[name] = nil
        return .saved(record)
    }

    private mutating func delete(_ operation: RecordOperation) -> RecordModel.Result {
        guard let old = self.zone.records[operation.recordName] else {
            return operation.kind == .forceDelete ? .deleted(nil) : .refused(.notFound)
        }
        if !self.mayWrite(old) { return .refused(.writeDenied) }
        if operation.kind == .delete, let tag = operation.changeTag, tag != old.tag.text {
            return .refused(.tagMismatch)
        }
        if let type = operation.recordType, type != old.type { return .refused(.typeMismatch) }
        var victims = [old.name]
        var next = 0
        while next < victims.count {
            for referrer in self.referrers(of: victims[next], .deleteSelf)
            where !victims.contains(referrer) { victims.append(referrer) }
            next += 1
        }
        for victim in victims {
            if !self.referrers(of: victim, .validate).allSatisfy(victims.contains) {
                return .refused(.referenced)
            }
        }
        if self.hasTree {
            for child in self.zone.records.values where !victims.contains(child.name) {
                if let parent = child.parent, victims.contains(parent) {
                    return .refused(.parentOfOthers)
                }
            }
        }
        for victim in victims {
            self.zone.lastTag += 1
            self.zone.records[victim] = nil
            self.zone.tombstones[victim] = ChangeTag(self.zone.lastTag)
        }
        return .deleted(self.zone.tombstones[old.name])
    }
}
