import StratusCluster
import StratusHTTP
import StratusModel
import StratusRuntime
import Synchronization
import Testing

@testable import StratusAdmin

/// Lines that end by an error say so.
@Suite struct EndedLinesTests {
    private final class Lines: ResponseBody {
        private let left: Mutex<[Result<Bytes?, RouteError>]>
        init(_ pieces: [Result<Bytes?, RouteError>]) { self.left = Mutex(pieces) }
        func next() async throws -> Bytes? {
            try self.left.withLock { $0.isEmpty ? .success(nil) : $0.removeFirst() }.get()
        }
    }

    private static func line(_ text: String) -> Result<Bytes?, RouteError> {
        .success(Bytes("\(text)\n".utf8))
    }

    @Test func `lines that are whole have none more`() async throws {
        let lines = EndedLines(Lines([Self.line("1"), Self.line("2")]))
        var all = Bytes()
        while let piece = try await lines.next() { all += piece }
        #expect(all == Bytes("1\n2\n".utf8))
    }

    @Test(arguments: [0, 1, 5])
    func `lines that end by an error have a last one that says so, and are cut`(count: Int)
        async throws
    {
        let whole = (0..<count).map { Self.line("\($0)") }
        let lines = EndedLines(Lines(whole + [.failure(.refused("no page")), Self.line("more")]))
        for number in 0..<count {
            #expect(try await lines.next() == Bytes("\(number)\n".utf8))
        }
        let last = try #require(try await lines.next())
        #expect(last.last == 0x0A)
        let error = try JSONDocument(parsing: Bytes(last.dropLast())).root["error"]
        #expect(error?["code"]?.string == "INCOMPLETE")
        #expect(error?["reason"]?.string == "the lines before are not all: no page")
        for _ in 0..<2 {
            await #expect(throws: RouteError.refused("no page")) { try await lines.next() }
        }
    }
}
