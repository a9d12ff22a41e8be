import CShims

/// What others may learn of this process's memory.
package enum ProcessMemory {
    /// Buffers from this size on go back to the system when they are let go.
    private static let mappedSizeMin: Int32 = 1 << 20
    /// So much may lie free at the end of a heap before it goes back.
    private static let spareSizeMax: Int32 = 4 << 20

    /// From now on memory goes back to the system when it is not needed any more.
    ///
    /// By itself the C library keeps what large buffers took and hands it out in smaller pieces, up to 32 MiB each: a
    /// node that was asked for a few large answers would look as if it still held them.
    package static func giveBack() {
        stratus_give_memory_back(self.mappedSizeMin, self.spareSizeMax)
    }

    /// From now on a crash leaves no core dump, and other processes of the same user cannot read this one.
    ///
    /// - Returns: false where the system refuses.
    package static func refuseCoreDumps() -> Bool { stratus_refuse_core_dumps() == 0 }
}
