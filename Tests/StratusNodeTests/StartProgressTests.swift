import StratusModel
import StratusNode
import Testing

/// The messages of a long start.
@Suite struct StartProgressTests {
    private var progress = StartProgress()

    private static func at(_ milliseconds: Int64) -> MonotonicTime {
        MonotonicTime(nanoseconds: (5_000 + milliseconds) * 1_000_000)
    }

    @Test mutating func `S-42 a long start speaks at its beginning, once a second, and at its end`()
    {
        // A segment each 70 ms.
        var words: [(count: Int, word: StartProgress.Word)] = []
        for count in 0...50 {
            let now = Self.at(Int64(count) * 70)
            if let word = self.progress.reached(count, of: 50, at: now) {
                words.append((count, word))
            }
        }
        #expect(words.map(\.count) == [0, 15, 30, 45, 50])
        #expect(words.first?.word == .begun)
        #expect(words.dropFirst().dropLast().allSatisfy { $0.word == .underWay })
        #expect(words.last?.word == .done(after: .milliseconds(3_500)))
    }

    @Test
    mutating func `S-42 a short one says that it begins and that it is done, and then nothing`() {
        #expect(self.progress.reached(0, of: 1, at: Self.at(0)) == .begun)
        #expect(
            self.progress.reached(1, of: 1, at: Self.at(3)) == .done(after: .milliseconds(3)))
        #expect(self.progress.reached(1, of: 1, at: Self.at(5_000)) == nil)
    }

    @Test mutating func `nothing is said of nothing`() {
        #expect(self.progress.reached(0, of: 0, at: Self.at(0)) == nil)
        #expect(self.progress.reached(0, of: 0, at: Self.at(2_000)) == nil)
    }
}
