import StratusAdminModel
import StratusHTTP
import StratusIdentity
import StratusModel
import StratusRuntime

/// How an app looks to its people: name, welcome, addresses, colour and logo.
enum BrandPages {
    private static let place = "/v1/containers/{container}/environments/{environment}/brand"

    static let routes: [AdminRoute] = [
        AdminRoute("GET", Self.place, answer: "the app's look on the sign-in pages") {
            try await Self.show($0, $0.container())
        },
        AdminRoute(
            "PUT", Self.place,
            body: "name, welcome, privacy, terms, help, colour, logo (PNG in Base64); what is "
                + "absent stays",
            answer: "the look as it is now"
        ) { try await Self.set($0, $0.body(), of: $0.container()) },
        AdminRoute("DELETE", Self.place, answer: "nothing") {
            try await Self.clear($0, $0.container())
        },
    ]

    private static func show(_ exchange: AdminExchange, _ container: ContainerReference)
        async throws -> HTTPResponse
    {
        guard let brand = try await Brands(exchange.store).brand(of: container) else {
            throw AdminRefusal.missing("brand")
        }
        return AdminAnswer.json(BrandAnswer(brand, of: container))
    }

    private static func set(
        _ exchange: AdminExchange, _ body: BrandBody, of container: ContainerReference
    ) async throws -> HTTPResponse {
        let brands = try Brands(exchange.store)
        var brand = try await brands.brand(of: container) ?? Brand()
        brand.name = body.name ?? brand.name
        brand.welcome = body.welcome ?? brand.welcome
        brand.privacy = body.privacy ?? brand.privacy
        brand.terms = body.terms ?? brand.terms
        brand.help = body.help ?? brand.help
        if let text = body.colour {
            guard let colour = text.isEmpty ? .standard : Brand.Colour(text) else {
                throw AdminRefusal.bad("'colour' must be as in #0b57d0")
            }
            brand.colour = colour
        }
        let logo = try Self.logo(body.logo)
        if body.logo != nil { brand.logo = logo?.hash }
        if let fault = brand.fault { throw AdminRefusal.bad(fault) }
        try await brands.set(brand, logo: logo, of: container)
        await exchange.noteAfterwards("container brand set", brand.name, container)
        return AdminAnswer.json(BrandAnswer(brand, of: container))
    }

    private static func logo(_ text: String?) throws -> BrandLogo? {
        guard let text, !text.isEmpty else { return nil }
        guard let file = Base64.decode(text), let logo = BrandLogo(file, hash: Brands.hash) else {
            throw AdminRefusal.bad(
                "'logo' must be a square PNG of \(BrandLogo.sides.lowerBound) to "
                    + "\(BrandLogo.sides.upperBound) pixels and "
                    + "\(BrandLogo.sizeMax.raw / 1_024) KiB at most, in Base64")
        }
        return logo
    }

    private static func clear(_ exchange: AdminExchange, _ container: ContainerReference)
        async throws -> HTTPResponse
    {
        try await Brands(exchange.store).clear(container)
        return await exchange.done("container brand clear", "", container)
    }
}

extension BrandAnswer {
    init(_ brand: Brand, of container: ContainerReference) {
        self.init()
        self.name = brand.name
        self.welcome = brand.welcome.isEmpty ? nil : brand.welcome
        self.privacy = brand.privacy.isEmpty ? nil : brand.privacy
        self.terms = brand.terms.isEmpty ? nil : brand.terms
        self.help = brand.help.isEmpty ? nil : brand.help
        self.colour = brand.colour.text
        self.logo = brand.logo.map { BrandLogo.path(of: $0, in: container) }
    }
}
