import Synchronization

/// The health of the node as `/readyz` shows it: whether it can serve, and if not, why not.
///
/// Components raise reasons under their own names and take them back; the node is ready while there
/// is none. A node starts with the reason `starting`, so that it cannot be ready by being early.
package final class Health: Sendable {
    package struct Reason: Sendable, Equatable {
        package var component: String
        package var text: String
    }

    private let raised = Mutex([Reason(component: "starting", text: "the node is starting")])

    private let warned = Mutex([Reason]())

    package init() {}

    /// Warns of a condition that somebody should look at although the node serves. A second warning
    /// of the same component replaces the first.
    package func warn(_ component: StaticString, _ text: String) {
        let name = component.description
        self.warned.withLock { warned in
            warned.removeAll { $0.component == name }
            warned.append(Reason(component: name, text: text))
        }
    }

    package func dropWarning(_ component: StaticString) {
        let name = component.description
        self.warned.withLock { $0.removeAll { $0.component == name } }
    }

    package var warnings: [Reason] { self.warned.withLock { $0 } }

    /// A second reason of the same component replaces the first.
    package func raise(_ component: StaticString, _ text: String) {
        let name = component.description
        self.raised.withLock { raised in
            raised.removeAll { $0.component == name }
            raised.append(Reason(component: name, text: text))
        }
    }

    package func clear(_ component: StaticString) {
        let name = component.description
        self.raised.withLock { $0.removeAll { $0.component == name } }
    }

    /// In the order raised; empty when the node is ready.
    package var reasons: [Reason] { self.raised.withLock { $0 } }

    package var isReady: Bool { self.raised.withLock { $0.isEmpty } }
}
