import StratusHTTP
package import StratusModel

/// The target of a request, from its path.
package struct Route: Sendable {
    package let container: ContainerReference
    /// The tenant that long work is shared out by.
    package let tenant: String
    package var scope: DatabaseScope
    /// What the request is called. One of a fixed set.
    package let label: String
    /// The rest of the path, for an operation that takes any path below its name. It is as the
    /// client sent it, without a slash at its end. Empty for others.
    package var rest: String

    /// A place that a path of another form names.
    init(
        _ container: ContainerReference, _ scope: DatabaseScope, _ label: String, rest: String = ""
    ) {
        self.container = container
        self.tenant = "\(container.container) \(container.environment.name)"
        self.scope = scope
        self.label = label
        self.rest = rest
    }

    private static let slash = UInt8(ascii: "/")

    /// Cuts off what stands before the next slash. Nil: there is none, and so nothing after it.
    fileprivate static func segment(_ rest: inout ArraySlice<UInt8>) -> ArraySlice<UInt8>? {
        guard let end = rest.firstIndex(of: Self.slash) else { return nil }
        defer { rest = rest[(end + 1)...] }
        return rest[..<end]
    }
}

extension OperationTable {
    /// Reads `/database/1/<container>/<environment>/<database>/<operation>`, and the paths of other
    /// services. The path is as the client sent it: each segment is decoded here, and nothing else
    /// may rewrite it.
    package func route(
        of path: String
    ) throws(InputRefusal) -> (route: Route, operation: GatewayOperation) {
        // Every request comes by here: bytes, not characters.
        var rest = Bytes(path.utf8)[...]
        // A trailing slash is an empty last segment: some clients join paths so.
        if rest.last == UInt8(ascii: "/") { rest.removeLast() }
        guard let section = self.services.first(where: { rest.starts(with: $0.root) }) else {
            throw .unknownPath
        }
        rest.removeFirst(section.root.count)
        guard let name = Route.segment(&rest), let environmentName = Route.segment(&rest),
            let scopeName = section.service.namesDatabase ? Route.segment(&rest) : [],
            let container = PercentCoding.decode(name), ContainerReference.isName(container)
        else { throw .unknownPath }
        let environmentText = String(decoding: environmentName, as: UTF8.self)
        guard let environment = Environment(name: environmentText) else {
            throw .unknownEnvironment(environmentText)
        }
        var scope = section.service.scope
        if section.service.namesDatabase {
            let scopeText = String(decoding: scopeName, as: UTF8.self)
            guard let named = DatabaseScope(name: scopeText) else {
                throw .unknownDatabase(scopeText)
            }
            scope = named
        }
        let operationName = String(decoding: rest, as: UTF8.self)
        guard let (operation, below) = section.operation(operationName) else {
            throw .unknownOperation(operationName)
        }
        let route = Route(
            ContainerReference(container: container, environment: environment), scope,
            operation.label, rest: below)
        return (route, operation)
    }
}
