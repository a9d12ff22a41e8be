import StratusModel
import StratusRows
import Testing

@testable import StratusRecords

/// Published links, rule by rule.
@Suite struct DocumentPublicationTests {
    private var own = DocumentBench()

    private mutating func publish(
        _ number: Int, _ item: String, seconds: Int64 = 60
    ) throws -> DocumentResult {
        try self.own.run(
            .publish(
                DocumentPublication(
                    id: DocumentBench.id(number), item: item,
                    secret: DocumentBench.id(number + 1_000)), milliseconds: seconds * 1_000))[0]
    }

    private mutating func published(
        _ number: Int, _ item: String, seconds: Int64 = 60
    ) throws -> DocumentPublication {
        let result = try self.publish(number, item, seconds: seconds)
        guard case .published(let publication) = result else { throw BenchError("\(result)") }
        return publication
    }

    /// What a link leads to.
    private func content(_ publication: DocumentPublication, secret: String? = nil) throws
        -> (name: String, content: DocumentContent)?
    {
        guard
            case .content(let item, _, let content) = try self.own.ask(
                .published(slot: publication.slot, secret: secret ?? publication.secret))
        else { throw BenchError("no content") }
        return item.map { ($0.name, content) }
    }

    @Test mutating func `a link keeps what was published, under its name`() throws {
        let file = try self.own.file(1, "a.txt", in: "documents", [1])
        let link = try self.published(1, file.id)
        #expect(link.name == "a.txt" && link.size == 1 && link.contentTag == file.contentTag)
        try self.own.run(self.own.save(file.id, [2], basedOn: file.contentTag))
        try self.own.run(.place(id: file.id, name: "b", folder: "root", .refuse, tag: nil))
        let found = try #require(try self.content(link))
        #expect(found.name == "a.txt" && found.content == .inline([1]))
        #expect(try self.content(link, secret: DocumentBench.id(7)) == nil)
        #expect(try self.own.content(file.id) == [2])
        let second = try self.published(2, file.id)
        #expect(second.slot == 1 && second.name == "b")
        #expect(try #require(try self.content(second)).content == .inline([2]))
        // Followers and lists of versions see nothing of them.
        #expect(try self.own.changes().changes.count == 1)
        #expect(try self.own.versions(file.id)?.count == 1)
    }

    @Test mutating func `a link ends with withdrawal, with its file and with a folder above it`()
        throws
    {
        let folder = try self.own.folder(9, "folder")
        let file = try self.own.file(1, "a", in: folder, [1])
        let other = try self.own.file(2, "b", [2])
        let links = [try self.published(1, file.id), try self.published(2, other.id)]
        #expect(try self.own.run(.withdraw(id: links[1].id)) == [.removed(id: links[1].id)])
        #expect(try self.content(links[1]) == nil)
        #expect(try self.own.refusal(.withdraw(id: links[1].id)) == .notFound)
        #expect(try self.content(links[0]) != nil)
        // A place that is free is taken again, and the old link does not open the new one.
        let third = try self.published(3, other.id)
        #expect(third.slot == links[1].slot)
        #expect(try self.content(links[1]) == nil)
        try self.own.run(.remove(id: folder, basedOn: nil))
        #expect(try self.content(links[0]) == nil)
        #expect(try self.own.refusal(.withdraw(id: links[0].id)) == .notFound)
    }

    @Test mutating func `links have bounds, and those that are over make room`() throws {
        let file = try self.own.file(1, "a", [1])
        for number in 1...DocumentPublication.itemCountMax {
            _ = try self.published(number, file.id)
        }
        #expect(try self.publish(20, file.id) == .refused(.tooManyItems, subject: "8"))
        let far = try self.own.file(2, "b", [2])
        let long = try self.published(21, far.id, seconds: 1 << 40)
        #expect(
            long.untilMilliseconds <= self.own.milliseconds + DocumentPublication.spanMilliseconds)
        self.own.milliseconds += 61_000
        #expect(try self.published(22, file.id).slot == 0)
        guard case .publications(let left) = try self.own.ask(.publications) else {
            throw BenchError("no links")
        }
        #expect(left.map(\.id) == [DocumentBench.id(22), DocumentBench.id(21)])
        #expect(
            try self.publish(22, file.id) == .refused(.idInvalid, subject: DocumentBench.id(22)))
        let folder = try self.own.folder(9, "folder")
        guard case .refused(.notAFile, _) = try self.publish(30, folder) else {
            Issue.record("a folder was published")
            return
        }
        self.own.rules.databaseSizeMax = 1
        guard case .refused(.databaseFull, _) = try self.publish(31, file.id) else {
            Issue.record("a link without room")
            return
        }
    }

    @Test mutating func `a file that is published is held until its link ends`() throws {
        try self.own.bench.putKeys()
        let film = try self.own.upload(1)
        let item = try self.own.item(
            .create(
                id: DocumentBench.id(1), .file, name: "film", folder: "root", .refuse,
                content: .file(film), atMilliseconds: 0))
        let link = try self.published(1, item.id, seconds: 3 * 86_400)
        try self.own.run(self.own.save(item.id, [1], basedOn: item.contentTag))
        self.own.milliseconds += 2 * 86_400_000
        try self.own.bench.finishJobs()
        #expect(try #require(try self.content(link)).content == .file(film))
        #expect(try AssetRows.asset(film.asset, over: self.own.bench.rows.view)?.isHeld == true)
        try self.own.run(.withdraw(id: link.id))
        #expect(try AssetRows.asset(film.asset, over: self.own.bench.rows.view)?.isHeld == false)
        // Contents that wait become files, and what is published stays what it is.
        let now = try #require(try self.own.item(item.id))
        _ = try self.published(2, item.id)
        try self.own.run(self.own.save(item.id, [2], basedOn: nil))
        let results = try self.own.run(.separate(id: item.id, first: DocumentBench.id(60)))
        guard case .item(let separated) = results[0] else { throw BenchError("\(results)") }
        #expect(separated.conflicts == 0 && separated.id == now.id)
        #expect(try self.own.list("root")?.count == 3)
    }
}
