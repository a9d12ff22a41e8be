import StratusModel
import StratusRows

/// Locks: who holds one, and what it forbids.
///
/// A lock forbids to change its item, and what is below it if it is infinite, unless the command
/// shows its token. A lock on a folder, infinite or not, forbids to give and take items of the
/// folder. A folder leaves its place only with the tokens of all locks below it.
extension DocumentEdit {
    private func holds(_ lock: DocumentLock) -> Bool {
        lock.untilMilliseconds > self.zone.milliseconds
            || self.bugs.contains(.lockOutlivesItsTime)
    }

    /// An item and every folder above it.
    private mutating func chain(
        of id: String, _ rows: RowView
    ) throws(Stop) -> [String] {
        var chain = [id]
        var at = id
        while at != DocumentNames.root, chain.count <= DocumentNames.depthMax + 1 {
            if at == DocumentNames.documents {
                at = DocumentNames.root
            } else {
                guard let item = try self.stored(at, rows) else { break }
                at = item.folder
            }
            chain.append(at)
        }
        return chain
    }

    /// The locks that hold for an item.
    private mutating func locks(
        on id: String, _ rows: RowView
    ) throws(Stop) -> [DocumentLock] {
        guard self.locks.contains(where: { self.holds($0.lock) }) else { return [] }
        let chain = try self.chain(of: id, rows)
        return self.locks.map(\.lock).filter {
            self.holds($0) && ($0.item == id || $0.isInfinite && chain.contains($0.item))
        }
    }

    /// The places among the locks of those below an item, and of its own.
    private mutating func indices(
        withIn id: String, _ rows: RowView
    ) throws(Stop) -> [Int] {
        var found: [Int] = []
        for (index, (_, lock)) in self.locks.enumerated() where self.holds(lock) {
            if try self.chain(of: lock.item, rows).contains(id) { found.append(index) }
        }
        return found
    }

    /// The most locks that hold for an item or, where those looked for are infinite, for one below
    /// it. There only an item with locks of its own can have more.
    private mutating func mostLocks(
        on id: String, below isInfinite: Bool, _ rows: RowView
    ) throws(Stop) -> Int {
        let held = self.locks.map(\.lock).filter { self.holds($0) }
        var own: [String: Int] = [:]
        var infinite: [String: Int] = [:]
        for lock in held {
            own[lock.item, default: 0] += 1
            if lock.isInfinite { infinite[lock.item, default: 0] += 1 }
        }
        var most = 0
        for item in isInfinite ? [id] + held.map(\.item) : [id] {
            // Each item with locks once.
            guard let count = own.removeValue(forKey: item) ?? (item == id ? 0 : nil) else {
                continue
            }
            let chain = try self.chain(of: item, rows)
            guard chain.contains(id) else { continue }
            most = max(most, chain.dropFirst().reduce(count) { $0 + (infinite[$1] ?? 0) })
        }
        return most
    }

    /// One of the locks must have been shown.
    private func check(_ locks: [DocumentLock]) throws(Stop) {
        guard let first = locks.first, !self.bugs.contains(.lockNotAsked) else { return }
        guard locks.contains(where: { self.modify.tokens.contains($0.token) }) else {
            throw .refused(.locked, first.item)
        }
    }

    /// Before an item itself is changed.
    mutating func checkLocks(
        on item: DocumentItem, _ rows: RowView
    ) throws(Stop) {
        try self.check(try self.locks(on: item.id, rows))
    }

    /// Before an item comes to a folder or leaves it.
    mutating func checkLocks(
        onMembersOf folder: String, _ rows: RowView
    ) throws(Stop) {
        try self.check(try self.locks(on: folder, rows))
    }

    /// Before an item leaves its place, with everything below it.
    mutating func checkLocks(
        leaving item: DocumentItem, _ rows: RowView
    ) throws(Stop) {
        if self.locks.isEmpty { return }
        try self.checkLocks(on: item, rows)
        try self.checkLocks(onMembersOf: item.folder, rows)
        let below = try self.indices(withIn: item.id, rows).map { self.locks[$0].lock }
        for lock in below {
            try self.check(below.filter { $0.item == lock.item })
        }
    }

