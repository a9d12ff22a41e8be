import StratusAdmin
import StratusAssets
import StratusDoubles
import StratusGateway
import StratusHTTP
import StratusIdentity
import StratusModel
import StratusRecords
import StratusRuntime
import Synchronization
import Testing
import WireScenarios

@testable import StratusContainers

/// Files of exports: what an archive says of them, and the administrators' page that gives them out.
@Suite struct ExportedFilesTests {
    typealias Town = AssetHandlerTests.Town

    private func page(_ files: (any ExportedFiles)?, _ ticket: String, token: String = "x") async
        -> (status: Int, body: Bytes, cut: Bool)
    {
        let handler = AdminHandler(
            control: EncryptionKeyPageTests.NoControl(), health: Health(), metrics: Metrics(),
            log: Log(level: .error, format: .json) { $0.count },
            settings: AdminHandler.Settings(isToken: { $0.reveal() == "x" }),
            directory: Neighbourhood().service.directory, files: files)
        let answer = await handler.respond(
            to: HTTPRequest(
                head: RequestHead(
                    method: "GET", path: "/v1/exports/files/\(ticket)", query: nil,
                    headers: HeaderFields([.init(name: "authorization", value: "Bearer \(token)")])),
                body: CollectedBody([]), peer: "127.0.0.1:9",
                identity: RequestIdentity(high: 1, low: 2)))
        var body = Bytes()
        switch answer.body {
        case .empty: break
        case .bytes(let bytes): body = bytes
        case .stream(let stream, let length):
            do {
                while let more = try await stream.next() { body += more }
                #expect(body.count == length)
            } catch { return (answer.status, body, true) }
        }
        return (answer.status, body, false)
    }

    /// The ticket of the file that a download link is of.
    private func ticket(_ town: Town, _ url: String) throws -> String {
        let text = url.split(separator: "/").dropLast().last.map { String($0) } ?? ""
        let ciphers = AssetCiphers(master: Bytes(repeating: 9, count: 32))
        let link = try DownloadLink(
            text, openedWith: ciphers.links, at: town.world.wallMilliseconds)
        return town.assets.ticket(for: link.asset, in: link.database)
    }

    @Test func `an export's ticket gives the bytes to an administrator, and to nobody else`()
        async throws
    {
        let town = Town()
        _ = try await town.save(
            try await town.upload(AssetHandlerTests.bytes, to: try await town.ticket()))
        let url = try await town.link()
        let ticket = try self.ticket(town, url)
        let found = await self.page(town.assets, ticket)
        #expect(found.status == 200 && found.body == AssetHandlerTests.bytes && !found.cut)
        #expect(town.buffers.size == 0)
        #expect(await self.page(town.assets, ticket, token: "y").status == 401)
        #expect(await self.page(nil, ticket).status == 404)
        // Neither is the other, and clients' listener takes no tickets.
        let link = String(url.split(separator: "/").dropLast().last ?? "")
        #expect(await self.page(town.assets, link).status == 400)
        #expect(await self.page(town.assets, "AAAA").status == 400)
        let download = url.replacing(link, with: ticket)
        #expect(try await town.send("GET", download).status == 403)
        town.world.advance(by: .milliseconds(ExportTicket.lifeMilliseconds))
        let late = await self.page(town.assets, ticket)
        #expect(late.status == 400)
        #expect(String(decoding: late.body, as: UTF8.self).contains("repeat the export"))
    }

    @Test func `an empty file has no chunk to be read`() async throws {
        let town = Town()
        _ = try await town.save(try await town.upload([], to: try await town.ticket()))
        let found = await self.page(town.assets, try self.ticket(town, try await town.link()))
        #expect(found.status == 200 && found.body.isEmpty && !found.cut)
    }

    @Test func `a file that is away, lost or gone is told apart`() async throws {
        let town = Town()
        _ = try await town.save(
            try await town.upload(AssetHandlerTests.bytes, to: try await town.ticket()))
        let ticket = try self.ticket(town, try await town.link())
        town.members.isOn.withLock { $0 = false }
        #expect(await self.page(town.assets, ticket).status == 503)
        town.members.isOn.withLock { $0 = true }
        let kept = town.copies.all.withLock { $0 }
        let last = kept.keys.max()
        town.copies.all.withLock { all in
            all = all.filter { $0.key != last }
        }
        // Found out behind the first chunk: a part is never taken for the whole.
        let cut = await self.page(town.assets, ticket)
        #expect(cut.status == 410 || cut.cut)
        town.copies.all.withLock { $0 = [:] }
        #expect(await self.page(town.assets, ticket).status == 410)
        town.copies.all.withLock { $0 = kept }
        let other = town.assets.ticket(
            for: AssetID(1),
            in: DatabaseID(container: Town.container, scope: .private, owner: "_nobody"))
        #expect(await self.page(town.assets, other).status == 404)
        // The memory of all transfers bounds exports too.
        let shares = (0..<64).compactMap { _ in
            town.buffers.share(
                TransferBuffers.downloadSize, for: PlaceHolder(nil, "administrators"))
        }
        #expect(await self.page(town.assets, ticket).status == 503)
        withExtendedLifetime(shares) {}
        #expect(!shares.isEmpty)
        // Long answers of this listener have no total, as long as their bytes move.
        let handler = AdminHandler(
            control: EncryptionKeyPageTests.NoControl(), health: Health(), metrics: Metrics(),
            log: .silent(), settings: AdminHandler.Settings(isToken: { _ in true }))
        func patience(_ path: String) -> RequestPatience {
            handler.patience(for: RequestHead(method: "GET", path: path, query: nil, headers: [:]))
        }
        #expect(patience("/v1/exports/files/\(ticket)") == .transfer)
        #expect(patience("/v1/users/a%40b.c/export") == .transfer)
        #expect(patience("/v1/users/a%40b.c") == .usual)
    }

