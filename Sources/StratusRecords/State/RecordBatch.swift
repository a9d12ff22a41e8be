import StratusCoding
import StratusModel
import StratusRows

/// Decides the operations of one `records/modify`, in order, over one zone.
///
/// Each operation reads, decides and, when nothing stands against it, changes the edit; a refused
/// operation leaves no trace. A save that needs a record which a later operation makes (a VALIDATE
/// target, a parent) is decided after that operation, whatever the order in the request.
struct RecordBatch {
    /// References that the state acts on, added by one entry: each costs a look-up.
    static let addedReferenceCountMax = 20_000

    var edit: ZoneEdit
    let modify: ModifyRecords
    let schema: Schema?
    let principal: Principal
    /// Stored bytes the batch may read and write.
    let sizeMax: Int
    /// Bytes by which the database may grow; nil: no quota.
    private let room: Int64?
    private var results: [ModifiedRecords.Result?]
    /// The bodies of the saved records, in the order of the operations.
    private var bodies: [Bytes?]
    /// Records and referrers that deletions of the batch looked at, each as often as one did.
    var referrerCount = 0
    /// Of which there are so many in one entry, and once more what the last deletion adds. The
    /// deletions behind it are left to another entry.
    static let referrerCountMax = 30_000
    /// The positions of the operations in the order in which they are decided.
    private(set) var decidedOrder: [Int] = []
    /// Records deleted so far, victims included.
    var deletedCount = 0
    /// The command's own: what is reserved for it in another bucket must last as long.
    var deadlineMilliseconds = Int64.min
    /// A key of the database that was looked for and is there.
    var openingVersion: UInt32?
    /// How the caller stands in the zone.
    var standing = Standing.owner
    /// Whether what other buckets must be told can be posted.
    var hasOutboxRoom = true

    init(
        _ modify: ModifyRecords, edit: ZoneEdit, schema: Schema?, principal: Principal,
        sizeMax: Int,
        room: Int64?
    ) {
        self.room = room
        self.sizeMax = sizeMax
        self.modify = modify
        self.edit = edit
        self.schema = schema
        self.principal = principal
        self.results = Array(repeating: nil, count: modify.operations.count)
        self.bodies = Array(repeating: nil, count: modify.operations.count)
    }

    /// Decides every operation. False: the batch was atomic and something was refused, so the edit
    /// must be dropped.
    mutating func run(over rows: RowView) throws(StoreError) -> Bool {
        self.decidedOrder = self.order()
        for index in self.decidedOrder { try self.decide(at: index, over: rows) }
        try self.decideAgain(over: rows)
        let hasRefusal = self.results.contains { if case .refused = $0 { true } else { false } }
        guard self.modify.isAtomic, hasRefusal else { return true }
        for index in self.results.indices {
            if case .refused = self.results[index] { continue }
            self.results[index] = .refused(RecordRefusal(.atomicFailure))
            self.bodies[index] = nil
        }
        return false
    }

    mutating func decide(at index: Int, over rows: RowView) throws(StoreError) {
        let result = try self.decide(self.modify.operations[index], over: rows)
        if case .saved(let saved) = result { self.bodies[index] = self.body(of: saved) }
        self.results[index] = result
    }

    func result(at index: Int) -> ModifiedRecords.Result? { self.results[index] }

    mutating func set(_ result: ModifiedRecords.Result, at index: Int) {
        self.results[index] = result
    }

    /// One result per operation. To be asked after ``run(over:)``.
    func finalResults() -> [ModifiedRecords.Result] {
        self.results.map { result in
            guard let result else { preconditionFailure("an operation was not decided") }
            return result
        }
    }

    /// See the detail's byte table beside `RecordOutcome.encoded()`.
    func encodedDetail() -> Bytes {
        let size = self.bodies.reduce(64) { $0 + ($1?.count ?? -64) + 64 }
        var writer = ByteWriter(reserving: size)
        writer.write(1 as UInt8)
        writer.write(text: self.modify.database.owner)
        for (index, body) in self.bodies.enumerated() {
            guard let body else { continue }
            writer.write(text: self.modify.operations[index].recordName)
            writer.write(raw: body)
        }
        return writer.bytes
    }