    /// Ends the locks on an item and below it.
    mutating func dropLocks(
        withIn id: String, _ rows: RowView
    ) throws(Stop) {
        if self.locks.isEmpty { return }
        for index in try self.indices(withIn: id, rows).reversed() {
            try self.drop(lockAt: index, rows)
        }
    }

    private mutating func drop(
        lockAt index: Int, _ rows: RowView
    ) throws(Stop) {
        let (slot, _) = self.locks.remove(at: index)
        guard let record = try self.record(DocumentLock.recordName(slot), rows) else { return }
        do throws(StoreError) { try self.zone.delete(record, over: rows) } catch {
            throw .store(error)
        }
    }

    // MARK: Operations

    private static func span(_ milliseconds: Int64) -> Int64 {
        min(max(1_000, milliseconds), DocumentLock.spanMilliseconds)
    }

    mutating func lock(
        _ wanted: DocumentLock, _ milliseconds: Int64, _ countMax: Int,
        _ rows: RowView
    ) throws(Stop) -> DocumentResult {
        if !DocumentNames.isRoot(wanted.item) { _ = try self.item(wanted.item, rows) }
        guard DocumentNames.isID(wanted.token),
            !self.locks.contains(where: { $0.lock.token == wanted.token })
        else { throw .refused(.idInvalid, wanted.token) }
        guard wanted.owner.count <= DocumentLock.ownerSizeMax else {
            throw .refused(.contentTooLarge, String(DocumentLock.ownerSizeMax))
        }
        var others = try self.locks(on: wanted.item, rows)
        if wanted.isInfinite {
            others += try self.indices(withIn: wanted.item, rows).map { self.locks[$0].lock }
        }
        if let other = others.first(where: { $0.isExclusive || wanted.isExclusive }) {
            throw .refused(.locked, other.item)
        }
        // Of shared ones: an exclusive lock holds alone.
        guard
            try self.mostLocks(on: wanted.item, below: wanted.isInfinite, rows)
                < DocumentLock.sharedCountMax
        else { throw .refused(.locked, wanted.item) }
        let held = self.locks.filter { self.holds($0.lock) }
        let limit = min(max(1, countMax), DocumentLock.countMax)
        guard held.count < limit else { throw .refused(.tooManyItems, String(limit)) }
        var slot = 0
        for (taken, _) in held.sorted(by: { $0.slot < $1.slot }) where taken == slot { slot += 1 }
        var lock = wanted
        lock.untilMilliseconds = self.zone.milliseconds + Self.span(milliseconds)
        self.locks.removeAll { $0.slot == slot }
        try self.write(lock, slot, rows)
        self.locks.append((slot, lock))
        self.locks.sort { $0.slot < $1.slot }
        return .lock(lock)
    }

    private mutating func write(
        _ lock: DocumentLock, _ slot: Int, _ rows: RowView
    ) throws(Stop) {
        let name = DocumentLock.recordName(slot)
        let known = try self.record(name, rows)
        try self.write(
            name, DocumentLock.type, lock.fields(in: self.zone.id), over: known, rows)
    }

    mutating func refresh(
        _ token: String, _ milliseconds: Int64, _ rows: RowView
    ) throws(Stop) -> DocumentResult {
        guard
            let index = self.locks.firstIndex(where: {
                $0.lock.token == token && self.holds($0.lock)
            })
        else { throw .refused(.lockNotFound, token) }
        var (slot, lock) = self.locks[index]
        lock.untilMilliseconds = self.zone.milliseconds + Self.span(milliseconds)
        try self.write(lock, slot, rows)
        self.locks[index].lock = lock
        return .lock(lock)
    }

    mutating func unlock(
        _ token: String, _ rows: RowView
    ) throws(Stop) -> DocumentResult {
        guard
            let index = self.locks.firstIndex(where: {
                $0.lock.token == token && self.holds($0.lock)
            })
        else { throw .refused(.lockNotFound, token) }
        try self.drop(lockAt: index, rows)
        return .unlocked
    }
}
