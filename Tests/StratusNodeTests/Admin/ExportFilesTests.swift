import ChildProcesses
import Foundation
import StratusCommandLine
import StratusHTTP
import StratusModel
import StratusProcess
import StratusRuntime
import Synchronization
import Testing

@testable import StratusControl

/// `stratusctl user export --assets`: the archive taken apart, the directory, and what is asked again.
@Suite struct ExportFilesTests {
    static let contents: [(name: String, bytes: Bytes, checksum: String)] = [
        (String(repeating: "0", count: 32), [], "AW2cWT2PxzWixMKuuNMTHJ8CJ3sH"),
        (String(repeating: "a", count: 32), Bytes("hello\n".utf8), "Abv+EeVEGAQ0o5/2szwFFOVX1ICw"),
        (
            String(repeating: "f", count: 32),
            Bytes("The quick brown fox jumps over the lazy dog".utf8),
            "ATE6W0VAGbjhs9B5SmRCwt9Y3yxl"
        ),
    ]

    static func line(_ number: Int, ticket: String? = nil, name: String? = nil) -> Bytes {
        let file = Self.contents[number]
        return JSONWriter.line {
            $0.key("fetch")
            $0.object { fetch in
                fetch.member("file", name ?? file.name)
                fetch.member("fileChecksum", file.checksum)
                fetch.member("size", file.bytes.count)
                fetch.member("ticket", ticket ?? "ticket\(number)")
            }
        }
    }

    static let head = Bytes("{\"format\":\"stratus user archive 1\",\"files\":true}\n".utf8)

    private static func file(_ number: Int) throws -> FileToFetch {
        try #require(FileToFetch(line: Bytes(Self.line(number).dropLast())))
    }

    // MARK: The archive

    @Test func `an archive is taken apart wherever it is cut`() throws {
        let seed = UInt64.random(in: 0...UInt64(Int.max))
        var state = seed
        func draw(_ limit: Int) -> Int {
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return Int(state >> 33) % limit
        }
        let others = ["", "{\"fetch", "{\"fetcher\":1}", "{\"database\":\"private\",\"fetch\":2}"]
        for _ in 0..<200 {
            var (shown, files, text) = (Self.head, [Bytes](), Self.head)
            for _ in 0..<draw(12) {
                if draw(2) == 0 {
                    let line = Self.line(draw(3))
                    files.append(Bytes(line.dropLast()))
                    text += line
                } else {
                    let line = Bytes(
                        (others[draw(4)] + String(repeating: "x", count: draw(90))).utf8)
                    // What begins as a file's line is one.
                    if line.starts(with: Bytes("{\"fetch\":".utf8)) { continue }
                    shown += line + [0x0A]
                    text += line + [0x0A]
                }
            }
            var splitter = ArchiveSplitter()
            var found = ArchiveSplitter.Part()
            var rest = text[...]
            while !rest.isEmpty {
                let piece = rest.prefix(1 + draw(40))
                rest = rest[piece.endIndex...]
                let part = try splitter.add(Bytes(piece))
                found.shown += part.shown
                found.files += part.files
            }
            try splitter.finish()
            #expect(found.shown == shown, "seed \(seed)")
            #expect(found.files == files, "seed \(seed)")
        }
    }

