import StratusDoubles
import StratusHTTP
import StratusModel
import StratusRecords
import StratusRuntime
import Testing

@testable import StratusGateway
@testable import WireScenarios

/// Documents over the wire, in JSON.
@Suite struct DocumentGatewayTests {
    private struct Device {
        let wire: InProcess
        let caller: Caller
        var name = "mac"

        func send(_ path: String, _ body: JSON? = nil, query: String = "") async throws
            -> WireAnswer
        {
            let target = self.caller.target("private/\(path)", query: query)
                .replacing("/database/1/", with: "/documents/1/").replacing("/private/", with: "/")
            return try await self.wire.send(
                WireRequest(
                    method: body == nil ? "GET" : "POST", target: target, headers: [],
                    body: body.map { Array($0.description.utf8) } ?? []))
        }

        func ask(_ path: String, _ body: JSON) async throws -> JSON {
            let answer = try await self.send(path, body)
            #expect(answer.status == 200, "\(answer)")
            return try JSON(parsing: answer.body)
        }

        func modify(_ operations: JSON..., atomic: Bool = true) async throws -> [JSON] {
            let now = self.wire.world.wallMilliseconds
            let answer = try await self.ask(
                "items/modify",
                [
                    "device": .string(self.name), "now": .number("\(now)"),
                    "atomic": .bool(atomic), "operations": .array(operations),
                ])
            return answer["items"].elements
        }
    }

    private static func device() async throws -> Device {
        let wire = InProcess()
        return Device(
            wire: wire, caller: Caller(wire: wire, container: try await wire.makeContainer()))
    }

    @Test func `packages of one request are split, and refused where it is atomic`() async throws {
        let mac = try await Self.device()
        let files = JSON.array(
            (0..<999).map { ["path": .string("f\($0)"), "content": "AA=="] })
        let operations = (0..<6).map { number -> JSON in
            [
                "operation": "create", "kind": "package", "name": .string("p\(number)"),
                "path": "Documents", "files": files,
            ]
        }
        func body(atomic: Bool) -> JSON {
            [
                "device": "mac", "now": .number("\(mac.wire.world.wallMilliseconds)"),
                "atomic": .bool(atomic), "operations": .array(operations),
            ]
        }
        let refused = try await mac.send("items/modify", body(atomic: true))
        #expect(refused.status == 400, "\(refused)")
        let made = try await mac.ask("items/modify", body(atomic: false))["items"].elements
        #expect(made.compactMap { $0["name"].text } == (0..<6).map { "p\($0)" })
    }

    @Test func `a file is created, listed, read, saved, moved and removed`() async throws {
        let mac = try await Self.device()
        let folder = try await mac.modify([
            "operation": "create", "kind": "folder", "name": "Letters", "path": "Documents",
        ])[0]
        let file = try await mac.modify([
            "operation": "create", "name": "a.txt", "folder": .string(folder["id"].text ?? ""),
            "content": "AP8=",
        ])[0]
        let id = try #require(file["id"].text)
        #expect(file["size"] == 2 && file["kind"] == "file")
        let list = try await mac.ask("items/list", ["path": "documents/LETTERS"])
        #expect(list["items"].elements == [file])
        let found = try await mac.ask(
            "items/lookup",
            ["items": [["path": "Documents/Letters/A.TXT"], ["id": "root"], ["id": "nothing"]]])
        #expect(found["items"][0] == file && found["items"][1]["kind"] == "folder")
        #expect(found["items"][2]["serverErrorCode"].text == "NOT_FOUND")

        let content = try await mac.send("content/\(id)")
        #expect(content.status == 200 && content.body == [0, 255])
        #expect(content.headers.contains { $0 == ("ETag", "\"\(file["contentTag"].text ?? "")\"") })
        // Nothing that people store may act as a page of this origin.
        #expect(
            content.headers.contains {
                $0.0 == "Content-Security-Policy" && $0.1.hasPrefix("sandbox")
            })
        #expect(content.headers.contains { $0 == ("X-Content-Type-Options", "nosniff") })
        expectFailure(try await mac.send("content/nothing"), 404, "NOT_FOUND")
        expectFailure(
            try await mac.send("content/\(id)", query: "version=zz"), 404, "NOT_FOUND")

