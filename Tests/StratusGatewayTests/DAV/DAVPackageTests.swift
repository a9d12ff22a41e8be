import StratusDoubles
import StratusHTTP
import StratusModel
import StratusRecords
import StratusRuntime
import Synchronization
import Testing

@testable import StratusGateway
@testable import WireScenarios

/// Packages over the wire: one item in JSON, a folder to WebDAV.
@Suite struct DAVPackageTests {
    typealias Town = AssetHandlerTests.Town

    private static func send(
        _ town: Town, _ method: String, _ path: String, _ headers: [(String, String)] = [],
        _ body: String = ""
    ) async throws -> DAVFileTests.Answer {
        try await DAVFileTests.send(
            town, method, path, headers, CollectedBody(Bytes(body.utf8)))
    }

    private static func to(_ path: String, _ more: (String, String)...) -> [(String, String)] {
        [("Destination", "/dav/\(Town.container.container)/development\(path)")] + more
    }

    private static func value(_ json: JSON?) -> JSON { json ?? .null }

    private static func modify(_ town: Town, _ operations: JSON...) async throws -> [JSON] {
        try await DAVFileTests.ask(
            town, "items/modify",
            [
                "device": "mac", "now": .number("\(town.world.wallMilliseconds)"),
                "operations": .array(operations),
            ])["items"].elements
    }

    /// A package with the files `a.txt` and `in/film`.
    private static func package(_ town: Town) async throws -> JSON {
        try await Self.modify(
            town,
            [
                "operation": "create", "kind": "package", "name": "p", "path": "Documents",
                "files": [
                    ["path": "a.txt", "content": "AP8="],
                    ["path": "in/film", "content": "AQID"],
                ],
            ])[0]
    }

    @Test func `in JSON a package is saved whole, and what is there is named again`() async throws {
        let town = Town()
        let url = try await DAVFileTests.ask(town, "content/upload", [:])["url"].text ?? ""
        let item = try await Self.package(town)
        #expect(item["kind"].text == "package" && item["size"].integer == 5)
        let id = item["id"].text ?? ""
        let got = try await DAVFileTests.ask(town, "content/download", ["id": .string(id)])
        #expect(got["files"].elements.map { $0["path"].text } == ["a.txt", "in", "in/film"])
        #expect(got["files"].elements[0]["content"].text == "AP8=")
        #expect(got["files"].elements[1]["kind"].text == "folder")
        let one = try await DAVFileTests.send(
            town, "GET", "/content/\(id)?path=in/film", service: "documents")
        #expect(one.status == 200 && one.body == [1, 2, 3])
        #expect(one.headers["Content-Security-Policy"]?.hasPrefix("sandbox") == true)
        for path in ["", "?path=in", "?path=none"] {
            let answer = try await DAVFileTests.send(
                town, "GET", "/content/\(id)\(path)", service: "documents")
            #expect([400, 404].contains(answer.status), "\(path) \(answer.text)")
        }
        #expect(!url.isEmpty)
        // A file that no content of the package has.
        let refused = try await Self.modify(
            town,
            [
                "operation": "save", "id": .string(id), "basedOn": Self.value(item["contentTag"]),
                "files": [["path": "x", "asset": ["fileChecksum": "none", "size": 3]]],
            ])[0]
        #expect(refused["serverErrorCode"].text == "BAD_REQUEST")
        let folder = try await Self.modify(
            town, ["operation": "convert", "id": .string(id), "kind": "folder"])[0]
        #expect(folder["kind"].text == "folder")
        let again = try await Self.modify(
            town, ["operation": "convert", "id": .string(id), "kind": "package"])[0]
        #expect(again["kind"].text == "package" && again["size"].integer == 5)
    }

