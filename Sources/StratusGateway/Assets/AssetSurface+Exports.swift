import StratusCluster
package import StratusContainers
import StratusIdentity
package import StratusModel
import StratusRecords
import StratusRuntime

/// Files of a person's archive, for administrators. They are read as downloads are, within the
/// memory of all transfers.
extension AssetSurface: ExportedFiles {
    /// All exports share one user's part of the memory.
    private static let exportReader = PlaceHolder(nil, "administrators")

    package func keepUp() async throws { try await self.kit.keepUp() }

    package func ticket(for asset: AssetID, in database: DatabaseID) -> String {
        ExportTicket(
            asset: asset, database: database,
            expiresMilliseconds: self.world.wallMilliseconds + ExportTicket.lifeMilliseconds
        ).text(sealedWith: self.kit.ciphers.exports)
    }

    package func open(_ text: String) async throws -> ExportedFile {
        try await self.kit.keepUp()
        let ticket: ExportTicket
        do throws(AssetTextRefusal) {
            ticket = try ExportTicket(
                text, openedWith: self.kit.ciphers.exports, at: self.world.wallMilliseconds)
        } catch {
            throw error == .expired
                ? ExportedFileRefusal.expiredTicket : ExportedFileRefusal.unknownTicket
        }
        do { return try await self.open(ticket) } catch let failure as AssetFailure {
            throw Self.refusal(failure) ?? failure
        }
    }

    private func open(_ ticket: ExportTicket) async throws -> ExportedFile {
        guard let stored = try await self.stored(ticket.asset, in: ticket.database) else {
            throw ExportedFileRefusal.missing
        }
        guard !stored.body.isLost else { throw ExportedFileRefusal.lost("the file is lost") }
        let size = stored.body.size
        if size == 0 { return ExportedFile(size: 0, body: EmptyBody()) }
        do {
            let (body, share) = try await self.begin(stored, 0..<size, by: Self.exportReader)
            return ExportedFile(size: size, body: body, held: share)
        } catch let error as RouteError {
            guard case .refused = error,
                case .damaged = try await self.kit.keys.reading(
                    stored.body.keyVersion, of: ticket.database)
            else { throw error }
            throw ExportedFileRefusal.lost("the key of the file is damaged")
        }
    }

    private static func refusal(_ failure: AssetFailure) -> ExportedFileRefusal? {
        switch failure {
        case .notFound: .missing
        case .gone(let reason): .lost(reason)
        case .later(let reason, _): .later(reason)
        default: nil
        }
    }
}
