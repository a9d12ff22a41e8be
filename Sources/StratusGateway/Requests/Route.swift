import StratusIdentity
package import StratusModel

/// The target of a request, from its path.
package struct Route: Sendable {
    package let container: ContainerReference
    /// The tenant that long work is shared out by.
    package let tenant: String
    package var scope: DatabaseScope
    package var operation: GatewayOperation
    /// The rest of the path, for an operation that takes any path below its name. It is as the
    /// client sent it, without a slash at its end. Empty for others.
    package var rest: String

    /// Reads `/database/1/<container>/<environment>/<database>/<operation>`, and the paths of other
    /// services. The path is as the client sent it: each segment is decoded here, and nothing else
    /// may rewrite it.
    package init(path: String, in table: OperationTable) throws(InputRefusal) {
        // Every request comes by here more than once: bytes, not characters.
        var rest = Bytes(path.utf8)[...]
        // A trailing slash is an empty last segment: some clients join paths so.
        if rest.last == Self.slash { rest.removeLast() }
        guard let section = table.services.first(where: { rest.starts(with: $0.root) }) else {
            throw .unknownPath
        }
        rest.removeFirst(section.root.count)
        guard let name = Self.segment(&rest), let environmentName = Self.segment(&rest),
            let scopeName = section.service.namesDatabase ? Self.segment(&rest) : [],
            let container = PercentEncoding.decode(name), ContainerReference.isName(container)
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
        self.container = ContainerReference(container: container, environment: environment)
        self.tenant = Self.tenant(self.container)
        self.scope = scope
        self.operation = operation
        self.rest = below
    }
    /// A place that a path of another form names.
    init(_ container: ContainerReference, _ scope: DatabaseScope, _ operation: GatewayOperation) {
        self.container = container
        self.tenant = Self.tenant(container)
        self.scope = scope
        self.operation = operation
        self.rest = ""
    }

    private static func tenant(_ container: ContainerReference) -> String {
        "\(container.container) \(container.environment.name)"
    }

    private static let slash = UInt8(ascii: "/")

    /// Cuts off what stands before the next slash. Nil: there is none, and so nothing after it.
    private static func segment(_ rest: inout ArraySlice<UInt8>) -> ArraySlice<UInt8>? {
        guard let end = rest.firstIndex(of: Self.slash) else { return nil }
        defer { rest = rest[(end + 1)...] }
        return rest[..<end]
    }
}
