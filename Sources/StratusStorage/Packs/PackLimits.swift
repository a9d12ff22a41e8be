package import StratusModel

/// Bounds of a store of copies.
package struct PackLimits: Sendable, Equatable {
    /// A pack is sealed before a record would make it larger.
    package var packSizeMax = ByteCount.mebibytes(64)
    /// Packs smaller than this part of the maximum are copied together, once there are two.
    package var smallPackPart = 4
    /// Compaction rests while the disk has less than this: it needs room before it gives any back.
    package var compactionRoom = ByteCount.mebibytes(96)
    /// Frames of the index's WAL before it is copied into the index.
    package var indexFrameCountMax = 1_000
    /// Packs that are kept open for reading.
    package var openPackCountMax = 8
    package var bugs = PackBugs()

    package init() {}
}

/// Deliberate bugs of the store of copies, one per rule that it rests on. Tests must find each.
///
/// Apart from ``StratusModel/PlantedBug``, which lists what the simulation of whole clusters finds:
/// no simulated cluster keeps copies yet.
package enum PackBug: String, Sendable, CaseIterable {
    /// A pack goes before what is still wanted of it is synced elsewhere and indexed there.
    case packRemovedBeforeIndex
    /// A record is indexed without a look at its bytes.
    case tornCopyIndexed
    /// A sync of a pack that failed is asked for again, and its success believed.
    case packUsedAfterFailedSync
    /// A put returns before its bytes are synced.
    case copyAnsweredBeforeSync
}

/// The bugs planted in one store.
package struct PackBugs: Sendable, Equatable {
    #if STRATUS_PLANTED
        private var bugs: [PackBug]
        package init(_ bugs: [PackBug] = []) { self.bugs = bugs }
        package func contains(_ bug: PackBug) -> Bool { self.bugs.contains(bug) }
        package static let isPossible = true
    #else
        package init() {}
        @inline(__always)
        package func contains(_ bug: PackBug) -> Bool { false }
        package static let isPossible = false
    #endif
}
