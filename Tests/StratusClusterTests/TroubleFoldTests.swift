import StratusCluster
import StratusModel
import Testing

@Suite struct TroubleFoldTests {
    private static func at(_ seconds: Int) -> MonotonicTime {
        MonotonicTime(nanoseconds: Int64(seconds) * 1_000_000_000)
    }

    @Test func `a trouble that comes back every second is told once a minute, with how often`() {
        var fold = TroubleFold()
        var told: [String] = []
        for second in 0...120 {
            if let text = fold.tell("was refused", of: "b", at: Self.at(second)) {
                told.append("\(second): \(text)")
            }
        }
        #expect(
            told == [
                "0: was refused",
                "60: was refused (and 59 more times since the last such line)",
                "120: was refused (and 59 more times since the last such line)",
            ])
    }

    @Test func `another trouble and another peer are told at once`() {
        var fold = TroubleFold()
        #expect(fold.tell("was refused", of: "b", at: Self.at(0)) != nil)
        #expect(fold.tell("was silent", of: "b", at: Self.at(0)) != nil)
        #expect(fold.tell("was refused", of: "c", at: Self.at(0)) != nil)
        #expect(fold.tell("was refused", of: "b", at: Self.at(0)) == nil)
        // Long after, with nothing in between, it is told as the first time.
        #expect(fold.tell("was silent", of: "b", at: Self.at(600)) == "was silent")
    }

    @Test func `whoever opens connections cannot make it grow`() {
        var fold = TroubleFold()
        for number in 0..<(TroubleFold.countMax + 10) {
            #expect(fold.tell("x", of: "peer-\(number)", at: Self.at(number)) != nil)
        }
        // The oldest is forgotten, the newest known.
        #expect(fold.tell("x", of: "peer-0", at: Self.at(100)) == "x")
        #expect(fold.tell("x", of: "peer-73", at: Self.at(100)) == nil)
    }
}
