package import StratusModel
package import StratusStorage

extension SegmentedLog {
    /// Opens a node's log, or begins one where there was never any.
    ///
    /// A file beside the log remembers that it exists, made once the log is complete. A missing log
    /// is then a loss, and is never begun afresh under the old identity.
    package static func open(
        in directory: DiskPath, of world: any World, limits: Limits = Limits(),
        progress: (RecoveryProgress) -> Void = { _ in }, reportingTo inbox: ReplicaInbox
    ) throws(LogError) -> SegmentedLog {
        let mark = DiskPath(directory.raw + ".made")
        let files = world.files
        do {
            let isNew = try !files.exists(mark)
            let log = try SegmentedLog(
                in: directory, of: world, isNew: isNew, limits: limits,
                onEvent: { inbox.receive($0) }, progress: progress)
            if isNew {
                _ = try files.open(mark, create: true)
                try files.syncDirectory(mark.parent)
            }
            return log
        } catch let error as LogError {
            throw error
        } catch { throw LogError(.disk, "\(error)") }
    }
}
