import StratusGateway
import StratusPush
import Synchronization
import Testing

@testable import StratusNode

/// A push that an administrator sends, over a connection of its own.
@Suite struct PushOnceTests {
    private struct Failure: Error {}

    /// What was done, in order.
    private final class Book: Sendable {
        private let lines = Mutex<[String]>([])
        func write(_ line: String) { self.lines.withLock { $0.append(line) } }
        var text: String { self.lines.withLock { $0.joined(separator: ", ") } }
    }

    private struct Way: PushConnection {
        let book: Book

        func send(_ push: PreparedPush, authorization: String) async -> PushAnswer {
            PushAnswer(.accepted, .accepted)
        }
        func rest() async {}
        func close() async { self.book.write("closed") }
    }

    private func once(_ book: Book, hasToken: Bool, isFound: Bool) async throws -> PushSender.Once {
        try await PushSender.once(
            authorize: {
                book.write("token")
                if !hasToken { throw Failure() }
                return "bearer x"
            },
            connect: {
                book.write("connected")
                if !isFound { throw Failure() }
                return Way(book: book)
            },
            send: { _, authorization in
                book.write("sent with \(authorization)")
                return PushAnswer(.unanswered)
            })
    }

    @Test func `the connection is closed behind the answer, whatever that is`() async throws {
        let book = Book()
        guard case .answered(let answer) = try await self.once(book, hasToken: true, isFound: true)
        else {
            Issue.record("no answer")
            return
        }
        #expect(answer == PushAnswer(.unanswered))
        #expect(book.text == "token, connected, sent with bearer x, closed")
    }

    @Test func `nothing is opened where no token can be made`() async throws {
        let book = Book()
        await #expect(throws: Failure.self) {
            _ = try await self.once(book, hasToken: false, isFound: true)
        }
        #expect(book.text == "token")
    }

    @Test func `a provider that cannot be found is an answer, and nothing is sent`() async throws {
        let book = Book()
        guard case .unfound = try await self.once(book, hasToken: true, isFound: false) else {
            Issue.record("found")
            return
        }
        #expect(book.text == "token, connected")
    }
}
