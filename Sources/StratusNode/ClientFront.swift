import StratusAdmin
package import StratusContainers
import StratusGateway
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
    private struct Handlers {
        var gateway: any HTTPHandler
        var assets: (any HTTPHandler)?
    }

    private let handlers: Mutex<Handlers>

    /// - Parameter assets: serves uploads and downloads; nil: there are none.
    package init(
        _ gateway: any HTTPHandler, assets: (any HTTPHandler)? = nil, health: Health
    ) {
        self.health = health
        self.handlers = Mutex(Handlers(gateway: gateway, assets: assets))
    }

    /// For requests from now on.
    package func replaceGateway(
        with gateway: any HTTPHandler, assets: (any HTTPHandler)? = nil
    ) {
        self.handlers.withLock { $0 = Handlers(gateway: gateway, assets: assets) }
    }

    /// What serves uploads and downloads now.
    package var assets: (any HTTPHandler)? { self.handlers.withLock { $0.assets } }

    private func current(_ head: RequestHead) -> any HTTPHandler {
        let handlers = self.handlers.withLock { $0 }
        guard AssetHandler.isPath(head.path), let assets = handlers.assets else {
            return handlers.gateway
        }
        return assets
    }

    package func bodyLimit(for head: RequestHead) -> ByteCount {
        Self.isHealth(head) ? .kibibytes(1) : self.current(head).bodyLimit(for: head)
    }

    package func patience(for head: RequestHead) -> RequestPatience {
        Self.isHealth(head) ? .usual : self.current(head).patience(for: head)
    }

    package func respond(to request: HTTPRequest) async -> HTTPResponse {
        guard Self.isHealth(request.head) else {
            return await self.current(request.head).respond(to: request)
        }
        return request.head.path == HealthPages.healthPath
            ? HealthPages.alive() : HealthPages.ready(self.health, withReasons: false)
    }

    package func form(of refusal: HTTPRefusal) -> (headers: HeaderFields, body: Bytes)? {
        self.handlers.withLock { $0.gateway }.form(of: refusal)
    }

    private static func isHealth(_ head: RequestHead) -> Bool {
        (head.method == "GET" || head.method == "HEAD")
            && (head.path == HealthPages.healthPath || head.path == HealthPages.readyPath)
    }
}

/// Seals files anew with what serves uploads and downloads at the time, so by the settings of the
/// last reload.
package struct CurrentFiles: FileResealing {
    private let front: ClientFront

    package init(_ front: ClientFront) { self.front = front }

    package func reseal(_ asset: AssetID, of database: DatabaseID) async throws -> ResealedFile {
        guard let files = self.front.assets as? any FileResealing else {
            return .left(reason: "this node keeps no files")
        }
        return try await files.reseal(asset, of: database)
    }
}