    @Test func `an archive names every file of a record by digits that no client chose`() {
        func reference(_ number: UInt128?) -> AssetReference {
            AssetReference(fileChecksum: "sum", size: 3, asset: number.map { AssetID($0) })
        }
        let stamp = ChangeStamp(milliseconds: 1, userRecordName: "_u", deviceID: "")
        let record = Record(
            name: "../r", type: "Book", zone: ZoneID(name: "z", owner: "_u"), tag: ChangeTag(1),
            created: stamp, modified: stamp,
            fields: [
                Field(name: "a", value: .scalar(.asset(reference(0x2F)))),
                Field(name: "b", value: .scalar(.string("x"))),
                Field(
                    name: "c",
                    value: .list(
                        .asset,
                        [.asset(reference(.max)), .asset(reference(nil)), .asset(reference(0x2F))])),
            ])
        let files = ArchivedFile.all(of: record)
        let names = [
            String(repeating: "0", count: 30) + "2f", String(repeating: "f", count: 32),
            String(repeating: "0", count: 30) + "2f",
        ]
        #expect(files.map(\.name) == names)
        #expect(files.map(\.field) == ["a", "c", "c"])
        let town = Town()
        let database = DatabaseID(container: Town.container, scope: .public, owner: "")
        let line = String(decoding: files[0].line(in: database, from: town.assets), as: UTF8.self)
        #expect(
            line.hasPrefix(
                "{\"fetch\":{\"file\":\"\(names[0])\",\"fileChecksum\":\"sum\",\"size\":3,\"ticket\":\""
            ))
        #expect(line.hasSuffix("\"}}\n"))
    }

    @Test func `contents of documents are in an archive, or named in it`() throws {
        let town = Town()
        let database = DatabaseID(container: Town.container, scope: .private, owner: "_u")
        func lines(_ content: DocumentContent, _ files: (any ExportedFiles)?) throws -> [JSON] {
            let archived = ArchivedContent(
                document: "d",
                version: DocumentVersion(
                    contentTag: 36, size: content.size, editedAtMilliseconds: 5, device: "mac"),
                content: content, isCurrent: false)
            return try archived.lines(in: database, from: files).split(separator: 0x0A).map {
                try JSON(parsing: Bytes($0))
            }
        }
        let name = String(repeating: "0", count: 31) + "7"
        let file = DocumentFile(asset: AssetID(7), checksum: "sum", size: 900_000)
        let inline = try lines(.inline([1, 2]), town.assets)
        #expect(inline.count == 1)
        #expect(inline[0]["documentContent"]["content"] == "AQI=")
        #expect(inline[0]["documentContent"]["state"] == "waits")
        #expect(inline[0]["documentContent"]["contentTag"] == "10")
        let named = try lines(.file(file), town.assets)
        #expect(named.count == 2)
        #expect(named[0]["documentContent"]["file"].text == name)
        #expect(named[1]["fetch"]["file"].text == name && named[1]["fetch"]["size"] == 900_000)
        let unnamed = try lines(.file(file), nil)
        #expect(unnamed.count == 1 && unnamed[0]["documentContent"]["file"] == nil)
        #expect(unnamed[0]["documentContent"]["fileChecksum"] == "sum")
        let package = DocumentPackage([
            DocumentPart("a", .folder), DocumentPart("a/b", .file(file)),
            DocumentPart("c", .inline([9])),
        ])
        let parts = try lines(.package(package), town.assets)
        #expect(parts.count == 2 && parts[1]["fetch"]["file"].text == name)
        let listed = parts[0]["documentContent"]["parts"]
        #expect(listed[0]["kind"] == "folder" && listed[1]["file"].text == name)
        #expect(listed[2]["content"] == "CQ==" && listed[2]["path"] == "c")
    }
}