    /// Whether a record's row of `size` bytes would take more than the quota has left. What makes a
    /// database no larger is always let in.
    func overflows(_ name: String, size: Int) -> Bool {
        guard let room = self.room else { return false }
        let growth = self.edit.growth(of: name, to: size)
        return growth > 0 && self.edit.grownSize + Int64(growth) > room
    }

    private func body(of saved: SavedRecord) -> Bytes {
        guard let record = saved.record else { preconditionFailure("a save without its record") }
        if let encoded = self.edit.encodedRow(of: record.name), !encoded.isEmpty { return encoded }
        // A repeated create changed nothing.
        var writer = ByteWriter(reserving: 512)
        writer.write(recordBody: record)
        return writer.bytes
    }

    private mutating func decide(
        _ operation: RecordOperation, over rows: RowView
    ) throws(StoreError) -> ModifiedRecords.Result {
        // Small requests can name large records: what is left is asked for again, or in smaller
        // batches.
        if self.edit.touchedSize > self.sizeMax {
            return .refused(
                self.modify.isAtomic
                    ? RecordRefusal(.batchTooLarge, String(self.sizeMax))
                    : RecordRefusal(.deferred))
        }
        if operation.kind.isDelete, self.referrerCount > Self.referrerCountMax {
            return .refused(
                self.modify.isAtomic
                    ? RecordRefusal(.cascadeTooLarge, String(self.modify.rules.cascadeCountMax))
                    : RecordRefusal(.deferred))
        }
        if self.edit.assets.isFull {
            return .refused(
                self.modify.isAtomic
                    ? RecordRefusal(.tooManyAssets, String(AssetEdits.startCountMax))
                    : RecordRefusal(.deferred))
        }
        // Who has left by an operation of this batch may do no more.
        if self.standing == .none { return .refused(RecordRefusal(.notFound)) }
        if operation.kind.isDelete, let left = try self.leave(operation, over: rows) { return left }
        if let refusal = self.checkParticipant(operation) { return .refused(refusal) }
        return operation.kind.isDelete
            ? try self.delete(operation, over: rows) : try self.save(operation, over: rows)
    }

    /// Indices of the operations in the order they are decided: the request's, except that what a
    /// save needs comes before it. A circle of needs is entered where the request enters it.
    private func order() -> [Int] {
        let operations = self.modify.operations
        if operations.count == 1 { return [0] }
        let needs = operations.map(\.neededNames)
        if needs.allSatisfy(\.isEmpty) { return Array(operations.indices) }
        var makers: [String: Int] = [:]
        for (index, operation) in operations.enumerated() where operation.kind.createsMissing {
            makers[operation.recordName] = index
        }
        var order: [Int] = []
        var isEntered = Array(repeating: false, count: operations.count)
        for start in operations.indices where !isEntered[start] {
            // Depth first without recursion: a request may chain as deep as it is long.
            var path = [(index: start, next: 0)]
            isEntered[start] = true
            while let top = path.last {
                guard top.next < needs[top.index].count else {
                    order.append(top.index)
                    path.removeLast()
                    continue
                }
                path[path.count - 1].next += 1
                if let maker = makers[needs[top.index][top.next]], !isEntered[maker] {
                    isEntered[maker] = true
                    path.append((maker, 0))
                }
            }
        }
        return order
    }
}

extension RecordOperation {
    /// The records that must exist when this operation is decided.
    fileprivate var neededNames: [String] {
        if self.kind.isDelete { return [] }
        var names: [String] = []
        if case .set(let parent) = self.parent { names.append(parent) }
        for field in self.fields {
            switch field.value {
            case .scalar(.reference(let reference)) where reference.action == .validate:
                names.append(reference.recordName)
            case .list(.reference, let scalars):
                for case .reference(let reference) in scalars
                where reference.action == .validate { names.append(reference.recordName) }
            default: break
            }
        }
        return names
    }
}
