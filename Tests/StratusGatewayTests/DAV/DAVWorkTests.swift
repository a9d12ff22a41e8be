import StratusHTTP
import StratusModel
import StratusRecords
import Synchronization
import Testing

@testable import StratusGateway

/// What a listing may cost: counted, not timed.
@Suite struct DAVWorkTests {
    private static func lockInfo(_ scope: String, owner: String = "") -> String {
        "<D:lockinfo xmlns:D=\"DAV:\"><D:lockscope><D:\(scope)/></D:lockscope>"
            + "<D:locktype><D:write/></D:locktype>\(owner)</D:lockinfo>"
    }

    private static func find(_ names: String...) -> String {
        "<D:propfind xmlns:D=\"DAV:\"><D:prop>\(names.map { "<D:\($0)/>" }.joined())"
            + "</D:prop></D:propfind>"
    }

    private static func item(_ number: Int, _ kind: DocumentItem.Kind, _ name: String)
        -> DocumentItem
    {
        DocumentItem(
            id: String(repeating: "0", count: 29) + String(100 + number), kind: kind, name: name,
            folder: "", editedAtMilliseconds: 0, device: "webdav")
    }

    private static func lock(
        _ number: Int, _ item: DocumentItem, isInfinite: Bool
    ) -> DocumentLock {
        DocumentLock(
            token: String(repeating: "f", count: 28) + String(1_000 + number), item: item.id,
            isExclusive: false, isInfinite: isInfinite, owner: [], untilMilliseconds: 1)
    }

    @Test func `each lock is written once`() throws {
        let folder = Self.item(0, .folder, "f")
        let files = (1...400).map { Self.item($0, .file, "a\($0)") }
        // As many as may hold above, and the others on single files.
        var locks = (0..<8).map { Self.lock($0, folder, isInfinite: true) }
        for number in 8..<DocumentLock.countMax {
            locks.append(Self.lock(number, files[number % 31], isInfinite: false))
        }
        let place = DAVService.Place(names: ["f"], chain: [nil, folder])
        let written = Mutex<[String: Int]>([:])
        let discovery = DAVLockDiscovery(locks, at: place, root: { _ in "/f/" }) { lock, root in
            written.withLock { $0[lock.token, default: 0] += 1 }
            return Bytes("[\(root)]".utf8)
        }
        var count = 0
        for file in files {
            let text = String(
                decoding: discovery.element(of: file, href: "/f/\(file.name)"), as: UTF8.self)
            #expect(text.split(separator: "[/f/]", omittingEmptySubsequences: false).count == 9)
            count +=
                text.split(separator: "[/f/\(file.name)]", omittingEmptySubsequences: false)
                .count - 1
        }
        #expect(count == DocumentLock.countMax - 8)
        let counts = written.withLock { $0 }
        #expect(counts.count == DocumentLock.countMax && counts.values.allSatisfy { $0 == 1 })
    }

    @Test func `getetag asks for no locks`() async throws {
        let (dav, _) = try await DAVClient.make()
        #expect(try await dav.status("PUT", "/Documents/a", body: "x") == 201)
        #expect(
            try await dav.status(
                "LOCK", "/Documents", body: Self.lockInfo("shared")) == 200)
        func reads(_ body: String) async throws -> (count: Int, showsLock: Bool) {
            let before = dav.town.router.readHomes.withLock { $0.count }
            let answer = try await dav.send("PROPFIND", "/Documents", [("Depth", "1")], body: body)
            #expect(answer.status == 207, "\(answer)")
            return (
                dav.town.router.readHomes.withLock { $0.count } - before,
                answer.text.contains("activelock")
            )
        }
        let plain = try await reads(Self.find("getetag"))
        let names = try await reads(
            "<D:propfind xmlns:D=\"DAV:\"><D:propname/></D:propfind>")
        let locks = try await reads(Self.find("getetag", "lockdiscovery"))
        let all = try await reads("")
        #expect(!plain.showsLock && !names.showsLock && locks.showsLock && all.showsLock)
        #expect(locks.count == plain.count + 1)
        // The properties that clients keep, of the folder and of what is in it.
        #expect(names.count == plain.count + 2 && all.count == names.count + 1)
    }

    @Test func `the 17th shared lock is refused`() async throws {
        let (dav, _) = try await DAVClient.make()
        #expect(try await dav.status("PUT", "/Documents/a", body: "x") == 201)
        let shared = Self.lockInfo("shared")
        for number in 1...DocumentLock.sharedCountMax {
            let path = number % 2 == 0 ? "/Documents" : "/Documents/a"
            #expect(try await dav.status("LOCK", path, body: shared) == 200, "\(number)")
        }
        for path in ["/Documents", "/Documents/a"] {
            #expect(try await dav.status("LOCK", path, body: shared) == 423)
        }
        #expect(try await dav.status("PUT", "/Documents/b", body: "x") == 423)
    }

    /// It is written as it was kept, and could otherwise close what is around it.
    @Test func `an owner is shown as it was sent, and as nothing else`() async throws {
        let (dav, _) = try await DAVClient.make()
        #expect(try await dav.status("PUT", "/Documents/a", body: "x") == 201)
        let owner =
            "<D:owner xmlns:x=\"urn:x&quot;&lt;\"><x:who n=\"&quot;/>&lt;\"/>"
            + "<![CDATA[</D:owner><D:evil/>]]>&amp;amp;&#13;</D:owner>"
        let sent = try XMLReader.read(Bytes(Self.lockInfo("exclusive", owner: owner).utf8))
        let expected = try #require(sent.element(.dav("owner")))
        let locked = try await dav.send(
            "LOCK", "/Documents/a", body: Self.lockInfo("exclusive", owner: owner))
        let found = try await dav.send(
            "PROPFIND", "/Documents", [("Depth", "1")], body: Self.find("lockdiscovery"))
        func discovery(_ element: XMLElement) -> XMLElement? {
            element.element(.dav("lockdiscovery"))?.element(.dav("activelock"))
        }
        let answered = try XMLReader.read(locked.body)
        let told = try #require(discovery(answered))
        #expect(told.element(.dav("owner")) == expected)
        let responses = try XMLReader.read(found.body).elements
        #expect(responses.count == 2)
        let prop = try #require(responses[1].element(.dav("propstat"))?.element(.dav("prop")))
        let shown = try #require(discovery(prop))
        #expect(shown.element(.dav("owner")) == expected)
        #expect(
            shown.elements.map(\.name.local) == [
                "locktype", "lockscope", "depth", "owner", "timeout", "locktoken", "lockroot",
            ])
        #expect(shown.element(.dav("lockroot"))?.elements.first?.text == dav.path("/Documents/a"))
    }
}
