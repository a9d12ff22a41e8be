import StratusCluster
import StratusCoding
import StratusHTTP
import StratusModel
import StratusRecords

/// Queries of all zones that are shared with the caller: one zone after the other.
extension QueryService {
    /// Where a query goes on: in a zone, and behind what the zone has answered.
    private struct SharedPlace {
        var zone: ZoneID
        /// The zone's own marker; empty: from its beginning.
        var marker: String
    }

    /// Zones that one request looks into while none has a record for the page.
    private static let sharedZoneCountMax = 16

    func querySharedZones(_ request: QueryRequest) async throws -> Bytes {
        guard request.sorts.isEmpty else {
            throw ClientError(
                .badRequest,
                "a query of all zones of the shared database cannot be sorted: query each zone")
        }
        var place = try request.marker.map { marker throws(InputRefusal) in
            try self.sharedPlace(marker)
        }
        let zones = try await self.exchange.acceptedZones().map {
            ZoneID(name: $0.name.zone, owner: $0.name.owner)
        }.sorted(by: SharedToken.precedes)
        var rest = zones.drop { zone in place.map { SharedToken.precedes(zone, $0.zone) } ?? false }
        for _ in 0..<Self.sharedZoneCountMax {
            guard let zone = rest.first else { break }
            var single = request
            single.zone = ZoneAddress(name: zone.name, owner: zone.owner)
            single.marker = place?.zone == zone ? place?.marker : nil
            if single.marker == "" { single.marker = nil }
            let page = try await self.sharedPage(single)
            if let marker = page?.marker {
                place = SharedPlace(zone: zone, marker: marker)
            } else {
                rest.removeFirst()
                place = rest.first.map { SharedPlace(zone: $0, marker: "") }
            }
            if let page, !page.records.isEmpty || page.marker != nil {
                return try await self.queryAnswer(
                    records: page.records, marker: place.map(self.marker), zone: nil,
                    request: request)
            }
        }
        return try await self.queryAnswer(
            records: [], marker: rest.isEmpty ? nil : place.map(self.marker), zone: nil,
            request: request)
    }

    /// Nil: the zone is not there any more, or its owner's account is not active.
    private func sharedPage(_ request: QueryRequest) async throws -> FoundPage? {
        do { return try await self.found(request) } catch {
            let told = ClientError(error)
            if told.code == .zoneNotFound || told == Exchange.ownerIsAway { return nil }
            throw error
        }
    }

    private var markerPlace: FeedPlace {
        self.exchange.feedPlace(nil, self.exchange.holder.owner)
    }

    private func marker(_ place: SharedPlace) -> String {
        var writer = ByteWriter()
        writer.write(text: place.zone.owner)
        writer.write(text: place.zone.name)
        writer.write(text: place.marker)
        return ContinuationMarker.text(
            writer.bytes, of: [], at: self.markerPlace, sealedWith: self.exchange.cipher)
    }

    private func sharedPlace(_ marker: String) throws(InputRefusal) -> SharedPlace {
        let bytes = try ContinuationMarker.cursor(
            marker, of: [], at: self.markerPlace, openedWith: self.exchange.cipher)
        do throws(DecodingError) {
            var reader = ByteReader(bytes)
            let owner = try reader.text()
            let zone = ZoneID(name: try reader.text(), owner: owner)
            return SharedPlace(zone: zone, marker: try reader.text())
        } catch { throw .invalidMarker }
    }
}
