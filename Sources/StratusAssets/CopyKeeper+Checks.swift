package import StratusModel

// Copies read by their names, on somebody's wish.
extension CopyKeeper {
    /// Reads copies of a body and checks each. A damaged one is forgotten and fetched again, as
    /// when everything is read back.
    package func check(_ body: BodyID, _ ordinals: Range<UInt32>, of group: GroupID)
        -> CopyChecking
    {
        guard self.appliedNow(group) != nil else { return .elsewhere }
        guard !self.isStopped else { return .failing }
        var check = CopyCheck()
        for ordinal in ordinals {
            let name = CopyName(body: body, ordinal: ordinal)
            let damagedBefore = self.damagedCount
            switch self.fetch(name, of: group) {
            case .found(let bytes):
                check.soundCount += 1
                check.size += UInt64(bytes.count)
            case .absent:
                if self.damagedCount > damagedBefore {
                    check.damagedCount += 1
                } else if self.awaits(name, of: group) {
                    check.missingCount += 1
                }
            case .silent: return .failing
            }
        }
        return .checked(check)
    }

    /// Whether a copy that is not here should be. One that rows have let go since somebody read its
    /// name should not.
    private func awaits(_ name: CopyName, of group: GroupID) -> Bool {
        guard let known = self.groups[group] else { return false }
        return known.wants.isMissing(name) || self.isComparing(known)
    }
}
