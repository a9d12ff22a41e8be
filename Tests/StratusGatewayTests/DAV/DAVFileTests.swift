import StratusAssets
import StratusDoubles
import StratusHTTP
import StratusModel
import StratusRecords
import StratusRuntime
import Synchronization
import Testing

@testable import StratusGateway
@testable import WireScenarios

/// Files that are too large for a record, with WebDAV and in JSON.
@Suite struct DAVFileTests {
    typealias Town = AssetHandlerTests.Town
    static let large = Bytes((0..<900_000).map { UInt8(truncatingIfNeeded: $0 &* $0 >> 9) })
    static let other = Bytes((0..<700_000).map { UInt8(truncatingIfNeeded: $0 &* 7 >> 3) })

    struct Answer {
        var status: Int
        var headers: HeaderFields
        var body: Bytes
        var text: String { String(decoding: self.body, as: UTF8.self) }
    }

    static func send(
        _ town: Town, _ method: String, _ path: String, _ headers: [(String, String)] = [],
        _ body: any RequestBody = CollectedBody([]), service: String = "dav"
    ) async throws -> Answer {
        town.world.advance(by: .milliseconds(1))
        let root = service == "dav" ? "/dav" : "/documents/1"
        var fields = HeaderFields([HeaderFields.Line(name: "Host", value: "ck.example.org")])
        for (name, value) in headers { fields.set(name, value) }
        let parts = path.split(separator: "?", maxSplits: 1).map(String.init)
        let response = await town.gateway.respond(
            to: HTTPRequest(
                head: RequestHead(
                    method: method,
                    path: "\(root)/\(Town.container.container)/development\(parts[0])",
                    query: "ckAPIToken=\(String(repeating: "a", count: 64))&ckWebAuthToken=t"
                        + (parts.count == 2 ? "&" + parts[1] : ""), headers: fields),
                body: body, peer: "192.0.2.7", identity: town.world.drawIdentity(),
                isSecure: service == "dav"))
        var all: Bytes = []
        switch response.body {
        case .empty: break
        case .bytes(let bytes): all = bytes
        case .stream(let stream, let length):
            while let more = try await stream.next() { all += more }
            #expect(method == "HEAD" || length == nil || length == all.count)
        }
        return Answer(status: response.status, headers: response.headers, body: all)
    }

    static func put(
        _ town: Town, _ path: String, _ bytes: Bytes, _ headers: [(String, String)] = [],
        saysLength: Bool = true
    ) async throws -> Answer {
        try await Self.send(
            town, "PUT", path,
            headers + (saysLength ? [("Content-Length", String(bytes.count))] : []),
            CollectedBody(bytes))
    }

    static func ask(_ town: Town, _ operation: String, _ body: JSON) async throws -> JSON {
        let answer = try await Self.send(
            town, "POST", "/\(operation)", [], CollectedBody(Bytes(body.description.utf8)),
            service: "documents")
        #expect(answer.status == 200, "\(answer.text)")
        return try JSON(parsing: answer.body)
    }

    @Test(arguments: [true, false])
    func `a large file is stored and read in parts`(saysLength: Bool) async throws {
        let town = Town()
        let put = try await Self.put(
            town, "/Documents/film", Self.large, saysLength: saysLength)
        #expect(put.status == 201, "\(put.text)")
        let got = try await Self.send(town, "GET", "/Documents/film")
        #expect(got.status == 200 && got.body == Self.large)
        let tag = try #require(got.headers["ETag"])
        #expect(put.headers["ETag"] == tag)
        #expect(got.headers["Content-Security-Policy"]?.hasPrefix("sandbox") == true)
        let part = try await Self.send(
            town, "GET", "/Documents/film", [("Range", "bytes=300000-300009")])
        #expect(part.status == 206 && part.body == Bytes(Self.large[300_000..<300_010]))
        #expect(part.headers["Content-Range"] == "bytes 300000-300009/900000")
        let beyond = try await Self.send(
            town, "GET", "/Documents/film", [("Range", "bytes=900000-")])
        #expect(beyond.status == 416 && beyond.headers["Content-Range"] == "bytes */900000")
        let known = try await Self.send(
            town, "GET", "/Documents/film", [("If-None-Match", tag)])
        #expect(known.status == 304 && known.body.isEmpty)
        let head = try await Self.send(town, "HEAD", "/Documents/film")
        #expect(head.status == 200 && head.headers["ETag"] == tag)
        let listed = try await Self.send(town, "PROPFIND", "/Documents", [("Depth", "1")])
        #expect(listed.text.contains("900000"))
        #expect(town.buffers.size == 0)
        #expect(town.gateway.kernel.bodies.size == 0)
    }

