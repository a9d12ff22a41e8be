import StratusModel
import Testing

@Suite struct PrivateDatabaseTests {
    private static let container = ContainerReference(
        container: "iCloud.a", environment: .production)

    @Test func `a whole database is its home`() {
        let database = PrivateDatabase(of: "_ann", in: Self.container)
        let home = DatabaseID(container: Self.container, scope: .private, owner: "_ann")
        #expect(database.parts == [home] && !database.isSpread)
        #expect(database.part(of: "Shelves") == home && database.number(of: "Shelves") == nil)
    }

    @Test(arguments: [2, 16, 64]) func `every custom zone is in one bucket`(count: Int) {
        let database = PrivateDatabase(of: "_ann", in: Self.container, bucketCount: count)
        #expect(database.parts.count == count + 1 && database.parts[0] == database.home)
        #expect(database.part(of: ZoneID.defaultName) == database.home)
        var found: Set<DatabaseID> = []
        for number in 0..<2_000 {
            let part = database.part(of: "zone \(number)")
            #expect(part.zoneBucket?.holds("zone \(number)") == true)
            #expect(part.recordBucket == nil && part.whole == database.home)
            found.insert(part)
        }
        #expect(found == Set(database.parts.dropFirst()))
    }

    @Test func `a mask names buckets by number`() {
        let mask = BucketMask(of: [0, 3, 63])
        #expect(mask.raw == 9 + (UInt64(1) << 63))
        #expect(mask.numbers(below: 64) == [0, 3, 63] && mask.numbers(below: 4) == [0, 3])
        #expect(mask.contains(BucketMask(of: [3])) && !mask.contains(BucketMask(of: [3, 4])))
        #expect(mask.subtracting(BucketMask(of: [3])).numbers(below: 64) == [0, 63])
        #expect(BucketMask().union(mask) == mask && BucketMask().isEmpty)
        #expect(BucketMask.all.numbers(below: 64).count == 64)
        let database = PrivateDatabase(of: "_ann", in: Self.container, bucketCount: 4)
        #expect(database.parts(mask).map { $0.bucket.map { Int($0.number) } } == [nil, 0, 3])
    }

    @Test func `each layout of a container begins above the tags of the one before`() {
        #expect(ContainerLayout(generation: 1).tagFloor == 0)
        #expect(ContainerLayout(generation: 2).tagFloor == 1 << 32)
        #expect(ContainerLayout(generation: 3).tagFloor == 2 << 32)
        #expect(ContainerLayout(generation: .max).tagFloor == 1 << 56)
    }
}
