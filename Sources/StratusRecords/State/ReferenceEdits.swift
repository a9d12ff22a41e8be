import StratusCoding
import StratusModel
import StratusRows

/// The references of one zone, as they will be once a command's changes are written.
struct ReferenceEdits {
    private struct Target {
        /// The counts that the rows have now.
        let base: ReferrerCounts
        var counts: ReferrerCounts
        /// The differences from the rows: the tag a reference was written at, or nil for one
        /// removed.
        var changes: [Referrer: ChangeTag?] = [:]
    }

    private struct Referrer: Hashable {
        var kind: ReferenceKind
        var name: String
    }

    let zone: ZoneNumber
    private var targets: [String: Target] = [:]
    /// How many references were added or renewed: one entry's work is bounded by it.
    private(set) var addedCount = 0

    init(zone: ZoneNumber) { self.zone = zone }

    /// How many records refer to `target`. Almost always a row that is not there.
    mutating func counts(of target: String, over rows: RowView)
        throws(StoreError) -> ReferrerCounts
    {
        if let known = self.targets[target] { return known.counts }
        return try self.load(target, over: rows).counts
    }

    mutating func add(
        _ reference: ActingReference, from referrer: String, at tag: ChangeTag,
        over rows: RowView
    ) throws(StoreError) {
        try self.add(
            ReferenceKind(reference.action), from: referrer, to: reference.target, at: tag,
            over: rows)
        self.addedCount += 1
    }

    mutating func add(
        _ kind: ReferenceKind, from referrer: String, to target: String, at tag: ChangeTag,
        over rows: RowView
    ) throws(StoreError) {
        _ = try self.load(target, over: rows)
        // In place: a copy of a wide target for each of its referrers would be quadratic.
        self.targets[target]?.changes[Referrer(kind: kind, name: referrer)] = .some(tag)
        self.targets[target]?.counts.change(kind, by: 1)
    }

    /// A reference that is there already, as if it were written at `tag`.
    mutating func renew(
        _ reference: ActingReference, from referrer: String, at tag: ChangeTag,
        over rows: RowView
    ) throws(StoreError) {
        _ = try self.load(reference.target, over: rows)
        let key = Referrer(kind: ReferenceKind(reference.action), name: referrer)
        self.targets[reference.target]?.changes[key] = .some(tag)
        self.addedCount += 1
    }

    mutating func remove(
        _ reference: ActingReference, from referrer: String, over rows: RowView
    ) throws(StoreError) {
        try self.remove(
            ReferenceKind(reference.action), from: referrer, to: reference.target, over: rows)
    }

    mutating func remove(
        _ kind: ReferenceKind, from referrer: String, to target: String, over rows: RowView
    ) throws(StoreError) {
        _ = try self.load(target, over: rows)
        self.targets[target]?.changes[Referrer(kind: kind, name: referrer)] = .some(nil)
        self.targets[target]?.counts.change(kind, by: -1)
    }

    /// The first `limit` records, in name order after `cursor`, that refer to `target`, with the
    /// tag each reference was written at.
    mutating func referrers(
        of name: String, _ kind: ReferenceKind, after cursor: String = "", limit: Int,
        over rows: RowView
    ) throws(StoreError) -> [(name: String, tag: ChangeTag)] {
        let target = try self.load(name, over: rows)
        let prefix = Keys.references(self.zone, target: name, kind)
        let start =
            cursor.isEmpty
            ? prefix
            : Keys.reference(self.zone, target: name, kind, referrer: cursor) + [0]
        var found: [(name: String, tag: ChangeTag)] = []
        // Every change behind the cursor may hide one stored row.
        let hiddenCount = target.changes.keys.count { $0.kind == kind && $0.name > cursor }
        let stored = try rows.rows(
            .reference, from: start, to: Keys.end(of: prefix),
            limit: limit + hiddenCount)
        for (key, row) in stored {
            guard let name = String(validating: key[prefix.count...], as: UTF8.self) else {
                throw StoreError(.unreadable, "reference key")
            }
            if target.changes[Referrer(kind: kind, name: name)] != nil { continue }
            found.append((name, try Self.tag(row)))
        }
        for (referrer, tag) in target.changes where referrer.kind == kind {
            if let tag, referrer.name > cursor { found.append((referrer.name, tag)) }
        }
        if !target.changes.isEmpty { found.sort { $0.name < $1.name } }
        return Array(found.prefix(limit))
    }

    func flush(into rows: Rows) throws(StoreError) {
        for name in self.targets.keys.sorted() {
            guard let target = self.targets[name], !target.changes.isEmpty else { continue }
            let changes = target.changes.sorted {
                ($0.key.kind.rawValue, $0.key.name) < ($1.key.kind.rawValue, $1.key.name)
            }
            for (referrer, tag) in changes {
                let key = Keys.reference(
                    self.zone, target: name, referrer.kind, referrer: referrer.name)
                if let tag {
                    try rows.put(.reference, key, Self.encoded(tag))
                } else {
                    try rows.remove(.reference, key)
                }
            }
            if target.counts == target.base { continue }
            let key = Keys.referrerCount(self.zone, target: name)
            if target.counts.isEmpty {
                try rows.remove(.reference, key)
            } else {
                try rows.put(.reference, key, target.counts.encoded())
            }
        }
    }

    private mutating func load(_ name: String, over rows: RowView)
        throws(StoreError) -> Target
    {
        if let known = self.targets[name] { return known }
        var counts = ReferrerCounts()
        if let row = try rows.row(.reference, Keys.referrerCount(self.zone, target: name)) {
            counts = try decodingRow("referrer counts") { () throws(DecodingError) in
                try ReferrerCounts(decoding: row)
            }
        }
        let target = Target(base: counts, counts: counts)
        self.targets[name] = target
        return target
    }

    private static func tag(_ row: Bytes) throws(StoreError) -> ChangeTag {
        try decodingRow("reference") { () throws(DecodingError) in
            var reader = ByteReader(row)
            return ChangeTag(try reader.varint())
        }
    }

    private static func encoded(_ tag: ChangeTag) -> Bytes {
        var writer = ByteWriter(reserving: 10)
        writer.write(varint: tag.raw)
        return writer.bytes
    }
}

extension ReferrerCounts {
    mutating func change(_ kind: ReferenceKind, by delta: Int) {
        func change(_ count: inout UInt64) { count = UInt64(Int(count) + delta) }
        switch kind {
        case .deleteSelf: change(&self.deleteSelf)
        case .validate: change(&self.validate)
        case .childThatGoes: change(&self.children)
        case .child:
            change(&self.children)
            change(&self.stayingChildren)
        }
    }

    mutating func change(_ action: Reference.Action, by delta: Int) {
        self.change(ReferenceKind(action), by: delta)
    }
}
