package import StratusModel

/// Bodies that will not be named: copies of an upload that was cut off, or refused at its end.
extension CopyKeeper {
    /// Forgets the copies of a body that will not be named. Whoever says so may be wrong: what a
    /// row names, or what is not known to be named by none, stays.
    package func drop(_ body: BodyID, of group: GroupID) {
        guard self.appliedNow(group) != nil, !self.isStopped else { return }
        // Some of its copies may be on their way here, or wait to be stored.
        self.forgotten.insert(body)
        self.dropWaiting(body, of: group)
        var from = CopyName(body: body, ordinal: 0)
        while true {
            let page =
                self.attempt(group, makes: false) { store throws(StoreError) in
                    try store.held(from: from, limit: 1_024)
                } ?? []
            let names = page.map(\.name).filter { $0.body == body }
            guard let wants = self.groups[group]?.wants, !names.isEmpty else { break }
            let unnamed = names.filter { wants.isUnnamed($0) }
            let isDone: Void? = self.attempt(group, makes: false) { store throws(StoreError) in
                try store.remove(unnamed)
            }
            if isDone != nil, !unnamed.isEmpty {
                self.groups[group]!.wants.removed(unnamed)
                self.groups[group]!.hasGarbage = true
            }
            guard let next = names.last?.next, next.body == body else { break }
            from = next
        }
    }

    private func dropWaiting(_ body: BodyID, of group: GroupID) {
        var kept: [Waiting] = []
        var dropped: [Waiting] = []
        for put in self.groups[group]?.puts ?? [] {
            let isDropped = put.copy.name.body == body && self.isForgotten(put.copy, of: group)
            if isDropped { dropped.append(put) } else { kept.append(put) }
        }
        if dropped.isEmpty { return }
        self.groups[group]!.puts = kept
        for put in dropped {
            self.queueBytes -= put.copy.bytes.count
            put.answer.resume(returning: .refused(.failed))
        }
    }

    /// Whether a copy is of a body that was dropped. One that a row names, and one that is brought
    /// from another node, is taken all the same.
    func isForgotten(_ copy: StoredCopy, of group: GroupID) -> Bool {
        self.forgotten.contains(copy.name.body) && copy.orphanAfterMilliseconds != .max
            && self.groups[group]?.wants.isMissing(copy.name) != true
            && self.groups[group]?.wants.isLost(copy.name.body) != true
    }
}

/// The bodies that were dropped last.
struct ForgottenBodies: Sendable {
    private static let countMax = 1_024

    private var bodies: Set<BodyID> = []
    private var order: [BodyID] = []
    private var next = 0

    func contains(_ body: BodyID) -> Bool { self.bodies.contains(body) }

    mutating func insert(_ body: BodyID) {
        guard self.bodies.insert(body).inserted else { return }
        if self.order.count < Self.countMax {
            self.order.append(body)
        } else {
            self.bodies.remove(self.order[self.next])
            self.order[self.next] = body
            self.next = (self.next + 1) % Self.countMax
        }
    }
}
