package import StratusModel

/// All that an operation may know beside its fields and the rows. It lives as long as its entry is
/// applied, and nothing keeps it.
package struct EntryContext: ~Copyable {
    package let index: LogIndex
    package let time: HybridTime
    package let identity: RequestIdentity
    package let deadlineMilliseconds: Int64
    package let container: ContainerReference
    package let schemaVersion: UInt64
    package let principal: Principal
    package let bugs: PlantedBugs

    package init(_ command: Command, at position: EntryPosition, bugs: PlantedBugs) {
        self.index = position.index
        self.time = position.time
        self.identity = command.identity
        self.deadlineMilliseconds = command.deadlineMilliseconds
        self.container = command.container
        self.schemaVersion = command.schemaVersion
        self.principal = command.principal
        self.bugs = bugs
    }
}
