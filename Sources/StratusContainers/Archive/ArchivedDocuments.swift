import StratusCluster
import StratusHTTP
import StratusIdentity
import StratusModel
import StratusRecords

/// One content of a document, as an archive has it.
struct ArchivedContent: Sendable {
    var document: String
    var version: DocumentVersion
    var content: DocumentContent
    /// Whether it is the document's own, and none that waits to be settled.
    var isCurrent: Bool
}

/// Documents in their feed's order. What changes meanwhile comes once more behind it, so nothing is
/// missed: the later line counts.
extension ArchiveWalk {
    private static let documentCountMax = 200

    mutating func documents(
        of database: DatabaseID, _ after: FeedPosition?, _ restartCount: Int
    ) async throws -> Piece {
        let zone = ZoneID(name: ZoneID.documentsName, owner: database.owner)
        guard
            case .changes(let page) = try await self.reader.documents(
                .changes(after: after, limit: Self.documentCountMax), of: database)
        else { throw Self.otherKind }
        if after != nil, page.isFromStart {
            // The feed does not go on from there: only the beginning is whole.
            guard restartCount < UserArchive.restartCountMax else {
                self.steps.removeFirst()
                return .incomplete(zone, database.scope)
            }
            self.steps[0] = .documents(database, after: nil, restartCount: restartCount + 1)
            return .begunAgain(zone, database.scope)
        }
        var next: [Step] = []
        for case .changed(let item) in page.changes where item.kind != .folder {
            next.append(.versions(database, document: item.id))
        }
        if page.moreComing {
            next.append(
                .documents(database, after: page.position, restartCount: restartCount))
        }
        self.steps.replaceSubrange(0..<1, with: next)
        return .documents(page.changes, database.scope)
    }

    mutating func versions(of document: String, in database: DatabaseID) async throws -> Piece {
        guard
            case .versions(let versions) = try await self.reader.documents(
                .versions(id: document), of: database)
        else { throw Self.otherKind }
        self.steps[0] = .contents(
            database, document: document, versions ?? [], isCurrent: true)
        return .documents([], database.scope)
    }

    mutating func content(
        of document: String, in database: DatabaseID, _ versions: [DocumentVersion],
        _ isCurrent: Bool
    ) async throws -> Piece {
        guard let version = versions.first else {
            self.steps.removeFirst()
            return .documents([], database.scope)
        }
        guard
            case .content(_, let found, let content) = try await self.reader.documents(
                .content(id: document, version: version.contentTag), of: database)
        else { throw Self.otherKind }
        self.steps[0] = .contents(
            database, document: document, Array(versions.dropFirst()), isCurrent: false)
        guard let found else { return .documents([], database.scope) }
        return .content(
            ArchivedContent(
                document: document, version: found, content: content, isCurrent: isCurrent),
            database)
    }

    private static let otherKind = RouteError.otherKind
}

extension ArchiveLines {
    static func lines(
        _ changes: [DocumentChangesPage.Change], in scope: DatabaseScope
    ) -> Bytes {
        var lines = Bytes()
        for change in changes {
            lines += JSONWriter.line {
                $0.member("database", scope.name)
                $0.key("document")
                $0.object { json in
                    switch change {
                    case .removed(let id):
                        json.member("id", id)
                        json.member("removed", true)
                    case .changed(let item): Self.write(item, to: &json)
                    }
                }
            }
        }
        return lines
    }

    private static func write(_ item: DocumentItem, to json: inout JSONWriter) {
        json.member("id", item.id)
        json.member("kind", item.kind.name)
        json.member("name", item.name)
        json.member("folder", item.folder)
        json.member("tag", String(item.tag, radix: 36))
        json.member("editedAt", item.editedAtMilliseconds)
        json.member("device", item.device)
        guard item.kind != .folder else { return }
        json.member("size", Int64(clamping: item.size))
        if item.contentTag == 0 {
            json.member("awaitsContent", true)
        } else {
            json.member("contentTag", String(item.contentTag, radix: 36))
        }
    }
}

extension ArchivedContent {
    /// The line of the content and, where files are asked for, those that they are fetched by.
    func lines(in database: DatabaseID, from files: (any ExportedFiles)?) -> Bytes {
        var found: [ArchivedFile] = []
        func add(_ file: DocumentFile, to json: inout JSONWriter) {
            json.member("size", Int64(clamping: file.size))
            json.member("fileChecksum", file.checksum)
            guard files != nil else { return }
            let one = ArchivedFile(
                field: "", asset: file.asset, checksum: file.checksum,
                size: Int64(clamping: file.size))
            found.append(one)
            json.member("file", one.name)
        }
        var writer = JSONWriter()
        writer.object {
            $0.member("database", database.scope.name)
            $0.key("documentContent")
            $0.object { json in
                json.member("id", self.document)
                json.member("contentTag", String(self.version.contentTag, radix: 36))
                json.member("state", self.isCurrent ? "current" : "waits")
                json.member("editedAt", self.version.editedAtMilliseconds)
                json.member("device", self.version.device)
                switch self.content {
                case .inline(let bytes):
                    json.member("size", bytes.count)
                    json.member("content", base64: bytes)
                case .file(let file): add(file, to: &json)
                case .package(let package):
                    json.member("size", Int64(clamping: package.size))
                    json.member("parts", objects: package.parts) { json, part in
                        json.member("path", part.path)
                        switch part.content {
                        case .folder: json.member("kind", "folder")
                        case .inline(let bytes):
                            json.member("size", bytes.count)
                            json.member("content", base64: bytes)
                        case .file(let file): add(file, to: &json)
                        // Commands alone have it.
                        case .held(_, let size): json.member("size", Int64(clamping: size))
                        }
                    }
                }
            }
        }
        var lines = writer.finish() + [0x0A]
        guard let files else { return lines }
        for file in found { lines += file.line(in: database, from: files) }
        return lines
    }
}