    @Test func `an archive that names no files, or is cut off, is refused`() throws {
        var older = ArchiveSplitter()
        #expect(throws: ArchiveSplitter.Refusal.namesNoFiles) {
            try older.add(Bytes("{\"format\":\"stratus user archive 1\"}\n".utf8))
        }
        for text in ["<html>\n", "{}\n", String(repeating: "x", count: 70_000)] {
            var splitter = ArchiveSplitter()
            #expect(throws: ArchiveSplitter.Refusal.malformed) {
                try splitter.add(Bytes(text.utf8))
            }
        }
        for text in ["{\"a\":1", "{\"fetch\":{\"file\"", "{\"fe"] {
            var splitter = ArchiveSplitter()
            _ = try splitter.add(Self.head + Bytes(text.utf8))
            #expect(throws: ArchiveSplitter.Refusal.malformed) { try splitter.finish() }
        }
        var long = ArchiveSplitter()
        _ = try long.add(Self.head)
        #expect(throws: ArchiveSplitter.Refusal.malformed) {
            try long.add(
                Bytes("{\"fetch\":".utf8)
                    + Bytes(repeating: 0x61, count: ArchiveSplitter.lineSizeMax))
        }
        // Records have no such bound.
        var wide = ArchiveSplitter()
        _ = try wide.add(Self.head)
        #expect(try wide.add(Bytes(repeating: 0x61, count: 3 << 20)).shown.count == 3 << 20)
    }

    @Test func `no name leads out of the directory`() {
        for name in [
            "../../etc/passwd", "/etc/passwd", "", ".", "..", String(repeating: "A", count: 32),
            String(repeating: "a", count: 31), String(repeating: "a", count: 33),
            String(repeating: "a", count: 30) + "/b", String(repeating: "ä", count: 16),
        ] {
            #expect(FileToFetch(line: Bytes(Self.line(1, name: name).dropLast())) == nil, "\(name)")
        }
        for ticket in ["", "a b", "a/../b", "a?b", "ä", String(repeating: "a", count: 5_000)] {
            #expect(FileToFetch(line: Bytes(Self.line(1, ticket: ticket).dropLast())) == nil)
        }
        #expect(FileToFetch(line: Bytes("{}".utf8)) == nil)
        #expect(FileToFetch(line: Bytes(Self.line(1).dropLast()))?.name == Self.contents[1].name)
    }

    @Test func `an export waits five minutes in all, and four tries are all that a file gets`() {
        var patience = FetchPatience()
        #expect(patience.pause(after: 1) == .seconds(1))
        #expect(patience.pause(after: 2) == .seconds(2))
        #expect(patience.pause(after: 3) == .seconds(4))
        #expect(patience.pause(after: 4) == nil)
        var waited = Duration.seconds(7)
        while let pause = patience.pause(after: 3) { waited += pause }
        #expect(waited == .seconds(300))
        #expect(patience.pause(after: 1) == nil)
        #expect(FetchPatience.deadline(for: 1 << 30) == .seconds(60 + (1 << 14)))
    }

    // MARK: The directory

    @Test func `a file is whole or absent, and what is there and sound stays`() throws {
        let temporary = try TemporaryDirectory()
        let path = temporary.path + "/new/files"
        let folder = try ExportFolder(path)
        let file = try Self.file(2)
        let bytes = Self.contents[2].bytes
        #expect(try folder.state(of: file) == .other)
        do {
            let writing = try folder.begin(file)
            #expect(try writing.add(Bytes(bytes.prefix(10))))
            #expect(try writing.finish() != nil)
        }
        #expect(try FileManager.default.contentsOfDirectory(atPath: path).isEmpty)
        do {
            let writing = try folder.begin(file)
            #expect(try writing.add(Bytes(bytes.reversed())))
            #expect(try writing.finish() != nil)
        }
        do {
            let writing = try folder.begin(file)
            #expect(try !writing.add(bytes + bytes))
        }
        #expect(try FileManager.default.contentsOfDirectory(atPath: path).isEmpty)
        do {
            let writing = try folder.begin(file)
            for byte in bytes { #expect(try writing.add([byte])) }
            #expect(try writing.finish() == nil)
        }
        try folder.sync()
        #expect(try folder.state(of: file) == .same)
        #expect(try FileManager.default.contentsOfDirectory(atPath: path) == [file.name])
        for (place, mode) in [(path, 0o700), (path + "/" + file.name, 0o600)] {
            let found = try FileManager.default.attributesOfItem(atPath: place)
            #expect(found[.posixPermissions] as? Int == mode)
        }
        _ = try temporary.write("new/files/" + file.name, bytes.reversed())
        #expect(try folder.state(of: file) == .other)
        _ = try temporary.write("new/files/" + file.name, bytes + [0])
        #expect(try folder.state(of: file) == .other)
    }

    @Test func `a link in the directory is replaced, and where it leads is left alone`() throws {
        let temporary = try TemporaryDirectory()
        let folder = try ExportFolder(temporary.path + "/files")
        let file = try Self.file(1)
        let outside = try temporary.write("outside", "mine")
        for name in [file.name, ".\(file.name).partial"] {
            try FileManager.default.createSymbolicLink(
                atPath: temporary.path + "/files/" + name, withDestinationPath: outside)
        }
        #expect(try folder.state(of: file) == .other)
        let writing = try folder.begin(file)
        #expect(try writing.add(Self.contents[1].bytes))
        #expect(try writing.finish() == nil)
        #expect(try temporary.read("outside") == "mine")
        #expect(try temporary.read("files/" + file.name) == "hello\n")
        let other = try Self.file(2)
        try FileManager.default.createDirectory(
            atPath: temporary.path + "/files/" + other.name, withIntermediateDirectories: false)
        guard case .blocked = try folder.state(of: other) else {
            Issue.record("a directory was not noticed")
            return
        }
    }

    @Test func `one export at a time has a directory`() throws {
        let temporary = try TemporaryDirectory()
        let first = try ExportFolder(temporary.path)
        do {
            _ = try ExportFolder(temporary.path)
            Issue.record("two exports have one directory")
        } catch { #expect(error.isLocked) }
        try first.sync()
    }

    @Test func `what is to be fetched is remembered on the disk`() throws {
        let temporary = try TemporaryDirectory()
        let folder = try ExportFolder(temporary.path)
        let lines = (0..<5_000).map { Bytes("line \($0)".utf8) }
        for start in stride(from: 0, to: lines.count, by: 7) {
            try folder.note(Array(lines[start..<min(start + 7, lines.count)]))
        }
        try folder.rewind()
        var (rest, found) = (Bytes(), [Bytes]())
        while true {
            let more = try folder.lines(after: &rest)
            if more.isEmpty { break }
            found += more
        }
        #expect(found == lines && rest.isEmpty)
        #expect(try FileManager.default.contentsOfDirectory(atPath: temporary.path).isEmpty)
    }

    // MARK: The command

    /// A node whose files come late, cut off, altered, or not at all.
    private final class Node: HTTPHandler {
        private let asked = Mutex<[String: Int]>([:])
        let head: Bytes

        init(head: Bytes = ExportFilesTests.head) { self.head = head }

        func plan(for head: RequestHead) -> RequestPlan {
            RequestPlan(bodySizeMax: .mebibytes(1)) { await self.respond(to: $0) }
        }

        func count(_ ticket: String) -> Int { self.asked.withLock { $0[ticket] ?? 0 } }

        func respond(to request: HTTPRequest) async -> HTTPResponse {
            if request.head.method == "POST" {
                let record = Bytes("{\"database\":\"private\",\"record\":{}}\n".utf8)
                return HTTPResponse(
                    status: 200,
                    body: .bytes(
                        self.head + line(0) + record + line(1) + line(1) + line(2)
                            + line(2, ticket: "gone", name: String(repeating: "b", count: 32))))
            }
            let ticket = String(request.head.path.split(separator: "/").last ?? "")
            let count = self.asked.withLock { asked in
                asked[ticket, default: 0] += 1
                return asked[ticket] ?? 0
            }
            func refuse(_ status: Int, _ reason: String) -> HTTPResponse {
                HTTPResponse(
                    status: status,
                    body: .bytes(
                        Bytes("{\"error\":{\"code\":\"X\",\"reason\":\"\(reason)\"}}".utf8)))
            }
            switch ticket {
            case "ticket0": return HTTPResponse(status: 200, body: .bytes([]))
            case "ticket1" where count == 1: return refuse(503, "a member is away")
            case "ticket2" where count == 1:
                return HTTPResponse(status: 200, body: .bytes(contents[2].bytes.reversed()))
            case "gone": return refuse(410, "the file is lost")
            default:
                let number = Int(String(ticket.last ?? "0")) ?? 0
                return HTTPResponse(status: 200, body: .bytes(contents[number].bytes))
            }
        }
    }

    private static func serving<Value>(_ node: Node, _ work: (String) async throws -> Value)
        async throws -> Value
    {
        let loops = EventLoop.group(count: 1, name: "test")
        defer { for loop in loops { loop.stop() } }
        let server = HTTPServer(
            configuration: HTTPServerConfiguration(
                listeners: [.init(.ip("127.0.0.1", port: 0), tls: nil)]),
            loops: loops, world: AdminLinesTests.Machine(), handler: node)
        let bound = try await server.start()
        guard case .ip(_, let port) = bound[0] else { preconditionFailure("\(bound)") }
        let value = try await work("http://127.0.0.1:\(port)")
        await server.stop(deadline: .seconds(0))
        return value
    }

    @Test func `what comes late or altered is asked for again, and what is lost is named`()
        async throws
    {
        let temporary = try TemporaryDirectory()
        let node = Node()
        try await Self.serving(node) { url in
            let path = temporary.path + "/files"
            func export(_ more: [String] = []) async throws -> ChildProcess.Ended {
                try await Program.run(
                    "stratusctl",
                    ["--node", url] + more + [
                        "user", "export", "--email", "a@example.org", "--container", "iCloud.a",
                        "--environment", "development", "--assets", path,
                    ])
            }
            let first = try await export()
            #expect(first.code == ExitCode.refused.rawValue, "\(first)")
            #expect(
                first.output == String(decoding: Self.head, as: UTF8.self)
                    + "{\"database\":\"private\",\"record\":{}}\n")
            let lost = String(repeating: "b", count: 32)
            #expect(
                first.errors == "container iCloud.a, environment development\n"
                    + "stratusctl: file \(lost): the file is lost\n"
                    + "files: 3 written, 0 already there, 1 failed\n")
            for file in Self.contents {
                #expect(try temporary.read("files/" + file.name).utf8.elementsEqual(file.bytes))
            }
            #expect(node.count("ticket1") == 2 && node.count("ticket2") == 2)
            #expect(node.count("gone") == 1)
            let second = try await export(["--json"])
            #expect(second.code == ExitCode.refused.rawValue)
            #expect(
                second.errors == "{\"file\":\"\(lost)\",\"reason\":\"the file is lost\"}\n"
                    + "{\"written\":0,\"present\":3,\"failed\":1}\n")
            #expect(node.count("ticket0") == 1 && node.count("ticket1") == 2)
        }
    }

    @Test func `an older node, which names no files, is told of`() async throws {
        let temporary = try TemporaryDirectory()
        let node = Node(head: Bytes("{\"format\":\"stratus user archive 1\"}\n".utf8))
        try await Self.serving(node) { url in
            let ended = try await Program.run(
                "stratusctl",
                [
                    "--node", url, "user", "export", "--email", "a@example.org", "--container",
                    "iCloud.a", "--environment", "development", "--assets", temporary.path,
                ])
            #expect(ended.code == ExitCode.unavailable.rawValue, "\(ended)")
            #expect(ended.errors.contains("names no files: upgrade it"), "\(ended)")
        }
    }
}
