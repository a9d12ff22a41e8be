import StratusModel
import Testing

@Suite struct PublicDatabaseTests {
    private static let container = ContainerReference(
        container: "iCloud.a", environment: .production)

    @Test func `buckets are offered in powers of two`() {
        #expect((-1...200).filter(Bucket.isOffered) == [1, 2, 4, 8, 16, 32, 64])
    }

    @Test func `a whole database is its only part`() {
        let whole = DatabaseID(container: Self.container, scope: .public, owner: "")
        let database = PublicDatabase(of: Self.container)
        #expect(database.parts == [whole])
        #expect(database.part(of: "a") == whole)
    }

    @Test(arguments: [2, 16, 64]) func `every record is in one of the parts`(count: Int) {
        let database = PublicDatabase(of: Self.container, bucketCount: count)
        #expect(database.parts.map { $0.bucket.map { Int($0.number) } } == Array(0..<count))
        var found: Set<DatabaseID> = []
        for number in 0..<2_000 {
            let part = database.part(of: "record \(number)")
            #expect(part.bucket?.holds("record \(number)") == true)
            found.insert(part)
        }
        #expect(found == Set(database.parts))
    }

    /// A later release relies on this: a bucket split in two gives its records to those two.
    @Test func `twice as many buckets part each in two`() {
        for number in 0..<2_000 {
            let half = Bucket(0, of: 8).sibling(of: "record \(number)")
            let whole = Bucket(0, of: 16).sibling(of: "record \(number)")
            #expect(whole.number % 8 == half.number)
        }
    }
}
