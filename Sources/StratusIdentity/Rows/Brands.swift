import StratusCoding
import StratusHTTP
package import StratusModel
import StratusRecords
import StratusSealing

/// The brands of containers, one for each environment. They go with the environment.
package struct Brands: Sendable {
    private let store: IdentityStore

    package init(_ store: IdentityStore) { self.store = store }

    private static func key(_ container: ContainerReference, _ name: UInt8) -> IdentityKey {
        IdentityKey(.brand, of: IdentityKey.home(container), [name])
    }

    private static let brand: UInt8 = 1
    private static let logo: UInt8 = 2

    package func brand(of container: ContainerReference) async throws(RouteError) -> Brand? {
        let row = try await self.store.row(
            Self.key(container, Self.brand), at: .container(container))
        guard let row else { return nil }
        do { return try Brand(decoding: row.body) } catch { throw .unreadableRow }
    }

    /// A picture, if the hash is the one that the brand names.
    package func logo(of container: ContainerReference, hash: Bytes) async throws(RouteError)
        -> Bytes?
    {
        let rows = try await self.store.rows(
            [Self.key(container, Self.brand), Self.key(container, Self.logo)],
            at: .container(container))
        guard let brand = rows[0].flatMap({ try? Brand(decoding: $0.body) }), brand.logo == hash
        else { return nil }
        return rows[1]?.body
    }

    /// Takes the place of what there was, in one entry.
    ///
    /// - Parameter logo: nil: the brand keeps the logo that it names.
    package func set(_ brand: Brand, logo: BrandLogo?, of container: ContainerReference)
        async throws(RouteError)
    {
        var edits = [
            IdentityCommand.Edit(
                Self.key(container, Self.brand), if: .any,
                .put(body: brand.encoded(), expiresAtMilliseconds: 0))
        ]
        if let logo {
            edits.append(
                .init(
                    Self.key(container, Self.logo), if: .any,
                    .put(body: logo.bytes, expiresAtMilliseconds: 0)))
        } else if brand.logo == nil {
            edits.append(.init(Self.key(container, Self.logo), if: .any, .remove))
        }
        try await self.submit(edits, container)
    }

    package func clear(_ container: ContainerReference) async throws(RouteError) {
        try await self.submit(
            [Self.brand, Self.logo].map { .init(Self.key(container, $0), if: .any, .remove) },
            container)
    }

    private func submit(_ edits: [IdentityCommand.Edit], _ container: ContainerReference)
        async throws(RouteError)
    {
        guard
            case .done = try await self.store.submit(edits, to: .container(container))
        else { throw .refused("a change that is no change") }
    }

    package static func hash(_ bytes: Bytes) -> Bytes { Bytes(SHA256.hash(bytes).prefix(16)) }
}

extension BrandLogo {
    /// What the paths of all logos begin with.
    package static let root = "/brand/"

    /// An address names one picture for ever.
    package static func path(of hash: Bytes, in container: ContainerReference) -> String {
        Self.root + PercentCoding.encode(container.container) + "/\(container.environment.name)/"
            + Base64URL.encode(hash) + ".png"
    }
}
