import StratusAdmin
package import StratusHTTP
package import StratusModel
package import StratusRuntime
import Synchronization

/// The handler between the clients' listener and the gateway: it serves the two health pages, and
/// swaps the gateway when a reload brings other limits.
///
/// A request keeps the gateway it began with. Nothing here leads to the administrators' API.
package final class ClientFront: HTTPHandler {
    private let health: Health
    private let gateway: Mutex<any HTTPHandler>

    package init(_ gateway: any HTTPHandler, health: Health) {
        self.health = health
        self.gateway = Mutex(gateway)
    }

    /// For requests from now on.
    package func replaceGateway(with gateway: any HTTPHandler) {
        self.gateway.withLock { $0 = gateway }
    }

    private var current: any HTTPHandler { self.gateway.withLock { $0 } }

    package func bodyLimit(for head: RequestHead) -> ByteCount {
        Self.isHealth(head) ? .kibibytes(1) : self.current.bodyLimit(for: head)
    }

    package func respond(to request: HTTPRequest) async -> HTTPResponse {
        guard Self.isHealth(request.head) else { return await self.current.respond(to: request) }
        return request.head.path == HealthPages.healthPath
            ? HealthPages.alive() : HealthPages.ready(self.health, withReasons: false)
    }

    package func form(of refusal: HTTPRefusal) -> (headers: HeaderFields, body: Bytes)? {
        self.current.form(of: refusal)
    }

    private static func isHealth(_ head: RequestHead) -> Bool {
        (head.method == "GET" || head.method == "HEAD")
            && (head.path == HealthPages.healthPath || head.path == HealthPages.readyPath)
    }
}
