package import StratusModel

/// What every node knows of a container: kept current by the notice feed.
package struct ContainerDescriptor: Sendable, Equatable {
    package var container: ContainerReference
    package var schemaVersion: UInt64

    package init(container: ContainerReference, schemaVersion: UInt64) {
        self.container = container
        self.schemaVersion = schemaVersion
    }
}

package protocol ContainerDirectory: Sendable {
    /// The descriptor, or nil for a container this installation does not have.
    func descriptor(_ container: ContainerReference) async throws(RouteError)
        -> ContainerDescriptor?
}
