package import StratusModel
import StratusRecords

/// The containers of an installation.
///
/// A container's descriptor stands at its home, and that copy decides: every check of credentials
/// reads it with them. A second copy stands in one list at a home of its own, which no request ever
/// reads. The list is written before a container is created and after it has ended, so that it
/// misses none.
package struct ContainerRegistry: Sendable {
    package static let listingHome = ShardKey.account("containers")
    package static let countMax = 10_000

    private let store: IdentityStore
    /// The buckets of private databases in containers that are used without having been created.
    private let zoneBuckets: Int

    package init(store: IdentityStore, zoneBuckets: Int = 1) {
        self.store = store
        self.zoneBuckets = zoneBuckets
    }

    static func key(_ container: ContainerReference) -> IdentityKey {
        IdentityKey(.container, of: IdentityKey.home(container))
    }

    private static func listing(_ container: ContainerReference) -> IdentityKey {
        IdentityKey(.containerListing, of: [], IdentityKey.home(container))
    }

    /// Whether a container is in the list, as every one is that somebody has made.
    static func isListed(_ container: ContainerReference, in store: IdentityStore)
        async throws(RouteError) -> Bool
    {
        try await store.row(Self.listing(container), at: Self.listingHome) != nil
    }

    static func decode(_ row: IdentityRow) throws(RouteError) -> ContainerDescriptor {
        do { return try ContainerDescriptor(decoding: row.body) } catch { throw .unreadableRow }
    }

    /// Nil: nobody ever named this container.
    package func descriptor(of container: ContainerReference) async throws(RouteError)
        -> ContainerDescriptor?
    {
        let row = try await self.store.row(Self.key(container), at: .container(container))
        return try row.map { row throws(RouteError) in try Self.decode(row) }
    }

    /// All of a container's public database. One that nobody ever named is whole.
    package func publicDatabase(of container: ContainerReference) async throws(RouteError)
        -> PublicDatabase
    {
        try await self.descriptor(of: container)?.publicDatabase(of: container)
            ?? PublicDatabase(of: container)
    }

    /// How a container's databases are spread. Those of one that nobody ever named are whole.
    package func layout(of container: ContainerReference) async throws(RouteError)
        -> ContainerLayout
    {
        try await self.descriptor(of: container)?.layout ?? ContainerLayout()
    }

    package enum Creation: Sendable, Equatable {
        case created(ContainerDescriptor)
        case exists(ContainerDescriptor)
        /// The former container of this name is still being removed.
        case isErasing
    }

    /// Takes a name into use, even one that was erased.
    ///
    /// - Parameters:
    ///   - buckets: the buckets of the public database, fixed for the container's life; see
    ///     ``Bucket/isOffered(_:)``.
    ///   - zoneBuckets: the same of each private database.
    package func create(_ container: ContainerReference, buckets: Int = 1, zoneBuckets: Int = 1)
        async throws(RouteError) -> Creation
    {
        precondition(Bucket.isOffered(buckets), "not offered: \(buckets) buckets")
        precondition(Bucket.isOffered(zoneBuckets), "not offered: \(zoneBuckets) buckets")
        if let known = try await self.descriptor(of: container) {
            switch known.state {
            case .active, .resetting:
                // Where somebody was cut short, the list is whole again.
                try await self.list(container, as: known)
                return .exists(known)
            case .erasing: return .isErasing
            case .erased: break
            }
        }
        let now = self.store.now
        let fresh = ContainerDescriptor(
            createdMilliseconds: now, publicBucketCount: buckets, zoneBucketCount: zoneBuckets)
        try await self.list(container, as: fresh)
        var result = Creation.isErasing
        try await self.store.update(Self.key(container), at: .container(container)) {
            row throws(RouteError) in
            var descriptor = fresh
            if let row {
                let known = try Self.decode(row)
                switch known.state {
                case .active, .resetting:
                    result = .exists(known)
                    return nil
                case .erasing:
                    result = .isErasing
                    return nil
                case .erased: descriptor.generation = known.generation + 1
                }
            }
            result = .created(descriptor)
            return .put(body: descriptor.encoded(), expiresAtMilliseconds: 0)
        }
        if case .created(let descriptor) = result {
            try await self.list(container, as: descriptor)
        }
        return result
    }

    package enum Admission: Sendable, Hashable {
        /// There was none: it was made.
        case created
        case known
        /// It was deleted and nobody created it again, or it is being reset.
        case closed
    }

    /// Makes a container known that is used without having been created.
    package func admission(
        of container: ContainerReference
    ) async throws(RouteError) -> Admission {
        if let known = try await self.descriptor(of: container) {
            return known.state == .active ? .known : .closed
        }
        return switch try await self.create(container, zoneBuckets: self.zoneBuckets) {
        case .created: .created
        case .exists(let known): known.state == .active ? .known : .closed
        case .isErasing: .closed
        }
    }

    /// - Returns: false where it was deleted, and nobody created it again.
    package func admit(_ container: ContainerReference) async throws(RouteError) -> Bool {
        try await self.admission(of: container) != .closed
    }

    /// Shuts a container for everybody. Nil: there is none, or nothing is left of it.
    package func beginErasure(of container: ContainerReference) async throws(RouteError)
        -> ContainerDescriptor?
    {
        try await self.change(container) { descriptor in
            switch descriptor.state {
            case .active, .resetting:
                descriptor.state = .erasing
                descriptor.reset = nil
                descriptor.deletedMilliseconds = self.store.now
                return true
            case .erasing: return true
            case .erased: return false
            }
        }
    }

    /// Nothing is left of it. Nil: it was not being erased.
    package func finishErasure(of container: ContainerReference) async throws(RouteError)
        -> ContainerDescriptor?
    {
        try await self.change(container) { descriptor in
            guard descriptor.state == .erasing else { return false }
            descriptor.state = .erased
            return true
        }
    }

    /// Shuts a container until its records are gone. Nil: there is none, or it is being deleted.
    package func beginReset(of container: ContainerReference) async throws(RouteError)
        -> ContainerDescriptor?
    {
        try await self.change(container) { descriptor in
            switch descriptor.state {
            case .active:
                descriptor.state = .resetting
                descriptor.reset = .init(begunMilliseconds: self.store.now)
                return true
            case .resetting: return true
            case .erasing, .erased: return false
            }
        }
    }

    /// Notes how far a reset has come. A later position noted meanwhile by somebody else is kept.
    package func noteReset(_ reset: ContainerDescriptor.Reset, of container: ContainerReference)
        async throws(RouteError)
    {
        _ = try await self.change(container) { descriptor in
            guard var known = descriptor.reset,
                known.begunMilliseconds == reset.begunMilliseconds
            else { return false }
            known.isPublicErased = known.isPublicErased || reset.isPublicErased
            known.lastUser = max(known.lastUser, reset.lastUser)
            descriptor.reset = known
            return true
        }
    }

    /// Lets everybody in again. Nil: it was not being reset.
    package func finishReset(of container: ContainerReference) async throws(RouteError)
        -> ContainerDescriptor?
    {
        try await self.change(container) { descriptor in
            guard descriptor.state == .resetting else { return false }
            descriptor.state = .active
            descriptor.reset = nil
            return true
        }
    }

    private func change(
        _ container: ContainerReference, _ change: (inout ContainerDescriptor) -> Bool
    ) async throws(RouteError) -> ContainerDescriptor? {
        var changed: ContainerDescriptor?
        try await self.store.update(Self.key(container), at: .container(container)) {
            row throws(RouteError) in
            changed = nil
            guard let row else { return nil }
            let before = try Self.decode(row)
            var descriptor = before
            guard change(&descriptor) else { return nil }
            changed = descriptor
            return descriptor == before
                ? nil : .put(body: descriptor.encoded(), expiresAtMilliseconds: 0)
        }
        if let changed { try await self.list(container, as: changed) }
        return changed
    }

    private func list(_ container: ContainerReference, as descriptor: ContainerDescriptor)
        async throws(RouteError)
    {
        _ = try await self.store.submit(
            [
                .init(
                    Self.listing(container),
                    .put(body: descriptor.encoded(), expiresAtMilliseconds: 0))
            ], to: Self.listingHome)
    }

    /// The names of the containers behind one, in the order of ``all()``.
    package func page(after last: ContainerReference?, limit: Int) async throws(RouteError)
        -> [ContainerReference]
    {
        var containers: [ContainerReference] = []
        for entry in try await self.store.page(
            .containerListing, of: [], at: Self.listingHome,
            after: last.map { IdentityKey.home($0) }, limit: limit)
        {
            guard let first = entry.name.first, let environment = Environment(rawValue: first),
                let name = String(validating: entry.name.dropFirst(), as: UTF8.self)
            else { throw .unreadableRow }
            containers.append(ContainerReference(container: name, environment: environment))
        }
        return containers
    }

    /// Every container, development before production, then by name.
    package func all() async throws(RouteError) -> [(
        container: ContainerReference, descriptor: ContainerDescriptor
    )] {
        var all: [(container: ContainerReference, descriptor: ContainerDescriptor)] = []
        for entry in try await self.store.list(
            .containerListing, of: [], at: Self.listingHome, countMax: Self.countMax)
        {
            guard let first = entry.name.first, let environment = Environment(rawValue: first),
                let name = String(validating: entry.name.dropFirst(), as: UTF8.self)
            else { throw .unreadableRow }
            all.append(
                (
                    ContainerReference(container: name, environment: environment),
                    try Self.decode(entry.row)
                ))
        }
        return all
    }
}
