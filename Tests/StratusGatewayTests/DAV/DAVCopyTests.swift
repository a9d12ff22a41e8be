import StratusHTTP
import StratusModel
import StratusRecords
import StratusRuntime
import Testing

@testable import StratusGateway
@testable import WireScenarios

/// Copies that one entry cannot take.
@Suite struct DAVCopyTests {
    private static func bytes(_ seed: Int, _ size: Int) -> Bytes {
        Bytes((0..<size).map { UInt8(truncatingIfNeeded: $0 &* (seed + 3) >> 3 ^ seed) })
    }

    private static func to(_ dav: DAVClient, _ path: String) -> [(String, String)] {
        [("Destination", dav.path(path))]
    }

    private static func put(
        _ dav: DAVClient, _ path: String, _ bytes: Bytes
    ) async throws {
        let answer = try await dav.send("PUT", path, bytes: bytes)
        guard answer.status == 201 else { throw Problem(text: "\(answer)") }
    }

    /// The names in a folder, as its page has them.
    private static func listing(_ dav: DAVClient, _ path: String) async throws -> String {
        try await dav.send("PROPFIND", path, [("Depth", "1")]).text
    }

    /// A folder of some megabytes, with a folder in it.
    private static func tree(_ dav: DAVClient) async throws {
        for path in ["/Documents/f/", "/Documents/f/in/", "/Documents/f/empty/"] {
            guard try await dav.status("MKCOL", path) == 201 else { throw Problem(text: path) }
        }
        for number in 0..<6 {
            try await Self.put(
                dav, "/Documents/f/in/a\(number)", Self.bytes(number, 300_000 + number))
        }
        try await Self.put(dav, "/Documents/f/small", [1, 2, 3])
    }

    @Test func `a folder of some megabytes is copied in steps, with everything in it`() async throws
    {
        let (dav, _) = try await DAVClient.make()
        try await Self.tree(dav)
        let patch = try await dav.send(
            "PROPPATCH", "/Documents/f/in/a1",
            body: "<propertyupdate xmlns=\"DAV:\"><set><prop><one xmlns=\"urn:z\">x</one></prop>"
                + "</set></propertyupdate>")
        #expect(patch.status == 207)
        #expect(try await dav.status("COPY", "/Documents/f", Self.to(dav, "/Documents/g")) == 201)
        for number in 0..<6 {
            let got = try await dav.send("GET", "/Documents/g/in/a\(number)")
            #expect(got.body == Self.bytes(number, 300_000 + number))
        }
        #expect(try await dav.send("GET", "/Documents/g/small").body == [1, 2, 3])
        #expect(
            try await dav.send("PROPFIND", "/Documents/g/in/a1", [("Depth", "0")]).text.contains(
                "urn:z"))
        #expect(try await dav.status("PROPFIND", "/Documents/g/empty", [("Depth", "0")]) == 207)
        #expect(try await !Self.listing(dav, "/Documents/").contains("Copying"))
        // The source is as it was, and each lives by itself.
        #expect(try await dav.status("DELETE", "/Documents/f") == 204)
        #expect(try await dav.send("GET", "/Documents/g/in/a5").body.count == 300_005)
    }

    @Test func `the copy takes the place of what is there at its end`() async throws {
        let (dav, _) = try await DAVClient.make()
        try await Self.tree(dav)
        #expect(try await dav.status("MKCOL", "/Documents/g/") == 201)
        try await Self.put(dav, "/Documents/g/old", [9])
        let to = Self.to(dav, "/Documents/g")
        #expect(try await dav.status("COPY", "/Documents/f", to + [("Overwrite", "F")]) == 412)
        #expect(try await dav.status("COPY", "/Documents/f", to) == 204)
        #expect(try await dav.status("GET", "/Documents/g/old") == 404)
        #expect(try await dav.send("GET", "/Documents/g/in/a3").body.count == 300_003)
        // Without what is in it, it is one command.
        #expect(
            try await dav.status(
                "COPY", "/Documents/f", Self.to(dav, "/Documents/h") + [("Depth", "0")]) == 201)
        #expect(try await dav.status("GET", "/Documents/h/small") == 404)
        #expect(try await !Self.listing(dav, "/Documents/").contains("Copying"))
    }

    @Test func `a copy that the quota ends leaves nothing, and what it would replace`() async throws
    {
        let town = AssetHandlerTests.Town { _, limits in
            limits.privateDatabaseSizeMax = ByteCount(3_000_000)
        }
        func send(
            _ method: String, _ path: String, _ headers: [(String, String)] = [],
            _ bytes: Bytes = []
        ) async throws -> DAVFileTests.Answer {
            try await DAVFileTests.send(town, method, path, headers, CollectedBody(bytes))
        }
        for path in ["/Documents/f/", "/Documents/g/"] {
            #expect(try await send("MKCOL", path).status == 201)
        }
        for number in 0..<5 {
            let put = try await DAVFileTests.put(
                town, "/Documents/f/a\(number)", Self.bytes(number, 400_000))
            #expect(put.status == 201)
        }
        #expect(try await DAVFileTests.put(town, "/Documents/g/old", [9]).status == 201)
        let home = "/dav/\(AssetHandlerTests.Town.container.container)/development"
        let copy = try await send(
            "COPY", "/Documents/f", [("Destination", "\(home)/Documents/g")])
        #expect(copy.status == 507 && copy.text.contains("quota-not-exceeded"), "\(copy.text)")
        let listing = try await send("PROPFIND", "/Documents/", [("Depth", "1")]).text
        #expect(!listing.contains("Copying"))
        #expect(try await send("GET", "/Documents/g/old").status == 200)
    }

    @Test func `what is too large for a copy is refused before anything is written`() async throws {
        let (dav, _) = try await DAVClient.make()
        #expect(try await dav.status("MKCOL", "/Documents/f/") == 201)
        let bytes = Bytes(repeating: 7, count: 512 << 10)
        for number in 0...64 { try await Self.put(dav, "/Documents/f/a\(number)", bytes) }
        let copy = try await dav.send("COPY", "/Documents/f", Self.to(dav, "/Documents/g"))
        #expect(copy.status == 413, "\(copy)")
        let listing = try await Self.listing(dav, "/Documents/")
        #expect(!listing.contains("Copying") && !listing.contains("/g"))
    }
}
