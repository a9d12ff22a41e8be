/// Why a zone is not there any more. A device that holds its records reads from it what to do with
/// them.
package enum DeletionReason: UInt8, Sendable, Hashable, CaseIterable {
    /// Somebody deleted the zone.
    case deleted = 1
    /// It was deleted so that no device brings its records back.
    case purged = 2
    /// What encrypted it is gone: devices that hold its records bring them back.
    case encryptedDataReset = 3
    /// It is somebody else's, and not shared with the reader any more.
    case removed = 4
}
