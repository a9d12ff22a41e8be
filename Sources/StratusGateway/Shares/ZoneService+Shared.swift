import StratusCluster
import StratusHTTP
import StratusModel
import StratusRecords

/// Zones of the shared database: listed, looked up, and left.
extension ZoneService {
    /// `zones/list`: what the caller has accepted, without what the owners have taken back since. A
    /// zone whose partition does not answer is listed with the beginning of its feed.
    func listShared() async throws -> Bytes {
        let zones = try await self.exchange.sharedList()
        return self.zonesAnswer { array in
            for zone in zones {
                let id = zone.place.zone
                let summary: ZoneSummary
                switch zone.standing {
                case .open(let open): summary = open
                case .closed: continue
                case .away:
                    summary = ZoneSummary(
                        name: id.name, incarnation: zone.incarnation, lastTag: ChangeTag(0))
                }
                array.writeZone(
                    summary, id: id, token: self.exchange.zoneToken(summary, in: id),
                    isShared: true)
            }
        }
    }

    /// How each place answers, for `zones/lookup`.
    func sharedZones(at places: [ZonePlace]) async throws -> [Result<ZoneAnswer, ClientError>] {
        var denials: [String: Bool] = [:]
        var answers: [Result<ZoneAnswer, ClientError>] = []
        for (place, standing) in zip(places, await self.exchange.standings(of: places)) {
            switch standing {
            case .closed: answers.append(.success(.refused(.notFound)))
            case .away(let error): answers.append(.failure(error))
            case .open(let zone):
                let owner = place.zone.owner
                if denials[owner] == nil {
                    denials[owner] = try await self.exchange.isClosed(ownedBy: owner)
                }
                answers.append(
                    denials[owner] == true ? .failure(Exchange.ownerIsAway) : .success(.zone(zone)))
            }
        }
        return answers
    }

    /// Leaves zones, one after the other. Nothing of the zones themselves changes. Each is asked
    /// first: where the caller has no part, nothing is written into anybody's log.
    func leave(_ places: [ZonePlace]) async -> [Result<ZoneResult, ClientError>] {
        var results: [Result<ZoneResult, ClientError>] = []
        for (place, standing) in zip(places, await self.exchange.standings(of: places)) {
            do {
                switch standing {
                case .closed: throw InputRefusal.zoneNotFound
                case .away(let error): throw error
                case .open: break
                }
                await self.exchange.noteLeft(try await self.exchange.leave(place), of: place)
                results.append(.success(.deleted))
            } catch { results.append(.failure(ClientError(error))) }
        }
        return results
    }
}
