import Foundation
import StratusCoding
import StratusDoubles
import StratusHTTP
import StratusIdentity
import StratusModel
import StratusRuntime
import Testing

@testable import StratusGateway
@testable import WireScenarios

/// What people see of every page: its language, the app's look, and nothing that somebody else put
/// there.
@Suite struct PeoplePageTests {
    // MARK: Languages

    @Test func `each language says everything, with the same places for names`() {
        let english = Self.texts(of: PeopleText.english)
        #expect(english.count > 90)
        for text in PeopleText.all {
            let own = Self.texts(of: text)
            #expect(own.map(\.label) == english.map(\.label))
            for (one, other) in zip(own, english) {
                #expect(!one.text.isEmpty, "\(text.language): \(one.label)")
                #expect(
                    one.text.split(separator: "{}", omittingEmptySubsequences: false).count
                        == other.text.split(separator: "{}", omittingEmptySubsequences: false).count,
                    "\(text.language): \(one.label)")
            }
            // One encoded word of a head has 75 characters.
            let subjects = [
                text.emails.signUpSubject, text.emails.alreadyThereSubject,
                text.emails.resetSubject, text.emails.invitationSubject,
            ]
            #expect(subjects.allSatisfy { $0.utf8.count <= 45 && !$0.contains("{") })
        }
    }

    private static func texts(of value: Any, _ path: String = "") -> [(label: String, text: String)]
    {
        Mirror(reflecting: value).children.flatMap { child in
            let label = path + "." + (child.label ?? "")
            if let text = child.value as? String { return [(label: label, text: text)] }
            return Self.texts(of: child.value, label)
        }
    }

    @Test(
        arguments: [
            (nil, nil, "en"), (nil, "de", "de"), (nil, "de-CH, en;q=0.9", "de"),
            (nil, "fr, de;q=0.5, en;q=0.4", "de"), (nil, "en;q=0.5, de;q=0.8", "de"),
            (nil, "de;q=0, en;q=0.1", "en"), (nil, "fr", "en"), (nil, "*", "en"),
            (nil, "de;q=x", "en"), (nil, String(repeating: "x,", count: 10) + "de", "en"),
            ("de", "en", "de"), ("DE-at", nil, "de"), ("fr", "de", "de"), ("", "de", "de"),
        ] as [(String?, String?, String)])
    func `the address names the language, else the browser does`(
        row: (wanted: String?, accepted: String?, language: String)
    ) {
        #expect(
            PeopleText.chosen(row.wanted, accepted: row.accepted).language == row.language)
    }

    private func link(_ town: Neighbourhood, _ api: String) async throws -> String {
        try Neighbourhood.link(try await town.post("public/users/caller", api: api))
    }

    private func page(_ town: Neighbourhood, _ target: String, accepts: String? = nil) async throws
        -> WireAnswer
    {
        try await town.send(
            WireRequest(
                method: "GET", target: target,
                headers: accepts.map { [("Accept-Language", $0)] } ?? []))
    }

    @Test func `a page speaks the browser's language, and another by its link`() async throws {
        let town = Neighbourhood()
        let link = try await self.link(town, try await town.apiToken())
        let german = try await self.page(town, "/signin?t=\(link)", accepts: "de-DE,de;q=0.9")
        #expect(german.header("Content-Language") == "de")
        #expect(german.text.contains("<html lang=\"de\">"))
        #expect(german.text.contains("<button type=\"submit\">Anmelden</button>"))
        #expect(!german.text.contains("name=\"lang\""))
        let english = "/signin?t=\(PercentCoding.encode(link))&lang=en"
        #expect(german.text.contains("href=\"\(PeoplePage.escape(english))\""))

        // Whoever chose a language keeps it, without a cookie.
        let chosen = try await self.page(town, english, accepts: "de")
        #expect(chosen.text.contains("<button type=\"submit\">Sign in</button>"))
        #expect(chosen.text.contains("<input type=\"hidden\" name=\"lang\" value=\"en\">"))
        #expect(chosen.text.contains("href=\"/forgot?lang=en\""))
        let wrong = try await town.form(
            "/signin", [("t", link), ("lang", "de"), ("email", "a@b.c"), ("password", "x")])
        #expect(wrong.text.contains("Die E-Mail-Adresse oder das Passwort stimmt nicht."))
        #expect(wrong.text.contains("aria-invalid=\"true\" aria-describedby=\"problem\""))
        #expect(wrong.header("Set-Cookie") == nil)
    }

    @Test func `an e-mail is in the language of the page that asked for it`() throws {
        let desk = EmailDesk(NoSender(), base: "https://ck.example.org")
        let address = try #require(EmailAddress("ann@example.org"))
        let message = desk.reset(to: address, secret: "s1_x", in: .german)
        #expect(message.subject == "Ein neues Passwort wählen")
        #expect(message.body.contains("\n\nhttps://ck.example.org/reset?s=s1_x\n\n"))
        #expect(!message.body.contains("{}"))
        let bytes = message.bytes(
            from: "a@example.org", at: 0, identity: RequestIdentity(high: 1, low: 2))
        #expect(bytes.prefix { $0 != 0x0A }.allSatisfy { $0 < 0x80 })
        #expect(
            String(decoding: bytes, as: UTF8.self).contains(
                "Subject: =?utf-8?B?RWluIG5ldWVzIFBhc3N3b3J0IHfDpGhsZW4=?=\r\n"))
    }

    private struct NoSender: EmailSender {
        func enqueue(_ make: @escaping @Sendable () async -> EmailMessage?) -> Bool { false }
    }

    // MARK: Looks

    @Test func `every colour can be read on light and on dark pages`() {
        for number in 0..<4_096 {
            let colour = Brand.Colour(
                red: UInt8(number >> 8) * 17, green: UInt8(number >> 4 & 15) * 17,
                blue: UInt8(number & 15) * 17)
            let shades = BrandColours(colour)
            for (pair, ground) in [
                (shades.onLight, BrandColours.light), (shades.onDark, BrandColours.dark),
            ] {
                #expect(BrandColours.contrast(pair.colour, ground) >= 4.5, "\(colour.text)")
                #expect(BrandColours.contrast(pair.colour, pair.textOnIt) >= 4.5, "\(colour.text)")
            }
        }
        // Known values of the recommendation.
        let black = Brand.Colour(red: 0, green: 0, blue: 0)
        #expect(abs(BrandColours.contrast(black, BrandColours.light) - 21) < 0.001)
        let grey = Brand.Colour(red: 0x77, green: 0x77, blue: 0x77)
        #expect(abs(BrandColours.contrast(grey, BrandColours.light) - 4.48) < 0.01)
    }

    @Test(
        arguments: [
            ("#0b57d0", "#0b57d0"), ("#05D", "#0055dd"), ("#000", "#000000"), ("0b57d0", nil),
            ("#0b57d", nil), ("#", nil), ("#ggg", nil), ("#+12", nil), ("#-12345", nil),
        ] as [(String, String?)])
    func `a colour is read as screens write it`(row: (text: String, colour: String?)) {
        #expect(Brand.Colour(row.text)?.text == row.colour)
    }

    /// A picture of one colour would do: its pixels are not looked at.
    private static func picture(side: UInt16 = 128, more: [(String, Bytes)] = []) -> Bytes {
        func chunk(_ name: String, _ content: Bytes) -> Bytes {
            withUnsafeBytes(of: UInt32(content.count).bigEndian) { Bytes($0) } + Bytes(name.utf8)
                + content + [0, 0, 0, 0]
        }
        let side: Bytes = [0, 0, UInt8(side >> 8), UInt8(side & 255)]
        return [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]
            + chunk("IHDR", side + side + [8, 2, 0, 0, 0])
            + more.flatMap { chunk($0.0, $0.1) } + chunk("IDAT", [1, 2, 3]) + chunk("IEND", [])
    }

    @Test func `a logo keeps what is the picture, and nothing else`() throws {
        let plain = Self.picture()
        let told = Self.picture(more: [
            ("tEXt", Bytes("Author".utf8)), ("eXIf", Bytes("a place".utf8)), ("sRGB", [0]),
        ])
        #expect(BrandLogo(plain, hash: Brands.hash)?.bytes == plain)
        #expect(
            BrandLogo(told, hash: Brands.hash)?.bytes == Self.picture(more: [("sRGB", [0])]))
        for side in [63, 1_025] as [UInt16] {
            #expect(BrandLogo(Self.picture(side: side), hash: Brands.hash) == nil)
        }
        #expect(BrandLogo(plain + [0], hash: Brands.hash) == nil)
        #expect(BrandLogo(Bytes("<svg/>".utf8), hash: Brands.hash) == nil)
        let large = Self.picture(more: [("PLTE", Bytes(repeating: 0, count: 65_536))])
        #expect(BrandLogo(large, hash: Brands.hash) == nil)
        // Cut or changed anywhere, it is a picture of the same rules, or none.
        for count in plain.indices {
            #expect(BrandLogo(Bytes(plain[..<count]), hash: Brands.hash) == nil)
        }
        var random = SeededGenerator(seed: 7)
        for _ in 0..<2_000 {
            var changed = told
            changed[Int.random(in: changed.indices, using: &random)] = .random(
                in: 0...255, using: &random)
            guard let logo = BrandLogo(changed, hash: Brands.hash) else { continue }
            #expect(logo.bytes.count <= changed.count)
            #expect(BrandLogo(logo.bytes, hash: Brands.hash) == logo)
        }
    }

    private func brand(_ town: Neighbourhood, _ brand: Brand, logo: BrandLogo? = nil) async throws {
        try await town.service.brands.set(brand, logo: logo, of: Neighbourhood.container)
    }

    @Test func `an app's look stands on its pages, and never alone`() async throws {
        let town = Neighbourhood()
        let link = try await self.link(town, try await town.apiToken())
        let logo = try #require(BrandLogo(Self.picture(), hash: Brands.hash))
        try await self.brand(
            town,
            Brand {
                $0.name = "Shelves & Co"
                $0.welcome = "Your <books>"
                $0.privacy = "https://shelves.example/privacy?a=1&b=2"
                $0.colour = Brand.Colour(red: 0xFF, green: 0xD0, blue: 0)
                $0.logo = logo.hash
            }, logo: logo)
        let page = try await self.page(town, "/signin?t=\(link)")
        #expect(page.text.contains("to continue to <strong><bdi>Shelves &amp; Co</bdi></strong>"))
        #expect(page.text.contains("<bdi>Your &lt;books&gt;</bdi>"))
        #expect(page.text.contains("href=\"https://shelves.example/privacy?a=1&amp;b=2\""))
        // Who asks for the password stands below, whatever the look says.
        #expect(
            page.text.contains("<strong><bdi>\(Neighbourhood.container.container)</bdi></strong>"))
        #expect(page.text.contains("<bdi>ck.example.org</bdi>"))
        #expect(!page.text.contains(">:root{--accent:#ffd000"))
        #expect(page.text.contains("dark){:root{--accent:#ffd000"))

        let path = BrandLogo.path(of: logo.hash, in: Neighbourhood.container)
        #expect(page.text.contains("<img src=\"\(path)\" alt=\"\""))
        let picture = try await self.page(town, path)
        #expect(picture.status == 200 && picture.body == Array(logo.bytes))
        #expect(picture.header("Content-Type") == "image/png")
        #expect(picture.header("X-Content-Type-Options") == "nosniff")
        #expect(picture.header("Content-Security-Policy") == "default-src 'none'; sandbox")
        for other in [
            path.replacing(".png", with: ""), path.replacing("development", with: "production"),
            BrandLogo.path(of: Bytes(repeating: 0, count: 16), in: Neighbourhood.container),
            "/brand/",
            "/brand/a/b/c/d.png", "/brand/%zz/development/AA.png",
        ] {
            #expect(try await self.page(town, other).status == 404, "\(other)")
        }
        try await town.service.brands.clear(Neighbourhood.container)
        #expect(try await self.page(town, path).status == 404)
        #expect(!(try await self.page(town, "/signin?t=\(link)")).text.contains("Shelves"))
    }

    private static let scraps = [
        "<script>alert(1)</script>", "\"><img src=x onerror=alert(1)>", "{}", "&lt;", "'", "`",
        "\u{202E}", "\u{2066}", "\u{0}", "\n", "</title>", "--><svg/onload=a>", "ß", "漢", "\\",
        "javascript:alert(1)", "https://a.example/\"x", "%22", " ",
    ]

    @Test(arguments: 0..<4 as Range<UInt64>)
    func `whatever somebody types or calls an app is text`(seed: UInt64) async throws {
        var random = SeededGenerator(seed: seed)
        func draw() -> String {
            (0..<Int.random(in: 0...4, using: &random)).map { _ in
                Self.scraps.randomElement(using: &random) ?? ""
            }.joined()
        }
        let town = Neighbourhood()
        let link = try await self.link(town, try await town.apiToken())
        for _ in 0..<50 {
            var page = PeoplePage(nonce: "n")
            var brand = Brand {
                $0.name = draw()
                $0.welcome = draw()
                $0.privacy = draw()
            }
            let isGood = brand.fault == nil
            if brand.privacy.contains("\"") {
                #expect(brand.privacy.hasPrefix("https://") || !isGood)
            }
            for mark in ["\u{202E}", "\u{2066}", "\u{0}", "\n"] where isGood {
                #expect(!brand.name.contains(mark) && !brand.welcome.contains(mark))
            }
            brand.logo = nil
            page.app = .init(container: Neighbourhood.container, server: draw(), brand: brand)
            let answer = page.signIn(
                link: draw(), to: .callback(draw()), canSignUp: true, email: draw(),
                problem: draw())
            guard case .bytes(let bytes) = answer.body else { Issue.record("no page"); return }
            let text = String(decoding: bytes, as: UTF8.self)
            #expect(!text.contains("<script"))
            #expect(!text.contains("<svg") && !text.contains("onerror=alert(1)>"))
            #expect(text.components(separatedBy: "<img").count == 1)
            #expect(text.components(separatedBy: "</title>").count == 2)
            #expect(bytes.count < 16_384)
        }
        let wrong = try await town.form(
            "/signin", [("t", link), ("email", draw()), ("password", draw())])
        #expect(!wrong.text.contains("<script"))
    }
}
