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
        try self.exchange.requireLevel(.two)
        let (version, content) = try await self.content(
            of: self.exchange.route.rest,
            version: URLQuery(self.exchange.head.query)?["version"])
        let tag = "\"\(String(version.contentTag, radix: 36))\""
        let headers = DocumentFiles.headers(tag: tag)
        let head = self.exchange.head
        if let known = head.headers["If-None-Match"], AssetHandler.matches(known, tag) {
            return .whole(HTTPResponse(status: 304, headers: headers))
        }
        do {
            return .whole(
                try await DocumentFiles.answer(
                    content, head, headers, tag: tag, of: self.exchange.homeDatabase,
                    in: DocumentFiles(self.exchange.handler)))
        } catch AssetFailure.unsatisfiable(let size) {
            return .whole(
                HTTPResponse(
                    status: 416,
                    headers: ["Content-Range": ByteRange.contentRange(unsatisfiedOf: size)]))
        }
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
        else { throw Self.otherKind }
        guard item != nil, let found else { throw Self.notFound }
        return (found, content)
    }

    var kit: AssetKit {
        get throws(InputRefusal) {
            guard let kit = self.exchange.handler.assets else {
                throw .unknownOperation(self.exchange.route.operation.label)
            }
            return kit
        }
    }

    /// `content/upload`: an address that takes one file, and answers with its receipt.
    func uploadURL(_ input: Input) async throws -> Bytes {
        let kit = try self.kit
        try self.exchange.requireLevel(.two)
        var draws = self.exchange.draws()
        let ticket = UploadTicket(
            upload: draws.name(), database: self.exchange.homeDatabase, user: self.exchange.caller,
            sizeMax: kit.settings.sizeMax,
            expiresMilliseconds: self.exchange.handler.world.wallMilliseconds
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
        try self.exchange.requireLevel(.two)
        let (version, content) = try await self.content(
            of: try input.requiredString("id"), version: try input.string("version"))
        var url: String?
        if case .file(let file) = content {
            let kit = try self.kit
            let link = DownloadLink(
                asset: file.asset, database: self.exchange.homeDatabase,
                expiresMilliseconds: DownloadLink.expiry(
                    at: self.exchange.handler.world.wallMilliseconds,
                    life: kit.settings.linkLifeMilliseconds))
            url =
                self.exchange.assetOrigin(kit.settings) + AssetPath.downloads
                + link.text(sealedWith: kit.ciphers.links) + "/${f}"
        }
        var json = JSONWriter(reserving: 1_024)
        json.object {
            $0.member("contentTag", String(version.contentTag, radix: 36))
            $0.member("size", Int64(clamping: version.size))
            switch content {
            case .inline(let bytes): $0.member("content", base64: bytes)
            case .file(let file):
                $0.member("fileChecksum", file.checksum)
                if let url { $0.member("downloadURL", url) }
            }
        }
        return json.finish()
    }

    /// The content that an operation brings: `content`, or `asset` with a receipt. Nil: neither.
    func content(of input: Input) throws -> DocumentContent? {
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
