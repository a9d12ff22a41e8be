import StratusModel
import StratusRecords
import Testing

@testable import StratusGateway

/// Which operations go first, and where.
@Suite struct BucketPlanTests {
    private static let buckets = Bucket(0, of: 2)
    private static let zone = ZoneID(name: ZoneID.defaultName, owner: "")

    /// Names in bucket 0 and 1.
    private static func names(_ number: Int) -> [String] {
        var names: [String] = []
        var next = 0
        while names.count < 6 {
            let name = "r\(next)"
            if Self.buckets.sibling(of: name).number == number { names.append(name) }
            next += 1
        }
        return names
    }

    private static func save(
        _ name: String, to target: String? = nil, _ action: Reference.Action = .validate,
        parent: String? = nil
    ) -> RecordOperation {
        RecordOperation(
            .create, recordName: name, recordType: "T",
            fields: target.map {
                [
                    Field(
                        name: "r",
                        value: .scalar(
                            .reference(Reference(recordName: $0, zone: Self.zone, action: action))))
                ]
            } ?? [], parent: parent.map { .set($0) } ?? .unmentioned)
    }

    private static func waves(_ operations: [RecordOperation]) -> [[[Int]]] {
        BucketPlan(operations, buckets: Self.buckets).waves.map { $0.map(\.positions) }
    }

    @Test func `operations go with those of their bucket, in one wave if nothing needs another`() {
        let (here, there) = (Self.names(0), Self.names(1))
        #expect(Self.waves([]) == [])
        #expect(
            Self.waves([
                Self.save(there[0]), Self.save(here[0]), Self.save(there[1]),
                Self.save(here[1], to: there[0], .deleteSelf),
            ]) == [[[1, 3], [0, 2]]])
    }

    @Test func `what another bucket makes comes a wave later, what the own one makes does not`() {
        let (here, there) = (Self.names(0), Self.names(1))
        #expect(
            Self.waves([
                Self.save(here[0], to: there[0]), Self.save(there[0], to: there[1]),
                Self.save(there[1], parent: here[1]), Self.save(here[1]),
            ]) == [[[3]], [[1, 2]], [[0]]])
        // Not in the request: nothing to wait for.
        #expect(Self.waves([Self.save(here[0], to: there[0])]) == [[[0]]])
        // A delete makes nothing.
        #expect(
            Self.waves([
                Self.save(here[0], to: there[0]),
                RecordOperation(.forceDelete, recordName: there[0]),
            ]) == [[[0], [1]]])
    }

    @Test func `a circle is entered where the request enters it, and everything is carried out`() {
        let (here, there) = (Self.names(0), Self.names(1))
        let waves = Self.waves([
            Self.save(here[0], to: there[0]), Self.save(there[0], to: here[0]),
        ])
        #expect(waves == [[[1]], [[0]]])
    }

    @Test func `every operation is in one place, whatever needs whatever`() {
        let names = Self.names(0) + Self.names(1)
        var random = SeededGenerator(seed: 4)
        for _ in 0..<300 {
            let operations = names.shuffled(using: &random).map { name in
                Self.save(
                    name,
                    to: Bool.random(using: &random) ? names.randomElement(using: &random) : nil,
                    parent: Bool.random(using: &random) ? names.randomElement(using: &random) : nil)
            }
            let plan = BucketPlan(operations, buckets: Self.buckets)
            let positions = plan.waves.flatMap { $0.flatMap(\.positions) }
            #expect(positions.sorted() == Array(operations.indices))
            for part in plan.waves.flatMap({ $0 }) {
                #expect(part.positions.allSatisfy { part.bucket.holds(operations[$0].recordName) })
            }
            #expect(plan.waves.allSatisfy { !$0.isEmpty })
        }
    }
}
