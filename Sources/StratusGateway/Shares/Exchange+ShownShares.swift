import StratusCluster
import StratusModel
import StratusRecords

extension Exchange {
    /// Asks for what is to be shown of the shares among some records of a place.
    ///
    /// A share may have ended since its record was read. Its record is then there no more.
    func shownShares(of records: [Record], at place: ZonePlace) async throws -> ShownShares {
        guard self.route.scope != .public, records.contains(where: { $0.type == ShareNames.type })
        else { return .none }
        return try await self.shownShares(at: place)
    }

    @inline(never)
    private func shownShares(at place: ZonePlace) async throws -> ShownShares {
        ShownShares(
            try await self.shareDetail(at: place), in: place.zone,
            receivesNames: self.sender.receivesNames)
    }

    /// The share of a zone, as the caller may see it.
    func shareDetail(at place: ZonePlace) async throws -> ShareDetail? {
        var ask = ShareDetailAsk()
        ask.database = place.database
        ask.zone = place.zone.name
        do throws(RecordsError) {
            return try await self.kernel.partitions.ask(
                ask, at: .key(place.key), as: self.caller)
        } catch { throw ClientError.told(error) }
    }
}
