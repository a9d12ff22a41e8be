import StratusCommandLine
import Testing

@Suite struct OutputTests {
    @Test func `a table is as wide as needed, numbers to the right, nothing trailing`() {
        var table = TextTable([.init("ROUTE"), .init("COUNT", alignsRight: true), .init("NOTE")])
        table.append(["records/modify", "7", ""])
        table.append(["x", "1200", "tail"])
        #expect(
            table.write() == """
                ROUTE           COUNT  NOTE
                records/modify      7
                x                1200  tail

                """)
    }

    @Test func `X-15 a cell with control characters stays one line`() {
        var table = TextTable([.init("")])
        table.append(["a\u{1B}[2J\nb\u{9B}"])
        #expect(table.write() == "a\u{FFFD}[2J\u{FFFD}b\u{FFFD}\n")
    }

    @Test func `progress is quiet for a second, then at most ten times a second`() {
        var bar = ProgressBar("Copying", isTerminal: true, width: 60)
        #expect(bar.update(done: 1, total: 4, unit: "files", elapsed: .milliseconds(999)) == nil)
        #expect(bar.finish() == nil)
        #expect(
            bar.update(done: 1, total: 4, unit: "files", elapsed: .seconds(1))
                == "\rCopying [######-------------------] 25% 1/4 files, 3 s left\u{1B}[K")
        #expect(bar.update(done: 2, total: 4, unit: "files", elapsed: .milliseconds(1_099)) == nil)
        #expect(
            bar.update(done: 4, total: 4, unit: "files", elapsed: .seconds(2))?
                .contains("100% 4/4 files") == true)
        #expect(bar.finish() == "\r\u{1B}[K")
        #expect(bar.finish() == nil)
    }

    @Test func `progress of unknown length counts`() {
        var bar = ProgressBar("Waiting", isTerminal: true)
        #expect(
            bar.update(done: 3, total: nil, unit: "tries", elapsed: .seconds(2))
                == "\rWaiting 3 tries, 2 s\u{1B}[K")
    }

    static let odd: [(done: Int, total: Int?)] = [
        (-1, 4), (5, 4), (0, 0), (.max, .max), (.min, .max), (0, -1),
    ]

    @Test(arguments: odd)
    func `odd numbers do no harm, in any width`(row: (done: Int, total: Int?)) {
        for width in [0, 1, 10, 80] {
            var bar = ProgressBar("T", isTerminal: true, width: width)
            #expect(
                bar.update(done: row.done, total: row.total, unit: "u", elapsed: .seconds(5)) != nil
            )
        }
    }

    @Test func `without a terminal there is a line each ten seconds`() {
        var bar = ProgressBar("Copying", isTerminal: false)
        func line(_ seconds: Int, _ done: Int, _ total: Int? = 4) -> String? {
            bar.update(done: done, total: total, unit: "files", elapsed: .seconds(seconds))
        }
        #expect(line(1, 0) == nil && line(9, 0) == nil)
        #expect(line(10, 1) == "Copying: 1 of 4 files, after 10 s\n")
        #expect(line(19, 2) == nil)
        #expect(line(33, 3) == "Copying: 3 of 4 files, after 33 s\n")
        #expect(line(42, 3) == nil)
        #expect(line(43, 3, nil) == "Copying: 3 files, after 43 s\n")
        #expect(bar.finish() == nil)
    }
}
