package import StratusModel

/// One kind of call to the disk, for faults that only some of them suffer.
package enum DiskOperation: UInt8, Sendable, Equatable, CaseIterable {
    case open, read, write, sync, resize, length, rename, remove, exists, makeDirectory
    case syncDirectory, list, lock
}

/// A fault at one numbered operation of a ``SimulatedFiles``.
package struct DiskFault: Sendable, Equatable {
    package enum Effect: Sendable, Equatable {
        /// The operation reports this. A failed write may have left a prefix. A failed sync has
        /// dropped data that it should have kept, and the next one will report success (fsyncgate).
        case fail(DiskError.Kind)
        /// The process dies here: the operation may or may not have happened, every later one fails
        /// until ``SimulatedFiles/restart(after:)``.
        case crash
        /// A write reports success and is never stored.
        case loseWrite
        /// A write lands, or a read comes from, this many bytes further on.
        case misdirect(Int64)
        /// A read returns one flipped bit; the medium is sound.
        case flipBit
    }

    /// Counted from 1 over the life of the files, restarts included; only operations of `kinds`
    /// count as hit.
    package var number: Int
    package var effect: Effect
    /// Whether every later operation (of `kinds`) suffers too.
    package var isSticky: Bool
    package var kinds: Set<DiskOperation>
    /// Only files whose path begins so.
    package var prefix: String
    /// Only writes that begin there; nil is anywhere.
    package var offset: UInt64?

    package init(
        at number: Int, _ effect: Effect, isSticky: Bool = false,
        kinds: Set<DiskOperation> = Set(DiskOperation.allCases), prefix: String = "",
        offset: UInt64? = nil
    ) {
        self.prefix = prefix
        self.offset = offset
        self.number = number
        self.effect = effect
        self.isSticky = isSticky
        self.kinds = kinds
    }
}

/// How often faults strike on their own: one operation in so many; 0 is never.
package struct DiskFaultRates: Sendable, Equatable {
    package var failedReadOneIn: UInt64 = 0
    package var failedWriteOneIn: UInt64 = 0
    package var failedSyncOneIn: UInt64 = 0
    package var flippedReadOneIn: UInt64 = 0
    package var lostWriteOneIn: UInt64 = 0
    /// Only files whose path begins so.
    package var prefix = ""
    package init() {}
}

/// How a simulated process ended.
package enum DiskRestart: Sendable, Equatable {
    /// `kill -9`: what was written is still in the system's cache.
    case processCrash
    /// Unsynced data survives or not, sector by sector, as the seed decides.
    case powerLoss
    /// Like ``powerLoss``, but nothing unsynced survives.
    case powerLossLosingAll
}
