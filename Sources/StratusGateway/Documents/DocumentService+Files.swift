import StratusHTTP
import StratusIdentity
import StratusModel
import StratusRecords
import StratusRuntime

/// Contents by themselves: `content/<id>`, and files that go up and come down at addresses of their
/// own.
extension DocumentService {
    /// `GET content/<id>`, with `?version=` for one that waits to be settled.
    func content() async throws -> GatewayAnswer {
        let (version, stored) = try await self.content(
            of: self.exchange.route.rest,
            version: URLQuery(self.exchange.head.query)?["version"])
        let head = self.exchange.head
        let (content, contentTag) = try self.file(
            at: URLQuery(head.query)?["path"], in: stored, version.contentTag)
        let tag = "\"\(String(contentTag, radix: 36))\""
        let headers = DocumentFiles.headers(tag: tag)
        if let known = head.headers["If-None-Match"], AssetSurface.matches(known, tag) {
            return .whole(HTTPResponse(status: 304, headers: headers))
        }
        do {
            return .whole(
                try await DocumentFiles.answer(
                    content, head, headers, tag: tag, of: self.exchange.holder.home,
                    in: DocumentFiles(self.exchange.assets, self.exchange.kernel)))
        } catch AssetFailure.unsatisfiable(let size) {
            return .whole(
                HTTPResponse(
                    status: 416,
                    headers: ["Content-Range": ByteRange.contentRange(unsatisfiedOf: size)]))
        }
    }

    /// A content that is bytes: the whole of a file, or a file within a package.
    private func file(
        at path: String?, in content: DocumentContent, _ tag: UInt64
    ) throws -> (content: DocumentContent, tag: UInt64) {
        guard case .package(let package) = content else {
            guard path == nil else { throw Self.notFound }
            return (content, tag)
        }
        guard let path else { throw InputRefusal.missingKey("path") }
        guard let part = package.part(path), let file = DocumentContent(part.content) else {
            throw Self.notFound
        }
        return (file, part.tag)
    }

    private func content(
        of id: String, version: String?
    ) async throws -> (version: DocumentVersion, content: DocumentContent) {
        let tag = try version.map { text in
            guard let tag = ChangeTag(text: text) else { throw Self.notFound }
            return tag.raw
        }
        guard
            case .content(let item, let found, let content) = try await self.ask(
                .content(id: id, version: tag))
        else { throw RouteError.otherKind }
        guard item != nil, let found else { throw Self.notFound }
        return (found, content)
    }

    var kit: AssetKit {
        get throws(InputRefusal) {
            guard let kit = self.exchange.assets else {
                throw .unknownOperation(self.exchange.route.label)
            }
            return kit
        }
    }

    /// Refuses an upload whose content would be refused once its bytes are here.
    private func checkUpload(for id: String, basedOn: UInt64?) async throws {
        guard case .lookup(let found) = try await self.ask(.lookup([.id(id)])) else {
            throw RouteError.otherKind
        }
        guard let item = found.first ?? nil else { throw Self.notFound }
        guard item.kind != .folder else { throw ClientError(.notAFile, subject: id) }
        let limit = DocumentRules().versionCountMax
        guard
            item.contentTag == 0 || item.contentTag == basedOn || item.conflicts < UInt64(limit)
        else { throw ClientError(.tooManyVersions, subject: String(limit)) }
    }

    /// `content/upload`: an address that takes one file, and answers with its receipt.
    func uploadURL(_ input: Input) async throws -> Bytes {
        let kit = try self.kit
        if let id = try input.string("id") {
            try await self.checkUpload(for: id, basedOn: try Self.tag(input, "basedOn"))
        }
        var draws = self.exchange.draws()
        let ticket = UploadTicket(
            upload: draws.name(), database: self.exchange.holder.home,
            user: self.exchange.sender.name,
            sizeMax: kit.settings.sizeMax,
            expiresMilliseconds: self.exchange.kernel.world.wallMilliseconds
                + UploadTicket.lifeMilliseconds)
        var json = JSONWriter()
        json.object {
            $0.member(
                "url",
                self.exchange.assetOrigin(kit.settings) + AssetPath.uploads
                    + ticket.text(sealedWith: kit.ciphers.tickets))
        }
        return json.finish()
    }

