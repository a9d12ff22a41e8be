import StratusModel

/// Every operation there is, found by its path.
///
/// A new capability adds its list here. A name that two operations of a service have, or a label
/// that two operations have, is a mistake of the program.
package struct OperationTable: Sendable {
    /// The operations in the order of their lists.
    package let operations: [GatewayOperation]
    let services: [Section]

    /// One service's operations, by name.
    struct Section: Sendable {
        let service: GatewayService
        let root: Bytes
        fileprivate var named: [String: GatewayOperation] = [:]
        /// Those whose names end with `/*`, without the star.
        fileprivate var open: [(prefix: String, operation: GatewayOperation)] = []

        init(_ service: GatewayService) {
            self.service = service
            self.root = Bytes(service.root.utf8)
        }

        /// - Returns: the operation, and what an open name leaves of the path.
        func operation(_ name: String) -> (operation: GatewayOperation, rest: String)? {
            if let operation = self.named[name] { return (operation, "") }
            for (prefix, operation) in self.open where name.hasPrefix(prefix) {
                return (operation, String(name.dropFirst(prefix.count)))
            }
            return nil
        }
    }

    package init(_ lists: [GatewayOperation]...) {
        self.operations = lists.flatMap { $0 }
        var sections: [Section] = []
        var labels: Set<String> = []
        for operation in self.operations {
            precondition(
                labels.insert(operation.label).inserted, "\(operation.label) is listed twice")
            let index =
                sections.firstIndex { $0.service == operation.service } ?? sections.endIndex
            if index == sections.endIndex { sections.append(Section(operation.service)) }
            if operation.name.hasSuffix("/*") {
                sections[index].open.append((String(operation.name.dropLast()), operation))
            } else {
                let before = sections[index].named.updateValue(operation, forKey: operation.name)
                precondition(before == nil, "\(operation.name) is listed twice")
            }
        }
        // Of two open names that begin alike the longer one is meant.
        for index in sections.indices {
            sections[index].open.sort { $0.prefix.utf8.count > $1.prefix.utf8.count }
        }
        self.services = sections
    }
}
