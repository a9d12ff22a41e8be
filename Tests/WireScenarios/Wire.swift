/// A way to a server: in process, or over a socket. Scenarios know nothing else of it.
package protocol Wire: Sendable {
    func send(_ request: WireRequest) async throws -> WireAnswer
    /// Makes a container of one's own that has ``Library/schema`` and a closed development schema.
    func makeContainer() async throws -> String
}

package struct WireRequest: Sendable {
    package var method: String
    /// Path and query, as they stand on the request line.
    package var target: String
    package var headers: [(name: String, value: String)]
    package var body: [UInt8]

    package init(
        method: String, target: String, headers: [(name: String, value: String)] = [],
        body: [UInt8] = []
    ) {
        self.method = method
        self.target = target
        self.headers = headers
        self.body = body
    }
}

package struct WireAnswer: Sendable {
    package var status: Int
    package var headers: [(name: String, value: String)]
    package var body: [UInt8]

    package init(status: Int, headers: [(name: String, value: String)], body: [UInt8]) {
        self.status = status
        self.headers = headers
        self.body = body
    }

    package func header(_ name: String) -> String? {
        self.headers.first { $0.name.lowercased() == name.lowercased() }?.value
    }

    /// The body as JSON; nil where it is none.
    package var json: JSON? { try? JSON(parsing: self.body) }
}

extension WireAnswer: CustomStringConvertible {
    package var description: String {
        "\(self.status) \(String(decoding: self.body.prefix(2_000), as: UTF8.self))"
    }
}
