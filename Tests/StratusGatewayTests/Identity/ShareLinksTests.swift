import StratusIdentity
import StratusModel
import Testing

/// What a share's link hides, and who can open it.
@Suite struct ShareLinksTests {
    private static let container = ContainerReference(
        container: "iCloud.org.example.Library", environment: .development)
    private static let owner = "_0c1f0e7a2b3d4c5e6f708192a3b4c5d6"

    private static func links(
        of container: ContainerReference = Self.container, master: UInt8 = 1
    ) -> ShareLinks {
        IdentityKeys(master: Bytes(repeating: master, count: 32)).shareLinks(of: container)
    }

    @Test func `a link opens to where its share is`() throws {
        for part in [0, 1, 64] {
            let place = ShareLinks.Place(part: part, owner: Self.owner)
            let link = try #require(Self.links().link(drawn: 7, to: place))
            #expect(Self.links().open(link) == place)
            #expect(link.drawn == 7)
        }
    }

    @Test func `the same place is not recognised in two links`() throws {
        let place = ShareLinks.Place(part: 0, owner: Self.owner)
        let one = try #require(Self.links().link(drawn: 7, to: place))
        let two = try #require(Self.links().link(drawn: 8, to: place))
        #expect(one.owner != two.owner)
    }

    @Test func `another container and another master open it to somewhere else`() throws {
        let place = ShareLinks.Place(part: 0, owner: Self.owner)
        let link = try #require(Self.links().link(drawn: 7, to: place))
        var production = Self.container
        production.environment = .production
        #expect(Self.links(of: production).open(link) != place)
        #expect(Self.links(master: 2).open(link) != place)
        #expect(NameRules.isUserRecordName(Self.links(master: 2).open(link).owner))
    }

    @Test(arguments: ["_owner", "", "_0C1F0E7A2B3D4C5E6F708192A3B4C5D6", "0c1f"])
    func `a name that fits no link has none`(owner: String) {
        #expect(Self.links().link(drawn: 7, to: ShareLinks.Place(part: 0, owner: owner)) == nil)
    }

    @Test func `links are made as ever`() throws {
        let place = ShareLinks.Place(part: 3, owner: Self.owner)
        let link = try #require(Self.links().link(drawn: 1 << 100, to: place))
        #expect(Self.links().link(drawn: 1 << 100, to: place) == link)
        #expect(ShareLink(text: link.text) == link)
    }
}
