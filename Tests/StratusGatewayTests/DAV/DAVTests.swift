import StratusDoubles
import StratusHTTP
import StratusIdentity
import StratusModel
import StratusRuntime
import Testing

@testable import StratusGateway
@testable import WireScenarios

/// What WebDAV answers, beside what `litmus` checks in stage 73.
@Suite struct DAVTests {
    @Test func `a file is stored, read in ranges and under conditions`() async throws {
        let (dav, _) = try await DAVClient.make()
        #expect(try await dav.status("PUT", "/Documents/a%20b.txt", body: "0123456789") == 201)
        let got = try await dav.send("GET", "/Documents/A%20B.TXT")
        #expect(got.status == 200 && got.text == "0123456789")
        let tag = try #require(got.headers["ETag"])
        let part = try await dav.send("GET", "/Documents/a%20b.txt", [("Range", "bytes=2-4")])
        #expect(part.status == 206 && part.text == "234")
        #expect(part.headers["Content-Range"] == "bytes 2-4/10")
        let stale = try await dav.send(
            "GET", "/Documents/a%20b.txt", [("Range", "bytes=2-4"), ("If-Range", "\"x\"")])
        #expect(stale.status == 200 && stale.text == "0123456789")
        #expect(
            try await dav.status("GET", "/Documents/a%20b.txt", [("Range", "bytes=10-")]) == 416)
        #expect(
            try await dav.status("GET", "/Documents/a%20b.txt", [("If-None-Match", tag)]) == 304)
        let put = { (headers: [(String, String)]) in
            try await dav.status("PUT", "/Documents/a%20b.txt", headers, body: "new")
        }
        #expect(try await put([("If-None-Match", "*")]) == 412)
        #expect(try await put([("If-Match", "\"x\"")]) == 412)
        #expect(try await put([("Content-Range", "bytes 0-2/3")]) == 400)
        #expect(try await put([("If-Match", tag)]) == 204)
        #expect(try await put([("If-Match", tag)]) == 412)
        #expect(try await dav.send("GET", "/Documents/a%20b.txt").text == "new")
        #expect(try await dav.status("PUT", "/Documents/none/a", body: "x") == 409)
        #expect(try await dav.status("PUT", "/Documents/", body: "x") == 405)
        #expect(try await dav.status("PUT", "/Documents/x.nosync", body: "x") == 403)
        let large = try await dav.send(
            "PUT", "/Documents/large", bytes: Bytes(repeating: 7, count: (512 << 10) + 1))
        #expect(large.status == 413)
        #expect(try await dav.status("GET", "/Documents/large") == 404)
        let mtime = try await dav.send(
            "PUT", "/Documents/old", [("X-OC-Mtime", "1000000000")], body: "x")
        #expect(mtime.status == 201 && mtime.headers["X-OC-Mtime"] == "accepted")
        #expect(
            try await dav.send("GET", "/Documents/old").headers["Last-Modified"]
                == "Sun, 09 Sep 2001 01:46:40 GMT")
    }

    @Test func `what people store cannot act as a page of this origin`() async throws {
        let (dav, _) = try await DAVClient.make()
        let script = "<script>alert(1)</script>"
        let name = "%3Cscript%3Ex&amp;.html"
        #expect(try await dav.status("PUT", "/Documents/\(name)", body: script) == 201)
        let file = try await dav.send("GET", "/Documents/\(name)", [("Origin", "https://evil")])
        #expect(file.text == script)
        #expect(file.headers["Content-Security-Policy"]?.hasPrefix("sandbox") == true)
        #expect(file.headers["X-Content-Type-Options"] == "nosniff")
        #expect(file.headers["Content-Disposition"] == "attachment")
        #expect(file.headers["Content-Type"] == "application/octet-stream")
        #expect(file.headers["Cross-Origin-Resource-Policy"] == "same-origin")
        #expect(file.headers["Access-Control-Allow-Origin"] == nil)
        let page = try await dav.send("GET", "/Documents")
        #expect(page.headers["Content-Security-Policy"]?.hasPrefix("default-src 'none'") == true)
        #expect(page.text.contains("&lt;script&gt;x&amp;amp;.html"), "\(page)")
        #expect(!page.text.contains("<script>"))
        #expect(page.text.contains("/Documents/%3Cscript%3Ex%26amp%3B.html"))
        #expect(try await dav.status("POST", "/Documents/\(name)", body: script) == 405)
        let preflight = try await dav.send("OPTIONS", "/Documents", [("Origin", "https://evil")])
        #expect(preflight.headers["Access-Control-Allow-Origin"] == nil)
    }

    // MARK: Who

    @Test func `app passwords get in as they were made`() async throws {
        let (dav, ann) = try await DAVClient.make()
        #expect(try await dav.status("PUT", "/Documents/a", body: "x") == 201)
        // The folder Documents alone.
        #expect(try await dav.status("PUT", "/b", body: "x") == 403)
        #expect(try await dav.status("MKCOL", "/b") == 403)
        #expect(
            try await dav.status(
                "MOVE", "/Documents/a", [("Destination", dav.path("/a"))]) == 403)
        var all = dav
        all.password = try await dav.makePassword(
            .init(label: "app", showsAll: true), ann)
        #expect(try await all.status("PUT", "/b", body: "x") == 201)
        #expect(try await dav.status("GET", "/b") == 404)
        let root = try await dav.send("PROPFIND", "/", [("Depth", "1")])
        #expect(root.text.contains("/Documents/") && !root.text.contains("development/b<"))
        #expect(try await all.send("PROPFIND", "/", [("Depth", "1")]).text.contains("/b<"))

        var reader = dav
        reader.password = try await dav.makePassword(.init(label: "r", isReadOnly: true), ann)
        #expect(try await reader.status("GET", "/Documents/a") == 200)
        #expect(try await reader.status("PROPFIND", "/Documents", [("Depth", "1")]) == 207)
        for method in DAVSurface.methods.subtracting(DAVSurface.reading).sorted() {
            #expect(try await reader.status(method, "/Documents/a") == 403, "\(method)")
        }
        #expect(try await dav.status("GET", "/Documents/a") == 200)
    }

    @Test func `wrong, revoked and foreign passwords stay out`() async throws {
        let (dav, ann) = try await DAVClient.make()
        let methods = DAVSurface.methods.subtracting(["OPTIONS"]).sorted()
        func refused(_ client: DAVClient, _ why: String) async throws {
            for method in methods {
                let answer = try await client.send(method, "/Documents/a", body: "")
                #expect(answer.status == 401, "\(why) \(method): \(answer)")
                #expect(answer.headers["WWW-Authenticate"]?.hasPrefix("Basic ") == true)
            }
        }
        var other = dav
        other.password = nil
        try await refused(other, "nobody")
        other.password = "secret words"
        try await refused(other, "the account's own password")
        other.password = "sd1_AAAA"
        try await refused(other, "made up")
        let web = try await dav.town.signIn(ann)
        other.password = web
        try await refused(other, "a web-auth token")
        // Of another container, and of another environment.
        other = dav
        other.container = ContainerReference(container: "iCloud.other", environment: .development)
        try await refused(other, "another container")
        other.container = ContainerReference(
            container: Neighbourhood.container.container,
            environment: Neighbourhood.container.environment == .production
                ? .development : .production)
        try await refused(other, "another environment")
        // A password is no web-auth token.
        let api = try await dav.town.apiToken()
        let asToken = try await dav.town.post(
            "private/users/current", api: api, user: dav.password)
        #expect(asToken.status == 421)
        // Two fields could be read in two ways.
        #expect(
            try await dav.send("GET", "/Documents", [("Authorization", "Basic !")]).status == 401)

        let id = try #require(try await dav.town.accounts.appPasswords(of: ann).first?.id)
        #expect(
            try await dav.town.accounts.revokeAppPassword(
                id, of: ann, in: Neighbourhood.container))
        dav.town.world.advance(by: .seconds(2))
        try await refused(dav, "revoked")
    }

    @Test func `a new account password ends app passwords, and so does signing out everywhere`()
        async throws
    {
        let (dav, ann) = try await DAVClient.make()
        #expect(try await dav.status("GET", "/Documents") == 200)
        #expect(try await dav.town.accounts.setPassword(Secret("other words"), of: ann))
        dav.town.world.advance(by: .seconds(2))
        #expect(try await dav.status("GET", "/Documents") == 401)
        var again = dav
        again.password = try await dav.makePassword(.init(label: "x"), ann)
        #expect(try await again.status("GET", "/Documents") == 200)
        #expect(try await dav.town.accounts.closeAllSessions(of: ann))
        dav.town.world.advance(by: .seconds(2))
        #expect(try await again.status("GET", "/Documents") == 401)
    }

    @Test func `wrong passwords count as tries, and TLS is asked for`() async throws {
        var limits = Accounts.Limits()
        limits.triesOfOnePlace = 3
        let town = Neighbourhood(limits: limits)
        _ = try await town.makeContainer()
        let ann = try await town.account("ann@example.org")
        var dav = DAVClient(town: town)
        let password = try await dav.makePassword(.init(label: "x"), ann)
        dav.password = "wrong"
        for _ in 0..<3 { #expect(try await dav.status("GET", "/Documents") == 401) }
        let limited = try await dav.send("GET", "/Documents")
        #expect(limited.status == 429 && limited.headers["Retry-After"] != nil)
        // The right one is none that could have been guessed.
        dav.password = password
        #expect(try await dav.status("GET", "/Documents") == 200)
        dav.isSecure = false
        #expect(try await dav.status("GET", "/Documents") == 403)
        #expect(try await dav.status("OPTIONS", "/Documents") == 200)
    }

    @Test func `tokens of apps work too, and show everything`() async throws {
        let (dav, ann) = try await DAVClient.make()
        let api = try await dav.town.apiToken()
        let user = try await dav.town.signIn(ann)
        var app = dav
        app.password = nil
        let query = "?ckAPIToken=\(api)&ckWebAuthToken=\(user)"
        #expect(try await app.status("PUT", "/data\(query)", body: "x") == 201)
        #expect(try await app.status("GET", "/data\(query)") == 200)
        #expect(try await app.status("GET", "/data?ckAPIToken=\(api)") == 401)
    }

    @Test func `people make, list and revoke app passwords themselves`() async throws {
        let (dav, ann) = try await DAVClient.make()
        let town = dav.town
        let api = try await town.apiToken()
        let user = try await town.signIn(ann)
        func ask(_ body: JSON) async throws -> WireAnswer {
            try await town.post("private/users/appPasswords", body, api: api, user: user)
        }
        let made = try await ask([
            "operation": "create", "label": "phone", "readOnly": true, "everything": true,
        ])
        #expect(made.status == 200, "\(made)")
        let id = try #require(made.json["id"].text)
        var phone = dav
        phone.password = made.json["password"].text
        #expect(try await phone.status("GET", "/") == 200)
        #expect(try await phone.status("MKCOL", "/Documents/x") == 403)
        let listed = try await ask([:]).json["appPasswords"].elements
        #expect(listed.map { $0["label"].text } == ["laptop", "phone"])
        #expect(listed[1]["readOnly"] == true && listed[1]["password"].text == nil)
        #expect(try await ask(["operation": "create", "label": ""]).status == 400)
        #expect(try await ask(["operation": "revoke", "id": "nothing"]).status == 404)
        #expect(try await ask(["operation": "revoke", "id": .string(id)]).status == 200)
        #expect(try await phone.status("GET", "/") == 401)
        #expect(try await dav.status("GET", "/") == 200)
    }

    // MARK: Bad requests

    @Test func `destinations elsewhere and paths of every kind are refused`() async throws {
        let (dav, _) = try await DAVClient.make()
        #expect(try await dav.status("PUT", "/Documents/a", body: "x") == 201)
        #expect(try await dav.status("MKCOL", "/Documents/f/") == 201)
        let home = dav.path("")
        for (destination, status) in [
            (nil, 400), ("https://evil.example.org\(home)/Documents/b", 502), ("b", 502),
            ("//dav.example.org\(home)/Documents/b", 502), ("ftp://dav.example.org\(home)/b", 502),
            ("\(home)/Documents/b?x", 502), ("\(home)/Documents/%2F", 502),
            ("\(home)/Documents/../b", 502), ("\(home)/Documents/%2e%2e/b", 502),
            ("/dav/iCloud.other/development/Documents/b", 403), ("/assets/x", 502),
            ("\(home)/Documents/none/b", 409), ("\(home)/Documents/a", 403),
            ("\(home)/Documents", 403),
        ] as [(String?, Int)] {
            for method in ["COPY", "MOVE"] {
                let answer = try await dav.send(
                    method, "/Documents/a", destination.map { [("Destination", $0)] } ?? [])
                #expect(answer.status == status, "\(method) \(destination ?? "none"): \(answer)")
            }
        }
        #expect(
            try await dav.status(
                "MOVE", "/Documents/f", [("Destination", "\(home)/Documents/f/g")]) == 403)
        #expect(
            try await dav.status(
                "MOVE", "/Documents/a",
                [("Destination", "HTTPS://DAV.example.org\(home)/Documents/A")]) == 201)
        for path in [
            "/Documents/..", "/Documents/.", "/Documents//a", "/Documents/%00", "/Documents/%0a",
            "/Documents/a%2fb", "/Documents/%ff", "/Documents/%",
            "/Documents/\(String(repeating: "x", count: 256))",
            String(repeating: "/f", count: 65),
            "/Documents/\(String(repeating: "%20", count: 2_000))",
        ] {
            for method in ["GET", "PUT", "MKCOL", "DELETE"] {
                let status = try await dav.status(method, path)
                #expect(status == 404, "\(method) \(path): \(status)")
            }
        }
        for path in ["/dav/%00", "/dav/iCloud.x/nowhere/", "/dav/%ff/development/"] {
            #expect(try await dav.send("GET", "", raw: path).status == 404, "\(path)")
        }
        #expect(try await dav.status("DELETE", "/Documents") == 403)
        #expect(try await dav.status("DELETE", "/") == 403)
    }

    @Test func `bodies and fields that are malformed are refused`() async throws {
        let (dav, _) = try await DAVClient.make()
        #expect(try await dav.status("PUT", "/Documents/a", body: "x") == 201)
        let bomb =
            "<?xml version=\"1.0\"?><!DOCTYPE x [<!ENTITY a \"aaaa\"><!ENTITY b \"&a;&a;\">]>"
            + "<D:propfind xmlns:D=\"DAV:\"><D:prop><x>&b;</x></D:prop></D:propfind>"
        let deep = String(repeating: "<a>", count: 40) + String(repeating: "</a>", count: 40)
        for body in [bomb, deep, "<a>", "x", "<D:lockinfo xmlns:D=\"DAV:\"/>"] {
            for method in ["PROPFIND", "PROPPATCH", "LOCK"] {
                let status = try await dav.status(
                    method, "/Documents/a", [("Depth", "0")], body: body)
                #expect(status == 400, "\(method) \(body): \(status)")
            }
        }
        for (headers, status) in [
            ([("If", "x")], 400), ([("If", "(<urn:x>)")], 412), ([("If", "(Not <urn:x>)")], 200),
            ([("If", "<http://evil/x> (Not <urn:x>)")], 200),
            ([("If", "<http://evil/x> ([\"1\"])")], 412),
        ] as [([(String, String)], Int)] {
            #expect(try await dav.status("GET", "/Documents/a", headers) == status, "\(headers)")
        }
        let infinite = try await dav.send("PROPFIND", "/Documents")
        #expect(infinite.status == 403 && infinite.text.contains("propfind-finite-depth"))
        #expect(try await dav.status("PROPFIND", "/Documents", [("Depth", "2")]) == 400)
        #expect(try await dav.status("MKCOL", "/Documents/f", body: "x") == 415)
        #expect(try await dav.status("UNLOCK", "/Documents/a") == 400)
        #expect(
            try await dav.status(
                "UNLOCK", "/Documents/a",
                [("Lock-Token", "<opaquelocktoken:00000000-0000-0000-0000-000000000000>")]) == 409)
        #expect(try await dav.status("LOCK", "/Documents/a") == 412)
    }

    // MARK: Locks and properties

    @Test func `locks hold for apps too, and are shown where they hold`() async throws {
        let (dav, ann) = try await DAVClient.make()
        #expect(try await dav.status("MKCOL", "/Documents/f") == 201)
        let info =
            "<D:lockinfo xmlns:D=\"DAV:\"><D:lockscope><D:exclusive/></D:lockscope>"
            + "<D:locktype><D:write/></D:locktype><D:owner><D:href>ann</D:href></D:owner>"
            + "</D:lockinfo>"
        let locked = try await dav.send(
            "LOCK", "/Documents/f", [("Timeout", "Second-60")], body: info)
        #expect(locked.status == 200, "\(locked)")
        let token = try #require(locked.headers["Lock-Token"])
        #expect(locked.text.contains("Second-60") && locked.text.contains("<D:href>ann</D:href>"))
        #expect(try await dav.status("PUT", "/Documents/f/a", body: "x") == 423)
        // A lock of depth 0 on a folder is none on a name in it that nothing has yet.
        #expect(try await dav.status("MKCOL", "/Documents/g") == 201)
        let flat = try await dav.send("LOCK", "/Documents/g", [("Depth", "0")], body: info)
        let other = try #require(flat.headers["Lock-Token"])
        #expect(
            try await dav.status("PUT", "/Documents/g/a", [("If", "(\(other))")], body: "x") == 412)
        let named = "<\(dav.path("/Documents/g/"))> (\(other))"
        #expect(try await dav.status("PUT", "/Documents/g/a", [("If", named)], body: "x") == 201)
        let tagged = "<\(dav.path("/Documents/f"))> (\(token))"
        #expect(try await dav.status("PUT", "/Documents/f/a", [("If", tagged)], body: "x") == 201)
        #expect(
            try await dav.status("PUT", "/Documents/f/a", [("If", "(\(token))")], body: "y") == 204)
        #expect(
            try await dav.send("PROPFIND", "/Documents/f", [("Depth", "1")]).text.split(
                separator: String(token.dropFirst().dropLast())
            ).count == 3)
        // An app is told to come again.
        let api = try await dav.town.apiToken()
        let user = try await dav.town.signIn(ann)
        let now = dav.town.world.wallMilliseconds
        let answer = try await dav.town.send(
            WireRequest(
                method: "POST",
                target: dav.path("/items/modify").replacing("/dav/", with: "/documents/1/")
                    + "?ckAPIToken=\(api)&ckWebAuthToken=\(user)", headers: [],
                body: Array(
                    #"{"device":"mac","now":\#(now),"operations":[{"operation":"create","name":"z","path":"Documents/f"}]}"#
                        .utf8)))
        #expect(answer.json["items"][0]["serverErrorCode"].text == "TRY_AGAIN_LATER", "\(answer)")
        // After its time it forbids nothing.
        dav.town.world.advance(by: .seconds(61))
        #expect(try await dav.status("PUT", "/Documents/f/b", body: "x") == 201)
    }

    /// One that showed Documents alone could lock the whole store, hour by hour.
    @Test func `the root is locked by those alone who see all of it`() async throws {
        let (dav, ann) = try await DAVClient.make()
        var all = dav
        all.password = try await dav.makePassword(.init(label: "app", showsAll: true), ann)
        let info =
            "<D:lockinfo xmlns:D=\"DAV:\"><D:lockscope><D:exclusive/></D:lockscope>"
            + "<D:locktype><D:write/></D:locktype></D:lockinfo>"
        #expect(try await dav.status("LOCK", "/", body: info) == 403)
        #expect(try await dav.status("PROPFIND", "/", [("Depth", "0")]) == 207)
        let locked = try await all.send("LOCK", "/", body: info)
        #expect(locked.status == 200, "\(locked)")
        let token = try #require(locked.headers["Lock-Token"])
        let seen = try await dav.send("PROPFIND", "/Documents", [("Depth", "0")])
        #expect(!seen.text.contains(token.dropFirst().dropLast()))
        #expect(try await dav.status("UNLOCK", "/Documents", [("Lock-Token", token)]) == 409)
        #expect(try await all.status("UNLOCK", "/", [("Lock-Token", token)]) == 204)
    }

    /// Versions of other devices would have gone with it.
    @Test func `a file whose versions wait is not removed, nor replaced by another`() async throws {
        let (dav, ann) = try await DAVClient.make()
        #expect(try await dav.status("PUT", "/Documents/a", body: "one") == 201)
        #expect(try await dav.status("PUT", "/Documents/b", body: "two") == 201)
        let (api, user) = (try await dav.town.apiToken(), try await dav.town.signIn(ann))
        func ask(_ operation: String, _ body: String) async throws -> WireAnswer {
            try await dav.town.send(
                WireRequest(
                    method: "POST",
                    target: dav.path("/\(operation)").replacing("/dav/", with: "/documents/1/")
                        + "?ckAPIToken=\(api)&ckWebAuthToken=\(user)", headers: [],
                    body: Array(body.utf8)))
        }
        let listed = try await ask("items/list", #"{"path":"Documents"}"#)
        let item = try #require(
            listed.json["items"].elements.first { $0["name"].text == "a" }, "\(listed)")
        let id = try #require(item["id"].text)
        let now = dav.town.world.wallMilliseconds
        #expect(try await dav.status("PUT", "/Documents/a", body: "three") == 204)
        // Older than what stands: it loses, and waits.
        let saved = try await ask(
            "items/modify",
            #"{"device":"mac","now":\#(now),"operations":[{"operation":"save","id":"\#(id)","basedOn":"\#(item["contentTag"].text ?? "")","content":"eA==","at":\#(now - 60_000)}]}"#
        )
        #expect(saved.json["items"][0]["conflicts"].integer == 1, "\(saved)")
        // What this client never saw becomes a file of its own.
        let onto = [("Destination", dav.path("/Documents/a"))]
        #expect(try await dav.status("MOVE", "/Documents/b", onto) == 204)
        #expect(try await dav.send("GET", "/Documents/a").text == "two")
        #expect(try await dav.send("GET", "/Documents/a%202").text == "x")
        #expect(try await dav.status("DELETE", "/Documents/a") == 204)
        #expect(try await dav.send("GET", "/Documents/a%202").text == "x")
    }

    @Test func `dates in conditions are compared as times, in each form of HTTP`() async throws {
        let (dav, _) = try await DAVClient.make()
        #expect(
            try await dav.status(
                "PUT", "/Documents/a", [("X-OC-Mtime", "784111777")], body: "x") == 201)
        for date in [
            "Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT",
            "Sun Nov  6 08:49:37 1994", "Mon, 07 Nov 1994 00:00:00 GMT",
        ] {
            #expect(
                try await dav.status("GET", "/Documents/a", [("If-Modified-Since", date)]) == 304)
            let unchanged = [("If-Unmodified-Since", date)]
            #expect(try await dav.status("GET", "/Documents/a", unchanged) == 200)
        }
        for date in ["Sun, 06 Nov 1994 08:49:36 GMT", "Sunday, 06-Nov-94 08:49:36 GMT"] {
            #expect(
                try await dav.status("GET", "/Documents/a", [("If-Modified-Since", date)]) == 200)
            #expect(
                try await dav.status(
                    "PUT", "/Documents/a", [("If-Unmodified-Since", date)], body: "y") == 412)
        }
        // What is no date is no condition.
        #expect(
            try await dav.status("GET", "/Documents/a", [("If-Unmodified-Since", "soon")]) == 200)
    }

    /// `duplicity` makes every folder of its address that is not found.
    @Test func `what stores are in is there, and shown to nobody`() async throws {
        let (dav, _) = try await DAVClient.make()
        for path in ["/dav/", "/dav/\(dav.container.container)/"] {
            for method in ["PROPFIND", "MKCOL", "GET", "PUT"] {
                #expect(
                    try await dav.send(method, "", raw: path).status == 403, "\(method) \(path)")
            }
        }
        #expect(try await dav.send("GET", "", raw: "/dav/a/b/").status == 404)
    }

    @Test func `more lock tokens than a command takes are refused, not cut`() async throws {
        let (dav, _) = try await DAVClient.make()
        #expect(try await dav.status("PUT", "/Documents/a", body: "x") == 201)
        func lists(_ count: Int) -> String {
            (1...count).map { number in
                let digits = String(number, radix: 16)
                let token =
                    "opaquelocktoken:00000000-0000-0000-0000-"
                    + String(repeating: "0", count: 12 - digits.count) + digits
                return "(Not <\(token)>)"
            }.joined(separator: " ")
        }
        #expect(
            try await dav.status("PUT", "/Documents/a", [("If", lists(64))], body: "y") == 204)
        let refused = try await dav.send(
            "PUT", "/Documents/a", [("If", lists(65))], body: "z")
        #expect(refused.status == 400 && refused.text.contains("64"), "\(refused)")
        #expect(try await dav.send("GET", "/Documents/a").text == "y")
    }

    /// A quarter of a megabyte made an answer of gigabytes.
    @Test func `what a small body asks for stays small`() async throws {
        let (dav, _) = try await DAVClient.make()
        #expect(try await dav.status("PUT", "/Documents/a", body: "x") == 201)
        let long = String(repeating: "n", count: 2_000)
        let longName =
            "<D:propfind xmlns:D=\"DAV:\" xmlns:n=\"\(long)\"><D:prop><n:a/></D:prop></D:propfind>"
        #expect(
            try await dav.status("PROPFIND", "/Documents/a", [("Depth", "0")], body: longName)
                == 400)
        let same = String(repeating: "<D:lockdiscovery/>", count: 5_000)
        let repeated = try await dav.send(
            "PROPFIND", "/Documents/a", [("Depth", "0")],
            body: "<D:propfind xmlns:D=\"DAV:\"><D:prop>\(same)</D:prop></D:propfind>")
        #expect(repeated.status == 207 && repeated.body.count < 1_000, "\(repeated.body.count)")
        let many = String(repeating: "<n:a>x</n:a>", count: 5_000)
        #expect(
            try await dav.status(
                "PROPPATCH", "/Documents/a",
                body: "<D:propertyupdate xmlns:D=\"DAV:\" xmlns:n=\"urn:x\"><D:set><D:prop>"
                    + "\(many)</D:prop></D:set></D:propertyupdate>") == 400)
        // Characters that no document may have are replaced in one.
        #expect(try await dav.status("PUT", "/Documents/a%EF%BF%BF", body: "x") == 201)
        let found = try await dav.send("PROPFIND", "/Documents", [("Depth", "1")])
        #expect(!found.text.unicodeScalars.contains("\u{FFFF}"))
        #expect(found.text.unicodeScalars.contains("\u{FFFD}"))
    }

    @Test func `a folder of many items is listed whole, in pages`() async throws {
        let (dav, _) = try await DAVClient.make()
        for number in 0..<450 {
            #expect(try await dav.status("PUT", "/Documents/\(number)", body: "x") == 201)
        }
        let found = try await dav.send("PROPFIND", "/Documents", [("Depth", "1")])
        var limits = XMLLimits()
        limits.sizeMax = 1 << 20
        limits.elementCountMax = 100_000
        let document = try XMLReader.read(found.body, limits: limits)
        let responses = document.elements
        #expect(responses.count == 451)
        let hrefs = Set(responses.compactMap { $0.element(XMLName("DAV:", "href"))?.text })
        #expect(hrefs.count == 451 && hrefs.contains(dav.path("/Documents/449")))
        let page = try await dav.send("GET", "/Documents")
        #expect(page.text.split(separator: "<li>").count == 452)
        #expect(page.text.contains("449</a> <span>1 byte, 20"), "\(page.text.suffix(400))")
        let policy = try #require(page.headers["Content-Security-Policy"])
        let nonce = try #require(policy.split(separator: "'nonce-").dropFirst().first)
        #expect(page.text.contains("<style nonce=\"\(nonce.prefix { $0 != "'" })\">"))
    }

    @Test(
        arguments: [
            (0, "0 bytes"), (999, "999 bytes"), (1_000, "1.0 kB"), (40_000, "40.0 kB"),
            (123_456, "123 kB"), (2_960_000, "2.9 MB"), (.max, "18446744 TB"),
        ] as [(UInt64, String)])
    func `sizes are told in words that people read`(size: UInt64, text: String) {
        #expect(DAVService.text(ofSize: size) == text)
    }

    @Test func `properties are kept as they were written`() async throws {
        let (dav, _) = try await DAVClient.make()
        #expect(try await dav.status("PUT", "/Documents/a", body: "x") == 201)
        let update =
            "<D:propertyupdate xmlns:D=\"DAV:\" xmlns:Z=\"urn:z\" xml:lang=\"de\"><D:set><D:prop>"
            + "<Z:one a=\"&lt;\">x<b xmlns=\"\"/></Z:one></D:prop></D:set></D:propertyupdate>"
        #expect(try await dav.status("PROPPATCH", "/Documents/a", body: update) == 207)
        let protected = update.replacing("<Z:one", with: "<D:getetag/><Z:one").replacing(
            "x<b", with: "y<b")
        let refused = try await dav.send("PROPPATCH", "/Documents/a", body: protected)
        #expect(refused.text.contains("403") && refused.text.contains("424"))
        let found = try await dav.send(
            "PROPFIND", "/Documents/a", [("Depth", "0")],
            body: "<propfind xmlns=\"DAV:\"><prop><one xmlns=\"urn:z\"/><two/></prop></propfind>")
        let response = try XMLReader.read(found.body).elements[0]
        let parts = response.elements.filter { $0.name.local == "propstat" }
        let one = try #require(parts[0].element(XMLName("DAV:", "prop"))?.elements.first)
        #expect(one.name == XMLName("urn:z", "one") && one.text == "x")
        #expect(one.attributes.map(\.value).sorted() == ["<", "de"])
        #expect(one.elements.first?.name == XMLName("", "b"))
        #expect(parts[1].element(XMLName("DAV:", "status"))?.text == "HTTP/1.1 404 Not Found")
        // Copies have them too.
        #expect(
            try await dav.status(
                "COPY", "/Documents/a", [("Destination", dav.path("/Documents/b"))]) == 201)
        #expect(
            try await dav.send("PROPFIND", "/Documents/b", [("Depth", "0")]).text.contains("urn:z"))
    }
}
