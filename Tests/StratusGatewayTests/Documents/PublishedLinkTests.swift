import StratusAssets
import StratusDoubles
import StratusHTTP
import StratusIdentity
import StratusModel
import StratusRuntime
import Testing

@testable import StratusGateway
@testable import WireScenarios

/// Published links on the wire: what anybody gets, and what nobody gets.
@Suite struct PublishedLinkTests {
    typealias Town = AssetHandlerTests.Town

    private func get(
        _ town: Town, _ url: String, _ method: String = "GET",
        _ headers: [(String, String)] = [], peer: String = "198.51.100.7:99"
    ) async throws -> DAVFileTests.Answer {
        let origin = try #require(url.firstRange(of: "/published/"))
        let response = await town.gateway.respond(
            to: HTTPRequest(
                head: RequestHead(
                    method: method, path: String(url[origin.lowerBound...]), query: nil,
                    headers: HeaderFields(
                        headers.map { HeaderFields.Line(name: $0.0, value: $0.1) })),
                body: CollectedBody([]), peer: peer, identity: town.world.drawIdentity()))
        var all: Bytes = []
        switch response.body {
        case .empty: break
        case .bytes(let bytes): all = bytes
        case .stream(let stream, _): while let more = try await stream.next() { all += more }
        }
        return DAVFileTests.Answer(
            status: response.status, headers: response.headers, body: all)
    }

    private func publish(
        _ town: Town, _ path: String, seconds: Int? = nil
    ) async throws -> (url: String, publication: String, item: String) {
        let items = try await DAVFileTests.ask(
            town, "items/lookup", ["items": [["path": .string(path)]]])["items"]
        let id = try #require(items[0]["id"].text)
        var body: JSON = ["id": .string(id)]
        if let seconds { body = ["id": .string(id), "seconds": .number("\(seconds)")] }
        let made = try await DAVFileTests.ask(town, "publications/make", body)
        return (
            try #require(made["url"]?.text, "\(made)"),
            try #require(made["publication"]?.text), id
        )
    }

    @Test func `whoever has the link gets the file, and cannot make a page of it`() async throws {
        let town = Town()
        #expect(
            try await DAVFileTests.put(town, "/Documents/film.html", DAVFileTests.large).status
                == 201)
        #expect(try await DAVFileTests.put(town, "/Documents/a.png", [1, 2, 3]).status == 201)
        for (path, bytes) in [
            ("film.html", DAVFileTests.large), ("a.png", [1, 2, 3] as Bytes),
        ] {
            let link = try await self.publish(town, "Documents/\(path)")
            #expect(link.url.contains("/published/"))
            let got = try await self.get(town, link.url, "GET", [("Cookie", "a=b")])
            #expect(got.status == 200 && got.body == bytes, "\(got.text.prefix(200))")
            #expect(
                got.headers["Content-Disposition"] == "attachment; filename=\"\(path)\"")
            #expect(got.headers["Content-Type"] == "application/octet-stream")
            #expect(got.headers["Content-Security-Policy"]?.hasPrefix("sandbox") == true)
            #expect(got.headers["X-Content-Type-Options"] == "nosniff")
            #expect(got.headers["Cache-Control"] == "no-store")
            #expect(got.headers["Set-Cookie"] == nil)
            #expect(got.headers["Access-Control-Allow-Origin"] == nil)
            let part = try await self.get(town, link.url, "GET", [("Range", "bytes=1-2")])
            #expect(part.status == 206 && part.body == Bytes(bytes[1...2]))
            #expect(try await self.get(town, link.url, "HEAD").status == 200)
            #expect(try await self.get(town, link.url, "POST").status == 405)
            #expect(
                try await self.get(town, link.url, "GET", [("Range", "bytes=9000000-")]).status
                    == 416)
        }
        #expect(town.buffers.size == 0)
    }

    @Test func `a link ends at its time, by withdrawal and with its file`() async throws {
        let town = Town()
        #expect(try await DAVFileTests.put(town, "/Documents/a", [1]).status == 201)
        let short = try await self.publish(town, "Documents/a", seconds: 60)
        let long = try await self.publish(town, "Documents/a")
        let listed = try await DAVFileTests.ask(
            town, "publications/list", ["id": .string(long.item)])
        #expect(listed["publications"]?.elements.count == 2)
        town.world.advance(by: .seconds(61))
        #expect(try await self.get(town, short.url).status == 410)
        #expect(try await self.get(town, long.url).body == [1])
        #expect(
            try await DAVFileTests.ask(town, "publications/list", [:])["publications"]?.elements
                .count == 1)
        // What it leads to stays what it was.
        #expect(try await DAVFileTests.put(town, "/Documents/a", [2]).status == 204)
        #expect(try await self.get(town, long.url).body == [1])
        let gone = try await DAVFileTests.ask(
            town, "publications/withdraw", ["publication": .string(long.publication)])
        #expect(gone["publication"]?.text == long.publication)
        #expect(try await self.get(town, long.url).status == 404)
        let last = try await self.publish(town, "Documents/a")
        #expect(try await self.get(town, last.url).body == [2])
        #expect(try await DAVFileTests.send(town, "DELETE", "/Documents/a").status == 204)
        #expect(try await self.get(town, last.url).status == 404)
        // An altered link, and a text of another kind.
        var altered = Array(last.url)
        altered[altered.count - 5] = altered[altered.count - 5] == "A" ? "B" : "A"
        #expect(try await self.get(town, String(altered)).status == 404)
        #expect(try await self.get(town, "http://x/published/").status == 404)
        let ticket = try #require(
            try await DAVFileTests.ask(town, "content/upload", [:])["url"].text)
        let text = try #require(ticket.split(separator: "/").last)
        #expect(try await self.get(town, "http://x/published/\(text)").status == 404)
    }

    @Test func `one link is read so often and no more`() async throws {
        let town = Town()
        #expect(try await DAVFileTests.put(town, "/Documents/a", [1]).status == 201)
        let link = try await self.publish(town, "Documents/a")
        var statuses: [Int] = []
        for number in 0..<60 {
            statuses.append(
                try await self.get(town, link.url, peer: "198.51.100.\(number):1").status)
        }
        #expect(statuses.count { $0 == 200 } >= PublishedSurface.rateMax)
        #expect(statuses.last == 429)
        town.world.advance(by: .seconds(5))
        #expect(try await self.get(town, link.url).status == 200)
    }
}
