import StratusModel
import StratusRecords

extension RecordWorkload {
    /// An operation in the zone of long cascades. It saves a record, one that depends on it, and
    /// one that depends on that, together. Or it deletes the first one; or it saves one without its
    /// reference. So a client that refers to a record has seen it there.
    mutating func deepen(in group: GroupID, using random: inout SeededGenerator)
        -> RecordWork
    {
        func draw(_ count: Int) -> Int { Int.random(in: 0..<count, using: &random) }
        // Mostly the same below the same, so that saves state again what they said before.
        let rootNumber = draw(2)
        let childNumber = draw(4) == 0 ? draw(6) : rootNumber * 3 + draw(3)
        let root = "p\(rootNumber)"
        var operations: [RecordOperation] = []
        switch draw(8) {
        case 0...1: operations = [RecordOperation(.forceDelete, recordName: root)]
        case 2:
            operations = [
                RecordOperation(
                    .forceUpdate, recordName: ["d", "e"][draw(2)] + "\(draw(6))",
                    recordType: RecordWorld.type, fields: self.fields(using: &random))
            ]
        default:
            let chain = [
                root, "d\(childNumber)", "e\(draw(4) == 0 ? draw(6) : childNumber)",
            ]
            for (position, name) in chain.enumerated() {
                var fields = self.fields(using: &random)
                if position > 0 {
                    fields.append(
                        Self.reference(
                            RecordWorld.reference, to: chain[position - 1], .deleteSelf,
                            in: RecordWorld.deep))
                }
                operations.append(
                    RecordOperation(
                        .forceUpdate, recordName: name, recordType: RecordWorld.type,
                        fields: fields))
            }
        }
        return .command(
            .modifyRecords(
                ModifyRecords(
                    database: RecordWorld.deep.database, zone: RecordWorld.deep.zone,
                    isAtomic: operations.count > 1,
                    drawnIncarnation: ZoneIncarnation(random.next()),
                    rules: Self.rules(group, cascadeCountMax: 2), operations: operations)),
            RecordWorld.user(of: RecordWorld.deepDatabase))
    }
}
