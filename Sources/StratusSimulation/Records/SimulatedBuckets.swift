import StratusModel
import StratusPlacement
import StratusRecords

/// A public database in buckets, which lie in different groups. It does the work of a gateway to
/// save a record that refers from one bucket to another.
struct SimulatedBuckets {
    static let nameCount = 10

    let count: Int
    /// Groups that hold buckets, the first of which is the group of partition 0.
    let partitionCount: Int
    /// The save that each client intends, once it has its reservation in another bucket.
    private var intended: [Int: Intent] = [:]

    private struct Intent {
        var operation: RecordOperation
        /// Nil: the reservation is not granted yet.
        var deadline: Int64?
    }

    /// - Returns: nil where there are not groups enough.
    init?(_ options: SimulationOptions, groups: [GroupID]) {
        guard options.bucketCount > 1 else { return nil }
        var count = 1
        while groups.contains(PartitionID(UInt16(count * 2 - 1)).group) { count *= 2 }
        guard groups.contains(PartitionID(0).group), count > 1 else { return nil }
        self.count = options.bucketCount
        self.partitionCount = count
    }

    static var names: [String] { (0..<Self.nameCount).map { "k\($0)" } }

    func database(of name: String) -> DatabaseID {
        DatabaseID(
            container: RecordWorld.container, scope: .public, owner: "",
            bucket: Bucket(0, of: self.count).sibling(of: name))
    }

    func group(of database: DatabaseID) -> GroupID {
        PlacementTable.partition(of: .database(database), among: self.partitionCount).group
    }

    var groups: [GroupID] { (0..<self.partitionCount).map { PartitionID(UInt16($0)).group } }

    // MARK: What clients do

    struct Step {
        var group: GroupID
        var work: RecordWork
        /// The deadline of the reservation that it relies on.
        var deadline: Int64?
    }

    /// The next step of a client: the save that it has reserved for, or something new.
    mutating func step(
        of client: Int, fields: [Field], using random: inout SeededGenerator
    ) -> Step {
        if let intent = self.intended.removeValue(forKey: client), let deadline = intent.deadline,
            // A gateway may die before it comes to that.
            Int.random(in: 0..<6, using: &random) > 0
        {
            return self.modify(intent.operation, deadline: deadline, using: &random)
        }
        let names = Self.names
        let name = names.randomElement(using: &random)!
        let database = self.database(of: name)
        switch Int.random(in: 0..<10, using: &random) {
        case 0:
            let place = RecordModel.Place(database: database, zone: ZoneID.defaultName)
            return Step(
                group: self.group(of: database), work: RecordWorkload.lookup([name], in: place))
        case 1...2:
            return self.modify(
                RecordOperation(.forceDelete, recordName: name), deadline: nil, using: &random)
        default: break
        }
        var operation = RecordOperation(
            .forceReplace, recordName: name, recordType: RecordWorld.type, fields: fields)
        // VALIDATE points to earlier names only, or two records would protect each other for ever.
        let isValidate = Int.random(in: 0..<3, using: &random) == 0
        let target = names.randomElement(using: &random)!
        guard target != name, !isValidate || target < name,
            Int.random(in: 0..<4, using: &random) > 0
        else { return self.modify(operation, deadline: nil, using: &random) }
        let action: Reference.Action = isValidate ? .validate : .deleteSelf
        let zone = ZoneID(name: ZoneID.defaultName, owner: "")
        operation = RecordOperation(
            .forceReplace, recordName: name, recordType: RecordWorld.type,
            fields: fields + [
                Field(
                    name: "r",
                    value: .scalar(
                        .reference(Reference(recordName: target, zone: zone, action: action))))
            ])
        let other = self.database(of: target)
        if other == database { return self.modify(operation, deadline: nil, using: &random) }
        self.intended[client] = Intent(operation: operation)
        return Step(
            group: self.group(of: other),
            work: .command(
                .reserveReferences(
                    ReserveReferences(
                        database: other, drawnIncarnation: ZoneIncarnation(random.next()),
                        wishes: [
                            ReserveReferences.Wish(target: target, action: action, referrer: name)
                        ])), RecordWorld.users[0]))
    }

    private func modify(
        _ operation: RecordOperation, deadline: Int64?, using random: inout SeededGenerator
    ) -> Step {
        let database = self.database(of: operation.recordName)
        return Step(
            group: self.group(of: database),
            work: .command(
                .modifyRecords(
                    ModifyRecords(
                        database: database, drawnIncarnation: ZoneIncarnation(random.next()),
                        operations: [operation])), RecordWorld.users[0]),
            deadline: deadline)
    }

    /// Takes the answer to a client's request for a reservation.
    mutating func hear(
        _ refusals: [RecordRefusal?], _ reserve: ReserveReferences, by client: Int,
        as identity: RequestIdentity, deadline: Int64
    ) {
        guard refusals == [nil], let wish = reserve.wishes.first else {
            self.intended[client] = nil
            return
        }
        self.intended[client]?.operation.reservations = [
            ReferenceReservation(
                target: wish.target, action: wish.action, identity: identity,
                deadlineMilliseconds: deadline)
        ]
        self.intended[client]?.deadline = deadline
    }

    // MARK: The end

    /// Both ends of every link agree, no protected record is gone, and nothing is left over.
    func check(_ ends: [LinkEnds], _ records: [String: Record]) -> Violation? {
        func violation(_ text: String) -> Violation { Violation("links between buckets", text) }
        let unconfirmedCount = ends.reduce(0) { $0 + $1.unconfirmedCount }
        if unconfirmedCount > 0 { return violation("\(unconfirmedCount) are never settled") }
        let inbound = Set(ends.flatMap(\.inbound))
        let outbound = Set(ends.flatMap(\.outbound))
        for end in ends.flatMap(\.inbound) where !outbound.contains(end) {
            return violation("\(end.target) counts on \(end.referrer), which holds no such link")
        }
        for end in ends.flatMap(\.outbound) where !inbound.contains(end) {
            // A target may have forgotten a link only because it deleted the referrer, or tried to.
            if end.action == .validate {
                return violation("\(end.target) does not know that \(end.referrer) needs it")
            }
        }
        var expected = 0
        for name in records.keys.sorted() {
            guard case .scalar(.reference(let reference))? = records[name]?.value(of: "r") else {
                continue
            }
            let target = reference.recordName
            if reference.action == .validate, records[target] == nil {
                return violation("\(name) needs \(target), which is gone")
            }
            guard self.database(of: target) != self.database(of: name) else { continue }
            expected += 1
            let isHeld = outbound.contains { end in
                (end.referrer, end.target, end.action) == (name, target, reference.action)
            }
            if !isHeld { return violation("\(name) refers to \(target) without a link") }
        }
        if outbound.count != expected {
            return violation("\(outbound.count) links are held by \(expected) references")
        }
        return nil
    }
}