    /// `content/download`: the address of a content that is a file, or the content itself.
    func downloadURL(_ input: Input) async throws -> Bytes {
        let (version, content) = try await self.content(
            of: try input.requiredString("id"), version: try input.string("version"))
        // Where nothing keeps assets no content is one.
        let kit = self.exchange.assets
        var json = JSONWriter(reserving: 1_024)
        json.object {
            $0.member("contentTag", String(version.contentTag, radix: 36))
            $0.member("size", Int64(clamping: version.size))
            switch content {
            case .inline(let bytes): $0.member("content", base64: bytes)
            case .file(let file): self.write(file, to: &$0, kit)
            case .package(let package):
                $0.key("files")
                $0.array { array in
                    for part in package.parts {
                        array.object { object in
                            object.member("path", part.path)
                            object.member("tag", String(part.tag, radix: 36))
                            switch part.content {
                            case .folder: object.member("kind", "folder")
                            case .inline(let bytes): object.member("content", base64: bytes)
                            case .file(let file): self.write(file, to: &object, kit)
                            case .held: preconditionFailure("only in commands")
                            }
                            if part.content != .folder {
                                object.member("size", Int64(clamping: part.content.size))
                            }
                        }
                    }
                }
            }
        }
        return json.finish()
    }

    private func write(
        _ file: DocumentFile, to object: inout JSONWriter, _ kit: AssetKit?
    ) {
        object.member("fileChecksum", file.checksum)
        guard let kit else { return }
        let link = DownloadLink(
            asset: file.asset, database: self.exchange.holder.home,
            expiresMilliseconds: DownloadLink.expiry(
                at: self.exchange.kernel.world.wallMilliseconds,
                life: kit.settings.linkLifeMilliseconds))
        object.member(
            "downloadURL",
            self.exchange.assetOrigin(kit.settings) + AssetPath.downloads
                + link.text(sealedWith: kit.ciphers.links) + "/${f}")
    }

    /// A file or a folder of a package, as an operation states it.
    private func part(_ input: Input) throws -> DocumentPart {
        let path = try input.requiredString("path")
        if try input.string("kind") == "folder" { return DocumentPart(path, .folder) }
        if let value = input["asset"], !value.isNull, input["content"] == nil {
            let asset = try Input(value, at: "asset")
            if try asset.string("receipt") == nil {
                // One that a content of the package has already.
                guard let size = asset["size"]?.wholeInt64, size >= 0 else {
                    throw InputRefusal.missingKey("size")
                }
                return DocumentPart(
                    path,
                    .held(
                        checksum: try asset.requiredString("fileChecksum"), size: UInt64(size)))
            }
        }
        switch try self.content(of: input) {
        case .inline(let bytes)?: return DocumentPart(path, .inline(bytes))
        case .file(let file)?: return DocumentPart(path, .file(file))
        case .package?: throw InputRefusal.unexpectedInput(key: "files")
        case nil: throw InputRefusal.missingKey("content")
        }
    }

    /// The content that an operation brings: `content`, `asset` with a receipt, or the `files` of a
    /// package. Nil: none of them.
    func content(of input: Input) throws -> DocumentContent? {
        if input["files"] != nil {
            guard input["content"] == nil, input["asset"] == nil else {
                throw InputRefusal.unexpectedInput(key: "files")
            }
            let parts = try input.requiredElements("files", limit: DocumentPackage.countMax).map {
                try self.part(try Input($0, at: "files"))
            }
            return .package(DocumentPackage(parts))
        }
        if let value = input["asset"], !value.isNull {
            guard input["content"] == nil, let receipts = self.exchange.receipts else {
                throw InputRefusal.unexpectedInput(key: "asset")
            }
            let reference = try receipts.asset(value, field: "asset")
            // Without a receipt nothing says which file is meant.
            guard let asset = reference.asset else {
                throw InputRefusal.missingKey("receipt")
            }
            return .file(
                DocumentFile(
                    asset: asset, checksum: reference.fileChecksum,
                    size: UInt64(clamping: reference.size)))
        }
        guard let value = input["content"] else { return nil }
        guard let bytes = value.base64 else {
            throw InputRefusal.unexpectedInput(key: "content")
        }
        return .inline(bytes)
    }
}

extension DocumentContent {
    /// A file of a package as the content of a file. Nil: it is a folder.
    init?(_ content: DocumentPart.Content) {
        switch content {
        case .inline(let bytes): self = .inline(bytes)
        case .file(let file): self = .file(file)
        case .folder, .held: return nil
        }
    }
}
