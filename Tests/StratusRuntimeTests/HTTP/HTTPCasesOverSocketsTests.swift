import StratusHTTP
import StratusModel
import Testing

@testable import StratusRuntime

/// The table of raw cases, sent over real sockets: the state machine's answers must not depend on
/// its surroundings. Each case is sent whole, and again in three pieces with a pause between.
@Suite struct HTTPCasesOverSocketsTests {
    /// The answer that the table expects of the server: the request and its body.
    private static let handler = ClosureHandler { request in
        var text = Bytes("\(request.head.method) \(request.head.path)".utf8)
        if let query = request.head.query { text += Bytes("?\(query)".utf8) }
        guard let body = try? await request.body.collect() else { return .text("", status: 413) }
        if !body.isEmpty { text += [0x20] + body }
        return HTTPResponse(status: 200, body: .bytes(text))
    }

    @Test func `G-01 to G-13: every case of the table, whole and in pieces`() async throws {
        var limits = HTTPServerLimits.forTests
        limits.lingerSizeMax = .mebibytes(4)
        try await withServer(Self.handler, limits: limits, gzipSizeMin: nil) { _, address in
            for row in HTTPCase.all {
                try Self.check(row, [row.bytes], address)
                let third = max(1, row.bytes.count / 3)
                let pieces = [
                    Bytes(row.bytes.prefix(third)), Bytes(row.bytes.dropFirst(third).prefix(third)),
                    Bytes(row.bytes.dropFirst(2 * third)),
                ]
                try Self.check(row, pieces.filter { !$0.isEmpty }, address)
            }
        }
    }

    private static func check(
        _ row: HTTPCase, _ pieces: [Bytes], _ address: SocketAddress
    ) throws {
        let client = try RawClient(address)
        for (index, piece) in pieces.enumerated() {
            // Lets the server read what came before by itself; without it the pieces arrive as one.
            if index > 0 { pause(microseconds: 200) }
            client.send(piece)
        }
        // A connection that lives on must take another request; the others end by themselves, or
        // because their request does.
        switch row.end {
        case .open: client.send("GET /another HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n")
        case .partial: client.endSending()
        case .close: break
        }
        let received = client.receive()
        var expected = row.answers
        if row.end == .open {
            expected.append(HTTPCase.Answer(status: 200, body: Bytes("GET /another".utf8)))
        }
        let bodiless = Set(expected.indices.filter { expected[$0].isBodiless })
        // The go-ahead is left out when the body came along with its head.
        expected.removeAll { $0.status == 100 }
        let answers = try PlainAnswers.read(received.bytes, bodiless: bodiless)
            .filter { $0.status != 100 }
        #expect(answers.map(\.status) == expected.map(\.status), "\(row.name)")
        for (answer, expected) in zip(answers, expected) where expected.body != nil {
            #expect(answer == expected, "\(row.name)")
        }
        #expect(received.end == .closed, "\(row.name)")
    }
}
