import StratusAssets
import StratusModel

extension NodeCopies {
    /// Copies that are read before others have their turn.
    private static let checkCountMax: UInt32 = 8

    /// Reads copies of a body, no faster than everything is read back.
    func check(_ body: BodyID, _ ordinals: Range<UInt32>, of group: GroupID) async -> CopyChecking {
        var all = CopyCheck()
        var next = ordinals.lowerBound
        repeat {
            let end = min(ordinals.upperBound, next + Self.checkCountMax)
            let checking = await self.keeper.check(body, next..<end, of: group)
            guard case .checked(let some) = checking else { return checking }
            all.add(some)
            next = end
            let rate = max(self.readBackRate.raw, CopyKeeper.askedRate.raw)
            try? await Task.sleep(for: .seconds(Double(some.size) / Double(rate)))
        } while next < ordinals.upperBound
        return .checked(all)
    }
}
