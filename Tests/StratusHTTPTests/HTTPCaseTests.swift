import StratusHTTP
import StratusModel
import Testing

/// The table of `Fixtures/http-cases.txt`, each case cut in every way that could matter.
@Suite struct HTTPCaseTests {
    @Test func `the table holds at least 250 cases of different names`() {
        let names = Set(HTTPCase.all.map(\.name))
        #expect(names.count == HTTPCase.all.count)
        #expect(names.count >= 250)
        for line in [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 18] {
            let identifier = line < 10 ? "G-0\(line)" : "G-\(line)"
            #expect(names.contains { $0.hasPrefix(identifier) }, "\(identifier)")
        }
    }

    @Test(arguments: HTTPCase.all)
    func `in one piece`(row: HTTPCase) throws {
        try self.check(row, [row.bytes])
    }

    @Test(arguments: HTTPCase.all.filter { $0.bytes.count <= 40_000 })
    func `byte by byte`(row: HTTPCase) throws {
        try self.check(row, row.bytes.map { [$0] })
    }

    @Test(arguments: HTTPCase.all, [1, 2, 3] as [UInt64])
    func `cut at random`(row: HTTPCase, seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        var pieces: [Bytes] = []
        var rest = row.bytes[...]
        while !rest.isEmpty {
            let most = [3, 20, 200, 5_000].randomElement(using: &random)!
            let count = min(rest.count, Int.random(in: 1...most, using: &random))
            pieces.append(Bytes(rest.prefix(count)))
            rest = rest.dropFirst(count)
        }
        try self.check(row, pieces)
    }

    private func check(_ row: HTTPCase, _ pieces: [Bytes]) throws {
        var server = EchoServer()
        for piece in pieces { server.receive(piece) }
        let bodiless = Set(row.answers.indices.filter { row.answers[$0].isBodiless })
        let answers = try PlainAnswers.read(server.sent, bodiless: bodiless)
        #expect(answers.map(\.status) == row.answers.map(\.status), "\(row.name)")
        for (answer, expected) in zip(answers, row.answers) where expected.body != nil {
            #expect(answer == expected, "\(row.name)")
        }
        let end: HTTPCase.End = server.isClosed ? .close : server.isIdle ? .open : .partial
        #expect(end == row.end, "\(row.name)")
    }
}