    @Test func `to WebDAV a package is a folder that changes as one`() async throws {
        let town = Town()
        _ = try await Self.package(town)
        let listed = try await Self.send(town, "PROPFIND", "/Documents/p", [("Depth", "1")])
        #expect(listed.status == 207)
        #expect(listed.text.contains("/Documents/p/a.txt</D:href>"))
        #expect(listed.text.contains("/Documents/p/in/</D:href>"))
        #expect(!listed.text.contains("film"))
        #expect(
            try await Self.send(town, "PROPFIND", "/Documents/p/in", [("Depth", "1")]).text
                .contains("/Documents/p/in/film</D:href>"))
        #expect(
            try await Self.send(town, "GET", "/Documents/p").text.contains("a.txt</a> <span>2 "))
        let film = try await Self.send(town, "GET", "/Documents/p/in/film")
        #expect(film.status == 200 && film.body == [1, 2, 3])
        let tag = try #require(film.headers["ETag"])
        let part = try await Self.send(
            town, "GET", "/Documents/p/in/film", [("Range", "bytes=1-")])
        #expect(part.status == 206 && part.body == [2, 3])

        let put = try await Self.send(town, "PUT", "/Documents/p/a.txt", [], "new")
        #expect(put.status == 204)
        #expect(
            try await Self.send(town, "GET", "/Documents/p/a.txt").headers["ETag"]
                == put.headers["ETag"])
        // Another file's tag stays, so a condition on it holds.
        let kept = try await Self.send(
            town, "PUT", "/Documents/p/in/film", [("If-Match", tag)], "film")
        #expect(kept.status == 204)
        #expect(
            try await Self.send(town, "PUT", "/Documents/p/in/film", [("If-Match", tag)], "x")
                .status == 412)
        #expect(
            try await Self.send(
                town, "PUT", "/Documents/p/in/film", [("If-None-Match", "*")], "x"
            ).status == 412)
        #expect(try await Self.send(town, "PUT", "/Documents/p/no/x", [], "x").status == 409)
        #expect(try await Self.send(town, "PUT", "/Documents/p/in", [], "x").status == 405)
        #expect(try await Self.send(town, "PUT", "/Documents/p", [], "x").status == 405)
        #expect(try await Self.send(town, "PUT", "/Documents/p/x.nosync", [], "x").status == 403)
        #expect(try await Self.send(town, "MKCOL", "/Documents/p/new").status == 201)
        #expect(try await Self.send(town, "MKCOL", "/Documents/p/new").status == 405)
        #expect(try await Self.send(town, "PUT", "/Documents/p/new/b", [], "b").status == 201)
        #expect(try await Self.send(town, "DELETE", "/Documents/p/none").status == 404)
        #expect(try await Self.send(town, "DELETE", "/Documents/p/new").status == 204)
        #expect(try await Self.send(town, "GET", "/Documents/p/new/b").status == 404)
        #expect(
            try await Self.send(
                town, "PROPPATCH", "/Documents/p/a.txt", [],
                "<propertyupdate xmlns='DAV:'><set><prop/></set></propertyupdate>"
            ).status == 403)
        // The whole of it is one item, whatever is in it.
        #expect(
            try await Self.send(town, "MOVE", "/Documents/p", Self.to("/Documents/q")).status
                == 201)
        #expect(try await Self.send(town, "GET", "/Documents/q/a.txt").text == "new")
        #expect(
            try await Self.send(town, "COPY", "/Documents/q", Self.to("/Documents/r")).status
                == 201)
        #expect(try await Self.send(town, "DELETE", "/Documents/q").status == 204)
        #expect(try await Self.send(town, "GET", "/Documents/r/in/film").text == "film")
    }

    @Test func `files move within a package, into it and out of it`() async throws {
        let town = Town()
        _ = try await Self.package(town)
        func status(_ method: String, _ path: String, _ headers: [(String, String)]) async throws
            -> Int
        {
            try await Self.send(town, method, path, headers).status
        }
        // As editors save: beside it, then over it.
        #expect(try await Self.send(town, "PUT", "/Documents/p/a~", [], "saved").status == 201)
        #expect(
            try await status(
                "MOVE", "/Documents/p/a~", Self.to("/Documents/p/a.txt", ("Overwrite", "F")))
                == 412)
        #expect(try await status("MOVE", "/Documents/p/a~", Self.to("/Documents/p/a.txt")) == 204)
        #expect(try await Self.send(town, "GET", "/Documents/p/a.txt").text == "saved")
        #expect(try await Self.send(town, "GET", "/Documents/p/a~").status == 404)
        #expect(try await status("COPY", "/Documents/p/in", Self.to("/Documents/p/two")) == 201)
        #expect(try await Self.send(town, "GET", "/Documents/p/two/film").body == [1, 2, 3])
        #expect(try await status("MOVE", "/Documents/p/in", Self.to("/Documents/p/in/x")) == 403)
        #expect(try await status("MOVE", "/Documents/p/in/film", Self.to("/Documents/p/in")) == 403)
        #expect(
            try await status("MOVE", "/Documents/p/a.txt", Self.to("/Documents/p/A.txt")) == 204)

        #expect(try await status("MOVE", "/Documents/p/A.txt", Self.to("/Documents/out")) == 201)
        #expect(try await Self.send(town, "GET", "/Documents/out").text == "saved")
        #expect(try await Self.send(town, "GET", "/Documents/p/A.txt").status == 404)
        #expect(try await status("COPY", "/Documents/out", Self.to("/Documents/p/back")) == 201)
        #expect(try await Self.send(town, "GET", "/Documents/p/back").text == "saved")
        #expect(try await status("MOVE", "/Documents/p/in", Self.to("/Documents/folder")) == 403)
        #expect(try await status("MOVE", "/Documents/p/no", Self.to("/Documents/x")) == 404)
        #expect(try await status("COPY", "/Documents/out", Self.to("/Documents/p/no/x")) == 409)
    }

    @Test func `larger files of a package are assets`() async throws {
        let town = Town()
        _ = try await Self.package(town)
        let bytes = Bytes((0..<40_000).map { UInt8(truncatingIfNeeded: $0 &* 31 >> 3) })
        #expect(try await DAVFileTests.put(town, "/Documents/p/middle", bytes).status == 201)
        #expect(
            try await DAVFileTests.put(town, "/Documents/p/large", DAVFileTests.large).status == 201
        )
        let stored = town.copies.all.withLock { $0.count }
        #expect(stored > 0)
        #expect(try await Self.send(town, "GET", "/Documents/p/middle").body == bytes)
        #expect(try await Self.send(town, "GET", "/Documents/p/large").body == DAVFileTests.large)
        #expect(
            try await Self.send(town, "MOVE", "/Documents/p/large", Self.to("/Documents/large"))
                .status == 201)
        #expect(try await Self.send(town, "GET", "/Documents/large").body == DAVFileTests.large)
        #expect(town.copies.all.withLock { $0.count } == stored)
        // What is there already is named by its checksum, without another upload.
        let item = try await DAVFileTests.ask(
            town, "items/lookup", ["items": [["path": "Documents/p"]]])["items"].elements[0]
        let got = try await DAVFileTests.ask(
            town, "content/download", ["id": Self.value(item["id"])])
        let middle = try #require(
            got["files"].elements.first { $0["path"].text == "middle" })
        let saved = try await Self.modify(
            town,
            [
                "operation": "save", "id": Self.value(item["id"]),
                "basedOn": Self.value(item["contentTag"]),
                "files": [
                    [
                        "path": "only",
                        "asset": [
                            "fileChecksum": Self.value(middle["fileChecksum"]),
                            "size": Self.value(middle["size"]),
                        ],
                    ]
                ],
            ])[0]
        #expect(saved["size"].integer == 40_000, "\(saved)")
        #expect(try await Self.send(town, "GET", "/Documents/p/only").body == bytes)
        #expect(try await Self.send(town, "GET", "/Documents/p/middle").status == 404)
    }

    @Test func `a lock within a package is a lock of the package`() async throws {
        let town = Town()
        _ = try await Self.package(town)
        let info =
            "<lockinfo xmlns='DAV:'><lockscope><exclusive/></lockscope><locktype><write/></locktype>"
            + "</lockinfo>"
        let lock = try await Self.send(
            town, "LOCK", "/Documents/p/a.txt", [("Depth", "0")], info)
        #expect(lock.status == 200)
        #expect(
            lock.text.contains("/Documents/p/</D:href>") || lock.text.contains("/Documents/p/<"))
        let token = try #require(lock.headers["Lock-Token"])
        #expect(try await Self.send(town, "PUT", "/Documents/p/in/film", [], "x").status == 423)
        #expect(try await Self.send(town, "DELETE", "/Documents/p").status == 423)
        #expect(
            try await Self.send(
                town, "PUT", "/Documents/p/a.txt", [("If", "(\(token))")], "x"
            ).status == 204)
        #expect(
            try await Self.send(town, "UNLOCK", "/Documents/p/a.txt", [("Lock-Token", token)])
                .status == 204)
        let made = try await Self.send(town, "LOCK", "/Documents/p/made", [], info)
        #expect(made.status == 201)
        #expect(try await Self.send(town, "GET", "/Documents/p/made").status == 200)
    }

    @Test func `an upload that would be refused for its versions is refused before it`()
        async throws
    {
        let town = Town()
        let file = try await Self.modify(
            town,
            ["operation": "create", "name": "f", "path": "Documents", "content": "AA=="])[0]
        for number in 0..<16 {
            let saved = try await Self.modify(
                town,
                [
                    "operation": "save", "id": Self.value(file["id"]), "basedOn": "zzz",
                    "content": .string(Base64.encode([UInt8(number + 1)])),
                ])[0]
            #expect(saved["conflicts"].integer == Int64(number + 1), "\(saved)")
        }
        func upload(_ body: JSON) async throws -> (Int, String) {
            let answer = try await DAVFileTests.send(
                town, "POST", "/content/upload", [],
                CollectedBody(Bytes(body.description.utf8)), service: "documents")
            return (answer.status, answer.text)
        }
        let now = try await DAVFileTests.ask(
            town, "items/lookup", ["items": [["id": Self.value(file["id"])]]])["items"].elements[0]
        let stale = try await upload(["id": Self.value(file["id"]), "basedOn": "zzz"])
        #expect(stale.0 == 409 && stale.1.contains("CONFLICT"), "\(stale)")
        #expect(try await upload(["id": Self.value(file["id"])]).0 == 409)
        #expect(
            try await upload([
                "id": Self.value(file["id"]), "basedOn": Self.value(now["contentTag"]),
            ]).0 == 200)
        #expect(try await upload(["id": "documents"]).0 == 400)
        #expect(try await upload(["id": .string(DocumentBenchID.none)]).0 == 404)
        #expect(try await upload([:]).0 == 200)
    }

    @Test func `a PUT that would have to wait beside sixteen others leaves no bytes`() async throws
    {
        let town = Town()
        #expect(try await DAVFileTests.put(town, "/Documents/f", [0]).status == 201)
        let file = try await DAVFileTests.ask(
            town, "items/lookup", ["items": [["path": "Documents/f"]]])["items"].elements[0]
        func save(_ number: Int) async throws {
            _ = try await Self.modify(
                town,
                [
                    "operation": "save", "id": Self.value(file["id"]), "basedOn": "zzz",
                    "content": .string(Base64.encode([UInt8(number + 1)])),
                ])
        }
        for number in 0..<16 { try await save(number) }
        // The current content changes while the body comes, and so it is no conflict for the other.
        let id = Self.value(file["id"])
        let body = HookedBody(DAVFileTests.large) {
            guard
                let now = try? await DAVFileTests.ask(
                    town, "items/lookup", ["items": [["id": id]]])["items"].elements.first
            else { return }
            _ = try? await Self.modify(
                town,
                [
                    "operation": "save", "id": id, "basedOn": Self.value(now["contentTag"]),
                    "content": "//8=",
                ])
        }
        let answer = try await DAVFileTests.send(
            town, "PUT", "/Documents/f", [("Content-Length", "900000")], body)
        #expect(answer.status == 409, "\(answer.text)")
        #expect(town.copies.all.withLock { $0.isEmpty })
    }
}

private enum DocumentBenchID {
    static let none = String(repeating: "e", count: 32)
}

/// A body during which something else happens.
private actor HookedBody: RequestBody {
    private var rest: [Bytes]
    private let hook: @Sendable () async -> Void

    init(_ bytes: Bytes, hook: @escaping @Sendable () async -> Void) {
        let half = bytes.count / 2
        self.rest = [Bytes(bytes[..<half]), Bytes(bytes[half...])]
        self.hook = hook
    }

    func next() async throws(RequestBodyError) -> Bytes? {
        guard !self.rest.isEmpty else { return nil }
        let first = self.rest.removeFirst()
        if self.rest.isEmpty { await self.hook() }
        return first
    }
}
