import StratusCluster
import StratusIdentity
import StratusModel
import StratusRecords

/// The shared database: zones that others let the caller use.
///
/// The caller's own home keeps a list of them, which grants nothing. Each zone is asked where it
/// lies, under the caller's principal, and only its partition says whether the caller may read.
extension Exchange {
    /// Why nobody but its owner may use a zone at the moment. Clients drop a zone that is not there,
    /// so an owner who is restricted or disabled is told as a denial: to those who may use the zone,
    /// and to nobody else.
    func denial(at place: ZonePlace) async throws -> ClientError? {
        guard self.isShared, try await self.isClosed(ownedBy: place.zone.owner)
        else { return nil }
        _ = try await self.summary(of: place)
        return Self.ownerIsAway
    }

    static let ownerIsAway = ClientError(
        .accessDenied, "shared db access disabled: the owner's account is not active")

    /// Whether the account of somebody is restricted or disabled.
    func isClosed(ownedBy owner: String) async throws -> Bool {
        try await !self.kernel.authenticator.maySharesBeUsed(of: owner, in: self.route.container)
    }

    // MARK: The list

    /// The zones of others that the caller has accepted, as the caller's list has them, in the order
    /// of their owners and names.
    func acceptedZones() async throws -> [SharedZones.Zone] {
        var zones: [SharedZones.Zone] = []
        var after: SharedZoneName?
        repeat {
            var ask = SharedZonesAsk()
            ask.database = self.holder.home
            ask.after = after
            ask.limit = UInt32(SharedZonesAsk.zoneCountMax)
            let page: SharedZones
            do throws(RecordsError) {
                page = try await self.kernel.partitions.ask(
                    ask, at: .key(.database(self.holder.home)), as: self.caller)
            } catch { throw ClientError.told(error) }
            zones += page.zones
            after = page.next
        } while after != nil
        return zones
    }

    /// Writes into the caller's list how the caller stands in a zone, and waits for it.
    func note(_ note: SharedZoneNote, ownedBy owner: String) async throws {
        var command = NoteSharedZone()
        command.database = self.holder.home
        command.owner = owner
        command.note = note
        var caller = self.caller
        caller.principal = Principal(kind: .system)
        do throws(RecordsError) {
            _ = try await self.kernel.partitions.submit(
                command, at: .key(.database(self.holder.home)), as: caller,
                identity: self.kernel.world.drawIdentity())
        } catch { throw ClientError.told(error) }
        self.kernel.stirred(self.holder.home)
    }

    /// The caller leaves every share of a zone.
    ///
    /// - Returns: what the caller's list is to be told.
    func leave(_ place: ZonePlace) async throws -> SharedZoneNote {
        var command = LeaveShares()
        command.database = place.database
        command.zone = place.zone.name
        command.deviceID = ShareService.deviceID
        let note: SharedZoneNote
        do throws(RecordsError) {
            note = try await self.kernel.partitions.submit(
                command, at: .key(place.key), as: self.caller,
                identity: self.identity(
                    attempt: 0, part: Bytes("leave \(place.zone.owner) \(place.zone.name)".utf8)))
        } catch { throw ClientError.told(error) }
        self.kernel.stirred(place.database)
        return note
    }

    /// The caller is out already. A list that cannot be written now lists a zone that its partition
    /// refuses, and no answer shows such a zone.
    func noteLeft(_ note: SharedZoneNote, of place: ZonePlace) async {
        try? await self.note(note, ownedBy: place.zone.owner)
    }

    // MARK: The zones

    /// How the owner's partition answers for a zone of the list.
    enum SharedStanding: Sendable {
        case open(ZoneSummary)
        /// The zone is not there, or not for the caller.
        case closed
        case away(ClientError)
    }

    /// A zone of the caller's list, and how its partition answers.
    struct ListedZone: Sendable {
        var place: ZonePlace
        var incarnation: ZoneIncarnation
        /// The turn of the list in which the caller came to it.
        var turn: UInt64
        var standing: SharedStanding
    }

    func sharedList() async throws -> [ListedZone] {
        let accepted = try await self.acceptedZones()
        var zones: [ListedZone] = []
        for zone in accepted {
            let id = ZoneID(name: zone.name.zone, owner: zone.name.owner)
            guard let place = self.sharedPlace(id) else { continue }
            zones.append(
                ListedZone(
                    place: place, incarnation: zone.incarnation, turn: zone.turn,
                    standing: .closed))
        }
        // A partition says of so many zones at once.
        for start in stride(from: 0, to: zones.count, by: Self.standingCountMax) {
            let range = start..<min(start + Self.standingCountMax, zones.count)
            let standings = await self.standings(of: zones[range].map(\.place))
            for (index, standing) in zip(range, standings) { zones[index].standing = standing }
        }
        return zones
    }

    private static let standingCountMax = 200

    /// Asks each zone where it lies.
    func standings(of places: [ZonePlace]) async -> [SharedStanding] {
        let answers = await ZoneService.inParts(places.map(\.database)) { database, positions in
            try await ZoneService(exchange: self).zones(
                names: positions.map { places[$0].zone.name }, in: database)
        }
        return answers.map { answer in
            switch answer {
            case .success(.zone(let zone)): .open(zone)
            case .success(.refused): .closed
            case .failure(let error): error.code == .zoneNotFound ? .closed : .away(error)
            }
        }
    }
}
