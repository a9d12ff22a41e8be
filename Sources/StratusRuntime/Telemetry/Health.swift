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

    private struct Raised {
        var reasons = [Reason(component: "starting", text: "the node is starting")]
        var changed: @Sendable ([Reason]) -> Void = { _ in }
    }

    private let raised = Mutex(Raised())

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

    /// Calls `changed` whenever the node becomes ready, and whenever it becomes not ready, with the
    /// reasons. It runs while the reasons are locked, so that calls keep their order: it must not
    /// wait, nor ask for the health.
    package func observe(_ changed: @escaping @Sendable ([Reason]) -> Void) {
        self.raised.withLock { $0.changed = changed }
    }

    private func change(_ body: (inout [Reason]) -> Void) {
        self.raised.withLock { raised in
            let wasReady = raised.reasons.isEmpty
            body(&raised.reasons)
            if raised.reasons.isEmpty != wasReady { raised.changed(raised.reasons) }
        }
    }

    /// A second reason of the same component replaces the first.
    package func raise(_ component: StaticString, _ text: String) {
        let name = component.description
        self.change { reasons in
            reasons.removeAll { $0.component == name }
            reasons.append(Reason(component: name, text: text))
        }
    }

    package func clear(_ component: StaticString) {
        let name = component.description
        self.change { $0.removeAll { $0.component == name } }
    }

    /// In the order raised; empty when the node is ready.
    package var reasons: [Reason] { self.raised.withLock { $0.reasons } }

    package var isReady: Bool { self.raised.withLock { $0.reasons.isEmpty } }
}
