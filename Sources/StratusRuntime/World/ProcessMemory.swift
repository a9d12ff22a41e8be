import CShims

/// Settings that limit what others can learn of this process's memory.
package enum ProcessMemory {
    /// Buffers from this size on go back to the system when they are freed.
    private static let mappedSizeMin: Int32 = 1 << 20
    /// So much may lie free at the end of a heap before it goes back.
    private static let spareSizeMax: Int32 = 4 << 20

    /// Makes the process return unused memory to the system from now on.
    ///
    /// By itself the C library keeps the memory of large buffers, up to 32 MiB each, and hands it
    /// out in smaller pieces. A node that answered a few large requests would look as if it still
    /// held them.
    package static func giveBack() {
        stratus_give_memory_back(self.mappedSizeMin, self.spareSizeMax)
    }

    /// Stops core dumps from now on, and keeps other processes of the same user from reading this
    /// one.
    ///
    /// - Returns: false if the system refuses.
    package static func refuseCoreDumps() -> Bool { stratus_refuse_core_dumps() == 0 }
}