    @Test func `a large file takes the place of another, a small one its place`() async throws {
        let town = Town()
        #expect(try await Self.put(town, "/Documents/film", Self.large).status == 201)
        #expect(try await Self.put(town, "/Documents/film", Self.other).status == 204)
        #expect(try await Self.send(town, "GET", "/Documents/film").body == Self.other)
        #expect(try await Self.put(town, "/Documents/film", [1, 2]).status == 204)
        #expect(try await Self.send(town, "GET", "/Documents/film").body == [1, 2])
    }

    @Test func `copies and moves take no bytes`() async throws {
        let town = Town()
        #expect(try await Self.send(town, "MKCOL", "/Documents/in").status == 201)
        #expect(try await Self.put(town, "/Documents/in/film", Self.large).status == 201)
        let stored = town.copies.all.withLock { Set($0.keys) }
        func to(_ path: String) -> [(String, String)] {
            [("Destination", "/dav/\(Town.container.container)/development\(path)")]
        }
        #expect(
            try await Self.send(town, "COPY", "/Documents/in", to("/Documents/copy")).status == 201)
        #expect(
            try await Self.send(
                town, "MOVE", "/Documents/in/film", to("/Documents/moved")
            ).status == 201)
        #expect(try await Self.send(town, "DELETE", "/Documents/moved").status == 204)
        #expect(
            try await Self.send(town, "GET", "/Documents/copy/film").body == Self.large)
        #expect(town.copies.all.withLock { Set($0.keys) } == stored)
    }

    @Test func `what cannot be stored is refused before it is read`() async throws {
        let town = Town { _, limits in limits.privateDatabaseSizeMax = ByteCount(1_500_000) }
        let size = [("Content-Length", "900000")]
        func refused(_ path: String, _ headers: [(String, String)], _ status: Int) async throws {
            let answer = try await Self.send(
                town, "PUT", path, headers, AssetHandlerTests.Unread())
            #expect(answer.status == status, "\(path) \(answer.text)")
        }
        try await refused("/Documents/none/film", size, 409)
        try await refused("/Documents", size, 405)
        try await refused("/Documents/film", [("Content-Length", "2000001")], 413)
        try await refused("/Documents/film", size + [("If-Match", "\"x\"")], 412)
        try await refused("/Documents/film", size + [("Content-Range", "bytes 0-1/2")], 400)
        #expect(try await Self.put(town, "/Documents/film", [1]).status == 201)
        try await refused("/Documents/film", size + [("If-None-Match", "*")], 412)
        let lock = try await Self.send(
            town, "LOCK", "/Documents/film", [],
            CollectedBody(
                Bytes(
                    ("<D:lockinfo xmlns:D=\"DAV:\"><D:lockscope><D:exclusive/></D:lockscope>"
                        + "<D:locktype><D:write/></D:locktype></D:lockinfo>").utf8)))
        #expect(lock.status == 200)
        try await refused("/Documents/film", size, 423)
        let token = try #require(lock.headers["Lock-Token"])
        let shown = [("If", "(\(token))")]
        #expect(try await Self.put(town, "/Documents/film", Self.large, shown).status == 204)
        // Beyond the quota.
        let full = try await Self.put(town, "/Documents/more", Self.other)
        #expect(full.status == 507 && full.text.contains("quota-not-exceeded"))
        #expect(try await Self.send(town, "GET", "/Documents/film").body == Self.large)
        // Without a length it is refused where the quota ends.
        let endless = try await Self.send(
            town, "PUT", "/Documents/film", shown, AssetHandlerTests.Pieces(2_000_001))
        #expect(endless.status == 507, "\(endless.text)")
        #expect(town.buffers.size == 0)
    }

    @Test func `the quota is told to who names it, of folders`() async throws {
        func ask(_ town: Town, _ path: String, _ names: String) async throws -> String {
            try await Self.send(
                town, "PROPFIND", path, [("Depth", "0")],
                CollectedBody(
                    Bytes("<D:propfind xmlns:D=\"DAV:\">\(names)</D:propfind>".utf8))
            ).text
        }
        let both = "<D:prop><D:quota-used-bytes/><D:quota-available-bytes/></D:prop>"
        let town = Town { _, limits in limits.privateDatabaseSizeMax = ByteCount(1_500_000) }
        #expect(try await Self.put(town, "/Documents/film", Self.large).status == 201)
        let text = try await ask(town, "/Documents", both)
        func number(_ name: String) throws -> Int {
            let start = try #require(text.firstRange(of: "\(name)"), "\(text)")
            return try #require(
                Int(text[start.upperBound...].drop { $0 != ">" }.dropFirst().prefix { $0 != "<" }),
                "\(text)")
        }
        let used = try number("quota-used-bytes")
        #expect(used > 900_000 && used < 910_000)
        #expect(try number("quota-available-bytes") == 1_500_000 - used)
        #expect(try await ask(town, "/Documents/film", both).contains("404 Not Found"))
        #expect(!(try await ask(town, "/Documents", "<D:allprop/>").contains("quota")))
        let more = "<D:allprop/><D:include><D:quota-used-bytes/></D:include>"
        #expect(try await ask(town, "/Documents", more).contains(">\(used)<"))
        // Without a quota nothing says how much may come.
        let free = try await ask(Town(), "/Documents", both)
        #expect(free.contains("quota-used-bytes") && free.contains("404 Not Found"))
    }

    /// The client goes away in the middle.
    private final class Broken: RequestBody {
        private let left = Mutex(60)
        func next() async throws(RequestBodyError) -> Bytes? {
            let isOver = self.left.withLock { left in
                left -= 1
                return left < 0
            }
            if isOver { throw .cutShort }
            return Bytes(repeating: 9, count: 10_000)
        }
    }

    @Test func `a transfer that breaks off leaves the old content whole`() async throws {
        let town = Town()
        #expect(try await Self.put(town, "/Documents/film", Self.large).status == 201)
        for headers in [[], [("Content-Length", "900000")]] {
            let cut = try await Self.send(town, "PUT", "/Documents/film", headers, Broken())
            #expect(cut.status == 400, "\(cut.text)")
        }
        #expect(try await Self.send(town, "GET", "/Documents/film").body == Self.large)
        #expect(town.buffers.size == 0)
    }

    /// Sends its bytes once something else has happened.
    private final class Late: RequestBody {
        private let body: CollectedBody
        private let before: @Sendable () async -> Void
        init(_ bytes: Bytes, _ before: @escaping @Sendable () async -> Void) {
            self.body = CollectedBody(bytes)
            self.before = before
        }
        func next() async throws(RequestBodyError) -> Bytes? {
            await self.before()
            return try await self.body.next()
        }
    }

    /// Such a request may replace what it found, and nothing that nobody has seen yet.
    @Test func `a PUT without a condition keeps what came while its bytes were sent`() async throws
    {
        let town = Town()
        #expect(try await Self.put(town, "/Documents/film", Self.large).status == 201)
        let length = [("Content-Length", "700000")]
        func race(
            _ path: String, _ headers: [(String, String)], _ bytes: Bytes
        ) async throws -> Answer {
            let isOver = AssetHandlerTests.Switch()
            return try await Self.send(
                town, "PUT", path, length + headers,
                Late(Self.other) {
                    let isFirst = isOver.isOn.withLock { isOn in
                        defer { isOn = false }
                        return isOn
                    }
                    guard isFirst else { return }
                    _ = try? await Self.put(town, path, bytes)
                    town.world.advance(by: .milliseconds(5))
                })
        }
        for (path, bytes) in [("/Documents/film", [1, 2, 3] as Bytes), ("/Documents/new", [4])] {
            let answer = try await race(path, [], bytes)
            #expect(answer.status == 204, "\(path) \(answer.text)")
            #expect(try await Self.send(town, "GET", path).body == Self.other)
            let items = try await Self.ask(
                town, "items/lookup", ["items": [["path": .string(path)]]])["items"]
            let id = try #require(items[0]["id"].text)
            #expect(items[0]["conflicts"].integer == 1)
            let versions = try await Self.ask(town, "versions/list", ["id": .string(id)])
            #expect(versions["versions"][1]["size"].integer == Int64(bytes.count), "\(versions)")
        }
        // With a condition it is refused.
        let tag = try #require(
            try await Self.send(town, "GET", "/Documents/new").headers["ETag"])
        #expect(try await race("/Documents/new", [("If-Match", tag)], [9]).status == 412)
        // Conditions that both contents meet save nobody else's.
        let weak = [
            ("If", "(Not <DAV:no-lock>)"), ("If-None-Match", "\"other\""),
            ("If-Unmodified-Since", "soon"),
        ]
        for (number, condition) in weak.enumerated() {
            let path = "/Documents/weak\(number)"
            #expect(try await Self.put(town, path, Self.large).status == 201)
            let answer = try await race(path, [condition], [UInt8(number)])
            #expect(answer.status == 412, "\(condition)")
            #expect(try await Self.send(town, "GET", path).body == [UInt8(number)])
        }
    }

    @Test func `in JSON a file goes up, is saved with its receipt, and comes down`() async throws {
        let town = Town()
        let url = try #require(try await Self.ask(town, "content/upload", [:])["url"].text)
        let uploaded = try await town.upload(Self.large, to: url)
        let now = JSON.number("\(town.world.wallMilliseconds)")
        let made = try await Self.ask(
            town, "items/modify",
            [
                "device": "mac", "now": now,
                "operations": [
                    [
                        "operation": "create", "name": "film", "path": "Documents",
                        "asset": uploaded,
                    ]
                ],
            ])["items"].elements[0]
        let id = try #require(made["id"].text, "\(made)")
        #expect(made["size"].integer == 900_000)
        let whole = try await Self.send(town, "GET", "/content/\(id)", service: "documents")
        #expect(whole.body == Self.large)
        let tag = try #require(whole.headers["ETag"])
        #expect(tag == "\"\(made["contentTag"].text ?? "")\"")
        let part = try await Self.send(
            town, "GET", "/content/\(id)", [("Range", "bytes=-5")], service: "documents")
        #expect(part.status == 206 && part.body == Bytes(Self.large.suffix(5)))
        let known = try await Self.send(
            town, "GET", "/content/\(id)", [("If-None-Match", tag)], service: "documents")
        #expect(known.status == 304)
        let far = try await Self.send(
            town, "GET", "/content/\(id)", [("Range", "bytes=900000-")], service: "documents")
        #expect(far.status == 416)
        let link = try await Self.ask(town, "content/download", ["id": .string(id)])
        #expect(link["size"].integer == 900_000 && link["contentTag"] == made["contentTag"])
        let down = try await town.send("GET", try #require(link["downloadURL"].text))
        #expect(down.body == Self.large)

        // A save in conflict keeps both.
        let second = try await town.upload(
            Self.other,
            to: try #require(try await Self.ask(town, "content/upload", [:])["url"].text))
        let saved = try await Self.ask(
            town, "items/modify",
            [
                "device": "phone", "now": now,
                "operations": [["operation": "save", "id": .string(id), "asset": second]],
            ])["items"].elements[0]
        #expect(saved["conflicts"].integer == 1, "\(saved)")
        let versions = try await Self.ask(town, "versions/list", ["id": .string(id)])["versions"]
        var sizes: Set<Int> = []
        for version in versions.elements {
            let tag = version["contentTag"].text ?? ""
            let got = try await Self.send(
                town, "GET", "/content/\(id)?version=\(tag)", service: "documents")
            sizes.insert(got.body.count)
        }
        #expect(sizes == [900_000, 700_000])

        // Without a receipt nothing says which file is meant; one of another database is none.
        let checksum = uploaded["fileChecksum"] ?? nil
        let size = uploaded["size"] ?? nil
        let unknown: [(JSON, String)] = [
            (["fileChecksum": checksum, "size": size], "receipt"),
            (["fileChecksum": checksum, "size": size, "receipt": "AAAA"], "asset"),
        ]
        for (asset, code) in unknown {
            let body: JSON = [
                "device": "mac", "now": now,
                "operations": [["operation": "save", "id": .string(id), "asset": asset]],
            ]
            let refused = try await Self.send(
                town, "POST", "/items/modify", [],
                CollectedBody(Bytes(body.description.utf8)), service: "documents")
            #expect(refused.status == 400 && refused.text.contains(code), "\(refused.text)")
        }
        let small = try await Self.ask(
            town, "items/modify",
            [
                "device": "mac", "now": now,
                "operations": [
                    ["operation": "create", "name": "s", "path": "Documents", "content": "AQI="]
                ],
            ])["items"].elements[0]
        let inline = try await Self.ask(
            town, "content/download", ["id": .string(small["id"].text ?? "")])
        #expect(inline["content"].text == "AQI=")
    }
}
