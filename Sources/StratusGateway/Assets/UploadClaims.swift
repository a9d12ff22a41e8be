import StratusHTTP
package import StratusModel
import StratusRuntime
import Synchronization

/// The bytes of files that are on their way to each database through this node.
///
/// What is stored counts in the database's quota. What is still coming counts here, so that many
/// transfers at once do not store more than there is room for.
package final class UploadClaims: Sendable {
    private let sizes = Mutex<[DatabaseID: UInt64]>([:])

    package init() {}

    /// Bytes that are claimed now.
    package func size(of database: DatabaseID) -> UInt64 {
        self.sizes.withLock { $0[database] ?? 0 }
    }

    /// Room for one file, given back with the last reference to it.
    final class Claim: Sendable {
        private let claims: UploadClaims
        private let database: DatabaseID
        /// All claims of the database together may have so many bytes; nil: as many as they will.
        private let room: UInt64?
        private let size = Mutex<UInt64>(0)

        /// - Parameter room: what the quota left when the transfer began.
        init(_ claims: UploadClaims, of database: DatabaseID, room: UInt64?) {
            self.claims = claims
            self.database = database
            self.room = room
        }

        deinit { self.claims.give(self.size.withLock { $0 }, of: self.database) }

        /// - Returns: whether there is room for `count` more bytes; if not, nothing is claimed.
        func grow(by count: UInt64) -> Bool {
            guard self.claims.take(count, of: self.database, room: self.room) else { return false }
            self.size.withLock { $0 += count }
            return true
        }
    }

    private func take(_ count: UInt64, of database: DatabaseID, room: UInt64?) -> Bool {
        self.sizes.withLock { sizes in
            let (size, isOver) = (sizes[database] ?? 0).addingReportingOverflow(count)
            guard !isOver, room.map({ size <= $0 }) ?? true else { return false }
            sizes[database] = size
            return true
        }
    }

    private func give(_ count: UInt64, of database: DatabaseID) {
        self.sizes.withLock { sizes in
            let rest = (sizes[database] ?? 0) - min(count, sizes[database] ?? 0)
            sizes[database] = rest == 0 ? nil : rest
        }
    }
}

/// A body of unknown size, which ends where there is no more room for it.
final class ClaimingBody: RequestBody {
    private let source: any RequestBody
    private let claim: UploadClaims.Claim
    private let full = Mutex(false)

    init(_ source: any RequestBody, _ claim: UploadClaims.Claim) {
        self.source = source
        self.claim = claim
    }

    /// Whether it ended for want of room.
    var isFull: Bool { self.full.withLock { $0 } }

    func next() async throws(RequestBodyError) -> Bytes? {
        guard let bytes = try await self.source.next() else { return nil }
        guard self.claim.grow(by: UInt64(bytes.count)) else {
            self.full.withLock { $0 = true }
            throw .tooLarge
        }
        return bytes
    }
}
