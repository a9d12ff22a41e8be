/// What an applied entry did to the rows of bodies: what the keeper of a replica's copies hears.
package enum BodyChange: Sendable, Hashable {
    /// The rows name it now: every replica is to have its copies.
    case named(BodyManifest)
    /// The rows name it no more. Its copies may go once the entry is durable.
    case dropped(BodyID, chunkCount: UInt32, at: LogIndex)
    /// Its row stays and says that it is lost: nobody waits for copies that are missing.
    case lost(BodyID, chunkCount: UInt32, at: LogIndex)
    /// Its row calls it lost no more: every replica is to have its copies, and may have some.
    case found(BodyManifest)
    /// More happened before this than is listed, or the rows went back: compare all rows of bodies
    /// with the store anew. It stands before the changes that happened after it.
    case unlisted
}

/// Changes of bodies that nobody has taken yet, in the order of their entries.
package struct BodyChanges: Sendable, Equatable {
    /// Chunks that are listed. Beyond, the list says only that it is not whole.
    package static let chunkCountMax = 1 << 20
    /// Changes that are listed.
    package static let countMax = 10_000

    private var changes: [BodyChange] = []
    private var chunkCount = 0

    package init() {}

    package mutating func append(_ change: BodyChange) {
        switch change {
        case .named(let body), .found(let body): self.chunkCount += body.chunks.count
        case .dropped, .lost: break
        case .unlisted: self.forget()
        }
        self.changes.append(change)
        if self.changes.count > Self.countMax || self.chunkCount > Self.chunkCountMax {
            self.forget()
            self.changes.append(.unlisted)
        }
    }

    /// Drops what is listed: the entries that did it did not last.
    package mutating func forget() {
        self.changes.removeAll(keepingCapacity: false)
        self.chunkCount = 0
    }

    package mutating func take() -> [BodyChange] {
        defer { self.forget() }
        return self.changes
    }
}
