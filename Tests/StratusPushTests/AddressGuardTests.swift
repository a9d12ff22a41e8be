import StratusModel
import Testing

@testable import StratusPush

/// P-10: where a push must not go.
@Suite struct AddressGuardTests {
    @Test(arguments: [
        "https://push.example.net/a?b=c", "https://push.example.net:443/a",
        "https://a-b.example.org",
        "https://web.push.example.com/AbC",
    ])
    func `P-10: what a browser gives is taken`(_ url: String) throws {
        let endpoint = try AddressGuard.endpoint(url)
        #expect(endpoint.target.hasPrefix("/") && !endpoint.origin.contains(":443"))
    }

    @Test(arguments: [
        "http://push.example.net/", "ftp://push.example.net/", "https:/push.example.net",
        "https://push.example.net:+443/", "https://push.example.net:0443/",
        "https://push.example.net:/", "https://push.example.net:-0/",
        "https://user@push.example.net/", "https://push.example.net:8443/", "https://localhost/",
        "https://push.localhost/", "https://127.0.0.1/", "https://2130706433/",
        "https://0x7f000001/",
        "https://0177.0.0.1/", "https://127.1/", "https://[::1]/", "https://[::ffff:10.0.0.1]/",
        "https://push.example.net#x", "https://a.internal/", "https://printer.local/",
        "https://push.example.net\\@127.0.0.1/", "https://push.ex ample.net/", "https://a..b/",
        "https://-a.example.net/", "https://a.example.net./", "https://a.example.7/",
        "https://\u{FF11}27.example.net/", "https:///a", "https://",
    ])
    func `P-10: what points inside or is disguised is refused`(_ url: String) {
        #expect(throws: AddressGuard.Refusal.self) { try AddressGuard.endpoint(url) }
    }

    @Test func `P-10: addresses of this machine, its networks and its cloud`() {
        for v4 in [
            [0, 0, 0, 0], [10, 1, 2, 3], [100, 64, 0, 1], [127, 0, 0, 1], [169, 254, 169, 254],
            [172, 16, 0, 1], [172, 31, 255, 255], [192, 168, 1, 1], [192, 0, 0, 8],
            [198, 18, 0, 1],
            [203, 0, 113, 9], [224, 0, 0, 1], [255, 255, 255, 255],
        ] as [Bytes] {
            #expect(!AddressGuard.isGlobal(v4: v4), "\(v4)")
            let zeros = Bytes(repeating: 0, count: 10)
            #expect(!AddressGuard.isGlobal(v6: zeros + [255, 255] + v4), "mapped \(v4)")
            #expect(
                !AddressGuard.isGlobal(
                    v6: [0, 0x64, 0xFF, 0x9B] + Bytes(repeating: 0, count: 8) + v4),
                "translated \(v4)")
            #expect(
                !AddressGuard.isGlobal(v6: [0x20, 0x02] + v4 + zeros), "6to4 \(v4)")
        }
        #expect(AddressGuard.isGlobal(v4: [17, 188, 1, 1]))
        #expect(
            AddressGuard.isGlobal(v4: [172, 32, 0, 1])
                && AddressGuard.isGlobal(v4: [100, 128, 0, 1]))
        func v6(_ head: Bytes) -> Bytes { head + Bytes(repeating: 1, count: 16 - head.count) }
        #expect(AddressGuard.isGlobal(v6: v6([0x26, 0x20])))
        for head in [
            [0xFE, 0x80], [0xFC, 0x00], [0xFD, 0x12], [0xFF, 0x02], [0x20, 0x01, 0x0D, 0xB8],
            [0x20, 0x01, 0, 0], [0x3F, 0xFF], [0x00, 0x64],
        ] as [Bytes] { #expect(!AddressGuard.isGlobal(v6: v6(head)), "\(head)") }
        #expect(!AddressGuard.isGlobal(v6: Bytes(repeating: 0, count: 15) + [1]))
        #expect(!AddressGuard.isGlobal(v6: Bytes(repeating: 0, count: 16)))
    }
}
