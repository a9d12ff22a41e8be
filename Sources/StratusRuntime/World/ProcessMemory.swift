import CShims

/// What others may learn of this process's memory.
package enum ProcessMemory {
    /// From now on a crash leaves no core dump, and other processes of the same user cannot read this one.
    ///
    /// - Returns: false where the system refuses.
    package static func refuseCoreDumps() -> Bool { stratus_refuse_core_dumps() == 0 }
}
