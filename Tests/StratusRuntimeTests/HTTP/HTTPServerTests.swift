import StratusHTTP
import StratusModel
import Synchronization
import Testing

@testable import StratusRuntime

@Suite struct HTTPServerTests {
    @Test func `a body comes back on a connection that lives on`() async throws {
        try await withServer(echo) { server, address in
            let client = try RawClient(address)
            for text in ["one", "two", "three"] {
                client.send(
                    "POST / HTTP/1.1\r\nhost: x\r\ncontent-length: \(text.utf8.count)\r\n\r\n\(text)"
                )
                let answer = client.text(until: "\r\n\r\n\(text)")
                #expect(answer.text.hasPrefix("HTTP/1.1 200 OK\r\n"))
                #expect(answer.end == .stillOpen)
            }
            #expect(server.connectionCount == 1)
        }
    }
}
