import StratusHTTP
import StratusRuntime

/// One kind of request of the administrators' API.
///
/// `all` is the table of them, see AdminRoutes.swift. It is read by the dispatch, by 404 and 405, by the labels of the
/// metrics, and by the test that compares it with `Docs/reference/administration.md`.
package struct AdminRoute: Sendable {
    /// Who may ask.
    package enum Role: String, Sendable {
        case anyone
        /// An administrator; anybody where the configuration opens the metrics.
        case scraper
        case administrator
    }

    /// The part of a node that answers. A node may lack it.
    package enum Need: Sendable {
        case node, people, cluster
    }

    package let method: String
    /// A path with names in braces.
    package let template: String
    package let role: Role
    package let need: Need
    /// Whether the answer may take longer than ``HTTPTimeouts/total``, as long as its bytes move.
    package let isLong: Bool
    /// The fields of the body, or what it is in words; empty: there is none.
    package let body: String
    /// What the answer is.
    package let answer: String
    let run: @Sendable (AdminExchange) async throws -> HTTPResponse
    private let segments: [String]

    init(
        _ method: String, _ template: String, role: Role = .administrator, need: Need = .people,
        isLong: Bool = false, body: String = "", answer: String,
        run: @escaping @Sendable (AdminExchange) async throws -> HTTPResponse
    ) {
        self.method = method
        self.template = template
        self.role = role
        self.need = need
        self.isLong = isLong
        self.body = body
        self.answer = answer
        self.run = run
        self.segments = template.split(separator: "/").map(String.init)
    }

    /// The values of the names in braces, if the path is of this route.
    func parameters(in path: [String]) -> [String: String]? {
        guard path.count == self.segments.count else { return nil }
        var found: [String: String] = [:]
        for (part, segment) in zip(self.segments, path) {
            if part.hasPrefix("{"), part.hasSuffix("}") {
                guard !segment.isEmpty else { return nil }
                found[String(part.dropFirst().dropLast())] = segment
            } else if part != segment {
                return nil
            }
        }
        return found
    }

    /// Whether it answers requests of `method`. Whoever can GET a page can ask for its head.
    func takes(_ method: String) -> Bool {
        self.method == method || (self.method == "GET" && method == "HEAD")
    }
}
