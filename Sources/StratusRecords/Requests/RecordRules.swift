package import StratusModel

/// The rules one command is decided by.
///
/// They travel in the command: replicas with different configurations must decide alike, and a
/// command replayed next year must decide as it did. Where Apple leaves a behaviour unconfirmed, a
/// flag here holds the switch; no flag set is what we believe Apple does.
package struct RecordRules: Sendable, Hashable {
    package struct Flags: OptionSet, Sendable, Hashable {
        package let rawValue: UInt32
        package init(rawValue: UInt32) { self.rawValue = rawValue }

        /// `delete` of a missing record succeeds, as `forceDelete` does.
        package static let deleteMissingSucceeds = Flags(rawValue: 1 << 0)
        /// `update` and `replace` without a tag skip the tag check.
        package static let tagIsOptional = Flags(rawValue: 1 << 1)
        /// A `create` of what the same user created before with equal content succeeds, changing
        /// nothing: a client's retry is safe.
        package static let repeatedCreateSucceeds = Flags(rawValue: 1 << 2)
        /// A save may name another `recordType` than the stored one; the stored one stays.
        package static let typeMismatchIsIgnored = Flags(rawValue: 1 << 3)
        /// References of action NONE may point into another zone.
        package static let crossZoneReferencesAllowed = Flags(rawValue: 1 << 4)
        /// Creating a zone that exists is refused instead of answered with the zone.
        package static let existingZoneIsRefused = Flags(rawValue: 1 << 5)
        /// `atomic: true` works in default zones too.
        package static let batchesInDefaultZoneMayBeAtomic = Flags(rawValue: 1 << 6)
    }

    package var flags: Flags
    /// Encoded fields of one record.
    package var recordSizeMax: Int
    /// DELETE_SELF referrers of one target.
    package var deleteSelfReferrerCountMax: Int
    /// Records that one entry's deletes may remove, victims of cascades included.
    package var cascadeCountMax: Int
    /// Tombstones a zone keeps, unless half its live records are more.
    package var tombstoneCountMin: Int
    /// Bytes of records that a database may hold, its quota; 0: as many as there is room for. What
    /// is there already stays, and may shrink.
    package var databaseSizeMax: UInt64 = 0

    package init(
        flags: Flags = [], recordSizeMax: Int = 1 << 20, deleteSelfReferrerCountMax: Int = 750,
        cascadeCountMax: Int = 2_000, tombstoneCountMin: Int = 1_000_000
    ) {
        self.flags = flags
        self.recordSizeMax = recordSizeMax
        self.deleteSelfReferrerCountMax = deleteSelfReferrerCountMax
        self.cascadeCountMax = cascadeCountMax
        self.tombstoneCountMin = tombstoneCountMin
    }

    package init(limits: Limits, flags: Flags = []) {
        self.init(
            flags: flags, recordSizeMax: limits.recordSizeMax.raw,
            deleteSelfReferrerCountMax: limits.deleteSelfReferrerCountMax,
            cascadeCountMax: limits.cascadeCountMax)
    }

    package static let standard = RecordRules()
}
