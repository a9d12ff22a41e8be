import StratusGateway
package import StratusHTTP
import StratusModel
package import StratusRuntime

/// Names the operation of a client's request for the log and the metrics. It never uses a name that
/// a client made up.
package enum ClientRoutes {
    private static let table = OperationTable.standard()

    package static func route(of head: RequestHead) -> ObservedHandler.Route {
        guard let route = try? Self.table.route(of: head.path) else {
            if SignInService.isPage(head.path) { return ObservedHandler.Route(head.path) }
            // The rest of the path is a person's: never in a log.
            if DAVRoute.isPath(head.path) { return ObservedHandler.Route("dav") }
            if head.path == "/aps" { return ObservedHandler.Route(head.path) }
            if PublishedHandler.isPath(head.path) { return ObservedHandler.Route("published") }
            if AssetHandler.isPath(head.path) {
                // The rest of the path is a permission: never in a log.
                return ObservedHandler.Route(
                    head.path.hasPrefix("/assets/u/") ? "assets/u" : "assets/d")
            }
            return head.path == "/healthz" || head.path == "/readyz"
                ? ObservedHandler.Route(head.path, level: .debug) : ObservedHandler.Route("other")
        }
        // The container says whose app it is; within the log that is what somebody looks for first.
        return ObservedHandler.Route(
            route.operation.label,
            fields: [
                "container": .text(route.container.container),
                "environment": .text(route.container.environment.name),
                "database": .text(route.scope.name),
            ])
    }
}
