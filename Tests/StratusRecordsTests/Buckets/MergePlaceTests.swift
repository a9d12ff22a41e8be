import StratusModel
import Testing

@testable import StratusQuery
@testable import StratusRecords

/// Places of records in several buckets compare as the query's own order does.
@Suite struct MergePlaceTests {
    private static func bytes(_ random: inout SeededGenerator) -> Bytes {
        // Short, and of the bytes that an encoding gets wrong.
        (0..<Int.random(in: 0...3, using: &random)).map { _ in
            [0, 1, 2, 0x7F, 0xFE, 0xFF].randomElement(using: &random)!
        }
    }

    @Test func `bytes order as sort keys, directions, names and ends do`() throws {
        for seed in 0..<60 as Range<UInt64> {
            var random = SeededGenerator(seed: seed)
            let sorts = (0..<Int.random(in: 1...3, using: &random)).map { number in
                RecordSort(
                    field: .field("f\(number)"), ascending: Bool.random(using: &random))
            }
            let type = RecordType(
                name: "Book",
                fields: (0..<3).map { FieldDefinition(name: "f\($0)", type: FieldType(.string)) })
            var schema = IndexedSchema()
            _ = schema.install(Schema(version: 1, types: [type]), over: .none)
            let query = try CompiledQuery(
                RecordPredicate(recordType: "Book", sorts: sorts), in: schema,
                home: ZoneID(name: ZoneID.defaultName, owner: ""), requiresIndexes: false)
            let order = QueryOrder(query)
            let positions = (0..<40).map { _ in
                let count = Int.random(in: 0...sorts.count, using: &random)
                let isRecord = count == sorts.count && Bool.random(using: &random)
                return OrderedPosition(
                    keys: (0..<count).map { _ in Self.bytes(&random) },
                    name: isRecord ? Self.bytes(&random) : nil, zone: [])
            }
            for one in positions {
                for other in positions {
                    let (first, second) = (
                        MergePlace(one, order, 1), MergePlace(other, order, 1)
                    )
                    #expect(
                        (first < second) == order.isOrdered(one, before: other),
                        "seed \(seed): \(one) and \(other)")
                    if first.key == second.key { #expect(first.marker == second.marker) }
                }
            }
        }
    }
}