        let saved = try await mac.modify([
            "operation": "save", "id": .string(id), "content": "AQ==",
            "basedOn": .string(file["contentTag"].text ?? ""),
        ])[0]
        #expect(saved["conflicts"] == nil && saved["contentTag"] != file["contentTag"])
        let moved = try await mac.modify([
            "operation": "place", "id": .string(id), "name": "b.txt", "folder": "documents",
        ])[0]
        #expect(moved["name"] == "b.txt" && moved["folder"] == "documents")
        #expect(
            try await mac.modify(["operation": "remove", "id": .string(id)])[0]["removed"] == true)
        expectFailure(try await mac.send("content/\(id)"), 404, "NOT_FOUND")
    }

    @Test func `two devices in conflict lose nothing, and one settles`() async throws {
        let mac = try await Self.device()
        let phone = Device(wire: mac.wire, caller: mac.caller, name: "phone")
        let first = try await mac.modify([
            "operation": "create", "name": "f", "folder": "root", "content": "AQ==",
        ])[0]
        let id = JSON.string(first["id"].text ?? "")
        let base = JSON.string(first["contentTag"].text ?? "")
        _ = try await mac.modify(
            ["operation": "save", "id": id, "content": "Ag==", "basedOn": base])
        let conflict = try await phone.modify(
            ["operation": "save", "id": id, "content": "Aw==", "basedOn": base])[0]
        #expect(conflict["conflicts"] == 1 && conflict["device"] == "phone")
        let versions = try await mac.ask("versions/list", ["id": id])["versions"].elements
        #expect(versions.map { $0["isCurrent"].bool } == [true, false])
        let losing = try #require(versions[1]["contentTag"].text)
        let kept = try await mac.send(
            "content/\(first["id"].text ?? "")", query: "version=\(losing)")
        #expect(kept.body == [2])
        let settled = try await mac.modify([
            "operation": "settle", "id": id, "current": .string(losing),
            "drop": [.string(versions[0]["contentTag"].text ?? "")],
        ])[0]
        #expect(settled["conflicts"] == nil && settled["contentTag"].text == losing)
    }

    @Test func `what is refused says why, alone or with its request`() async throws {
        let mac = try await Self.device()
        let loose = try await mac.modify(
            ["operation": "create", "name": "a", "folder": "root"],
            ["operation": "create", "name": "A", "folder": "root"],
            ["operation": "create", "name": "x.nosync", "folder": "root"],
            ["operation": "create", "name": "a/b", "folder": "root"],
            ["operation": "create", "name": "c", "folder": "nowhere"],
            ["operation": "place", "id": "documents", "name": "D"],
            ["operation": "create", "name": "a", "folder": "root", "onClash": "rename"],
            atomic: false)
        #expect(loose[0]["awaitsContent"] == true && loose[6]["name"] == "a 2")
        #expect(loose[1]["serverErrorCode"].text == "CONFLICT")
        #expect(loose[2]["serverErrorCode"].text == "BAD_REQUEST")
        #expect(loose[3]["serverErrorCode"].text == "BAD_REQUEST")
        #expect(loose[4]["serverErrorCode"].text == "NOT_FOUND")
        #expect(loose[5]["serverErrorCode"].text == "BAD_REQUEST")
        let whole = try await mac.modify(
            ["operation": "create", "name": "n", "folder": "root"],
            ["operation": "create", "name": "A", "folder": "root"])
        #expect(whole[0]["serverErrorCode"].text == "ATOMIC_ERROR")
        #expect(whole[1]["serverErrorCode"].text == "CONFLICT")
        for body: JSON in [
            [:], ["device": "a b", "now": 1, "operations": []], ["device": "d", "operations": []],
            ["device": "d", "now": 1, "operations": []],
            ["device": "d", "now": 1, "operations": [["operation": "fly"]]],
            ["device": "d", "now": 1, "operations": [["operation": "save", "id": "x"]]],
            [
                "device": "d", "now": 1,
                "operations": [["operation": "remove", "id": "x", "basedOn": "?"]],
            ],
        ] {
            expectFailure(try await mac.send("items/modify", body), 400, "BAD_REQUEST")
        }
    }

    @Test func `a follower hears of everything, and a waiting one at once`() async throws {
        let mac = try await Self.device()
        let first = try await mac.ask("changes", ["device": "phone"])
        #expect(first["isFromStart"] == true && first["changes"].elements.isEmpty)
        let token = JSON.string(first["token"].text ?? "")
        let waiting = Task {
            try await mac.ask("changes", ["device": "phone", "token": token, "wait": 55])
        }
        while mac.wire.handler.kernel.seats.watchCount == 0 {
            try await Task.sleep(for: .milliseconds(1))
        }
        let made = try await mac.modify(
            ["operation": "create", "kind": "folder", "name": "Library", "folder": "root"])[0]
        let heard = try await waiting.value
        #expect(heard["changes"].elements == [made] && heard["isFromStart"] == false)
        let now = JSON.number("\(mac.wire.world.wallMilliseconds)")
        let removed = try await mac.ask("data/remove", ["device": "mac", "now": now])
        #expect(removed["removed"] == 1 && removed["moreComing"] == false)
        let next = try await mac.ask(
            "changes", ["device": "phone", "token": .string(heard["token"].text ?? "")])
        #expect(next["changes"][0]["removed"] == true && next["changes"][0]["id"] == made["id"])
        // Another user has other documents, and no token of theirs fits.
        let bob = Device(wire: mac.wire, caller: mac.caller.acting(as: .other("bob")))
        let theirs = try await bob.ask("changes", ["device": "phone", "token": token])
        #expect(theirs["isFromStart"] == true)
        let answer = try await bob.ask(
            "items/lookup", ["items": [["id": .string(made["id"].text ?? "")]]])
        #expect(answer["items"][0]["serverErrorCode"].text == "NOT_FOUND")
    }
}
