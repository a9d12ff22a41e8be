package import StratusModel
package import StratusRecords

/// The records that must be left, among records that refer to one another by DELETE_SELF, when the
/// jobs of all cascades are done. It knows outcomes alone. A cascade left to jobs, or to mail,
/// takes time, and a client's write meanwhile must be told apart from earlier ones.
///
/// Records refer by one field, and nothing protects them.
package struct CascadeModel {
    /// The future of a record.
    private enum Fate {
        /// It stays: its target was not deleted since it last said that it refers to it.
        case stays
        /// It goes, whenever that will be.
        case goes
        /// It depends on how far cascades had come when it, or what it refers to, was saved.
        case open
    }

    private struct Known {
        var record: Record
        var target: String?
        var fate: Fate
    }

    private let field: String
    private var known: [String: Known] = [:]

    package init(field: String) { self.field = field }

    /// - Parameter result: as the state decided it, with the record whole.
    package mutating func apply(_ operation: RecordOperation, _ result: ModifiedRecords.Result) {
        switch result {
        case .refused, .left: break
        case .deleted(tag: nil): break
        case .deleted: self.delete(operation.recordName)
        case .saved(let saved):
            guard let record = saved.record else { return }
            self.save(record, states: operation.fields.contains { $0.name == self.field })
        }
    }

    private mutating func save(_ record: Record, states: Bool) {
        let before = self.known[record.name]
        let target = self.target(of: record)
        let fate: Fate
        if let target, states {
            // A record shares the fate of one it refers to that is still to be deleted, or may be
            // gone.
            fate = (self.known[target]?.fate ?? .stays) == .stays ? .stays : .open
        } else {
            // It is as it was; without a reference nothing takes it with it.
            fate = target == nil ? .stays : before?.fate ?? .stays
        }
        self.known[record.name] = Known(record: record, target: target, fate: fate)
        // Nobody knows whether it was saved before its own deletion, which deletes others with it,
        // or after it.
        if fate != before?.fate ?? .stays { self.loosen(whatRefersTo: record.name) }
    }

    private mutating func loosen(whatRefersTo name: String) {
        var open = [name]
        var seen: Set<String> = [name]
        while let next = open.popLast() {
            for referrer in self.referrers(of: next) where seen.insert(referrer).inserted {
                self.known[referrer]?.fate = .open
                open.append(referrer)
            }
        }
    }

    private mutating func delete(_ name: String) {
        self.known[name] = nil
        for referrer in self.referrers(of: name) { self.doom(referrer) }
    }

    /// Its target is deleted, and so is whatever refers to it.
    private mutating func doom(_ name: String) {
        guard let fate = self.known[name]?.fate, fate != .goes else { return }
        self.known[name]?.fate = .goes
        var open = [(name: name, isSure: fate == .stays)]
        var seen: Set<String> = [name]
        while let next = open.popLast() {
            for referrer in self.referrers(of: next.name) where seen.insert(referrer).inserted {
                guard let fate = self.known[referrer]?.fate, fate != .goes else { continue }
                // A record that may be gone already deletes no others.
                let isSure = next.isSure && fate == .stays
                self.known[referrer]?.fate = isSure ? .goes : .open
                open.append((referrer, isSure))
            }
        }
    }

    private func referrers(of name: String) -> [String] {
        self.known.values.filter { $0.target == name }.map(\.record.name).sorted()
    }

    private func target(of record: Record) -> String? {
        guard case .scalar(.reference(let reference))? = record.value(of: self.field),
            reference.action == .deleteSelf, reference.recordName != record.name
        else { return nil }
        return reference.recordName
    }

    /// How many records cascades have spared, and how many they have taken, for sure.
    package var sureCounts: (stay: Int, go: Int) {
        (
            self.known.values.count { $0.fate == .stays && $0.target != nil },
            self.known.values.count { $0.fate == .goes }
        )
    }

    /// The error in `records`, which are all there are; nil if there is none.
    package func problem(in records: [String: Record]) -> String? {
        for name in Set(records.keys).union(self.known.keys).sorted() {
            guard let known = self.known[name] else { return "\(name) was deleted and is there" }
            switch (known.fate, records[name]) {
            case (.stays, nil):
                return "\(name) was saved, and nobody has deleted it"
                    + (known.target.map { " or \($0) since" } ?? "")
            case (.stays, let record?), (.open, let record?), (.goes, let record?):
                if known.fate == .goes {
                    return "\(name) is left behind by \(known.target ?? "nobody")"
                }
                if record != known.record { return "\(name) is not what was last saved" }
            case (.open, nil), (.goes, nil): break
            }
        }
        return nil
    }
}
