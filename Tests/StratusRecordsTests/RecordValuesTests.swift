import StratusModel
import StratusRows
import Testing

@testable import StratusQuery
@testable import StratusRecords

/// A record's values made once say what the record says.
@Suite struct RecordValuesTests {
    private static let home = ZoneID(name: "Shelves", owner: "_owner")

    @Test(arguments: 1...20 as ClosedRange<UInt64>)
    func `filters find the same by values made once`(seed: UInt64) throws {
        var library = QueryLibrary(seed: seed)
        let names = (0..<4).map { "r\($0)" }
        let compiler = FilterCompiler(
            QueryLibrary.type, in: QueryLibrary.schema, home: Self.home, requiresIndexes: false)
        var filters: [(RecordFilter, CompiledFilter)] = []
        for _ in 0..<300 {
            let filter = library.filter(home: Self.home, names: names)
            if let compiled = try? compiler.compile(filter) { filters.append((filter, compiled)) }
        }
        #expect(filters.count > 100)
        var matchCount = 0
        for name in names {
            let record = library.record(name, zone: Self.home)
            var values = RecordValues(record)
            for (filter, compiled) in filters {
                var work = ReadWork()
                let matches = compiled.matches(&values, &work)
                #expect(matches == compiled.matches(record), "seed \(seed): \(filter) \(record)")
                #expect(work.comparisonCount > 0)
                if matches { matchCount += 1 }
            }
        }
        #expect(matchCount > 0)
    }

    @Test(arguments: 1...10 as ClosedRange<UInt64>)
    func `a compiler for many filters says what one for each says`(seed: UInt64) throws {
        var library = QueryLibrary(seed: seed)
        var elsewhere = FilterCompiler(
            QueryLibrary.type, in: QueryLibrary.schema, home: Self.home, requiresIndexes: false)
        elsewhere.home = ZoneID(name: "Elsewhere", owner: "_owner")
        let here = FilterCompiler(
            QueryLibrary.type, in: QueryLibrary.schema, home: Self.home, requiresIndexes: false)
        let asking = FilterCompiler(QueryLibrary.type, in: QueryLibrary.schema, home: Self.home)
        for _ in 0..<300 {
            let filter = library.filter(home: Self.home, names: ["r0"])
            let one = try? here.compile(filter)
            if let indexed = try? asking.compile(filter), let one {
                #expect(indexed.target == one.target, "seed \(seed): \(filter)")
            }
            // What does not name the home zone is the same in every zone.
            guard !here.namesHome(filter) else { continue }
            let other = try? elsewhere.compile(filter)
            for number in 0..<3 {
                let record = library.record("r\(number)", zone: Self.home)
                #expect(
                    one?.matches(record) == other?.matches(record), "seed \(seed): \(filter)")
            }
        }
    }

    @Test func `words are counted as they are cut, stop words too`() {
        for (text, count) in [
            ("", 0), ("sea", 1), ("the sea", 2), ("low-tide's end", 4), ("京都 x", 3),
            ("e\u{301}t", 1), ("\u{301}", 1), (" a  b ", 2), ("ABC1 _ 2", 2),
        ] {
            #expect(Tokeniser.wordCount(of: text) == count, "\(text)")
            #expect(Tokeniser.words(of: text).count <= count, "\(text)")
        }
    }
}
