import StratusAdminModel
import StratusContainers
import StratusHTTP
import StratusIdentity
import StratusModel
import StratusRecords
import StratusRuntime

/// People's documents.
enum DocumentPages {
    static let user =
        "/v1/containers/{container}/environments/{environment}/users/{email}"

    static let routes: [AdminRoute] = [
        AdminRoute(
            "GET", Self.user + "/documents",
            answer: "every item, or with '?path=' those below one folder"
        ) { try await Self.list($0) },
        AdminRoute(
            "GET", Self.user + "/documents/usage",
            answer: "files, folders, bytes and versions in the folder Documents and beside it"
        ) { try await Self.usage($0) },
        AdminRoute(
            "GET", Self.user + "/documents/versions",
            answer: "with '?path=' the contents of one file, the current one first"
        ) { try await Self.versions($0) },
        AdminRoute(
            "GET", Self.user + "/documents/locks", answer: "the locks of WebDAV clients"
        ) { try await Self.locks($0) },
        AdminRoute(
            "DELETE", Self.user + "/documents/locks/{token}", answer: "nothing"
        ) { try await Self.unlock($0) },
        AdminRoute(
            "GET", Self.user + "/documents/publications",
            answer: "the links by which anybody may read a file; not the links themselves"
        ) { try await Self.publications($0) },
        AdminRoute(
            "DELETE", Self.user + "/documents/publications/{id}", answer: "nothing"
        ) { try await Self.withdraw($0) },
    ]

    private static func documents(_ exchange: AdminExchange) async throws -> UserDocuments {
        let id = try await UserPages.account(exchange, exchange.parameter("email"))
        guard
            let documents = try await UserDocuments(
                id, in: try await exchange.container(), try exchange.directory)
        else { throw AdminRefusal.missing("user") }
        return documents
    }

    private static func path(_ exchange: AdminExchange) -> [String] {
        let text = URLQuery(exchange.request.head.query)?["path"] ?? ""
        return text.split(separator: "/").map { String($0) }
    }

    private static func list(_ exchange: AdminExchange) async throws -> HTTPResponse {
        guard let items = try await Self.documents(exchange).list(Self.path(exchange)) else {
            throw AdminRefusal.missing("item")
        }
        return AdminAnswer.json(
            Listing(
                items.map { listed in
                    DocumentRow {
                        let item = listed.item
                        $0.path = listed.path
                        $0.id = item.id
                        $0.kind = item.kind.name
                        $0.size = Int64(clamping: item.size)
                        $0.edited = item.tag == 0 ? "" : WallTime.text(item.editedAtMilliseconds)
                        $0.device = item.device
                        $0.conflicts = Int64(clamping: item.conflicts)
                    }
                }))
    }

    private static func usage(_ exchange: AdminExchange) async throws -> HTTPResponse {
        let uses = try await Self.documents(exchange).use()
        return AdminAnswer.json(
            Listing(
                [("Documents", uses.documents), ("the rest", uses.rest)].map { part, use in
                    DocumentUseRow {
                        $0.part = part
                        $0.files = Int64(use.fileCount)
                        $0.folders = Int64(use.folderCount)
                        $0.bytes = Int64(clamping: use.size)
                        $0.versions = Int64(clamping: use.versionCount)
                    }
                }))
    }

    private static func versions(_ exchange: AdminExchange) async throws -> HTTPResponse {
        guard
            let versions = try await Self.documents(exchange).versions(Self.path(exchange))
        else { throw AdminRefusal.missing("file") }
        return AdminAnswer.json(
            Listing(
                versions.enumerated().map { index, version in
                    DocumentVersionRow {
                        $0.contentTag = String(version.contentTag, radix: 36)
                        $0.state = index == 0 ? "current" : "waits"
                        $0.size = Int64(clamping: version.size)
                        $0.edited = WallTime.text(version.editedAtMilliseconds)
                        $0.device = version.device
                    }
                }))
    }

    private static func locks(_ exchange: AdminExchange) async throws -> HTTPResponse {
        let locks = try await Self.documents(exchange).locks()
        return AdminAnswer.json(
            Listing(
                locks.map { path, lock in
                    DocumentLockRow {
                        $0.path = path
                        $0.token = lock.token
                        $0.scope = lock.isExclusive ? "exclusive" : "shared"
                        $0.depth = lock.isInfinite ? "infinity" : "0"
                        $0.until = WallTime.text(lock.untilMilliseconds)
                    }
                }))
    }

    private static func publications(_ exchange: AdminExchange) async throws -> HTTPResponse {
        let publications = try await Self.documents(exchange).publications()
        return AdminAnswer.json(
            Listing(
                publications.map { path, publication in
                    PublicationRow {
                        $0.path = path
                        $0.publication = publication.id
                        $0.name = publication.name
                        $0.size = Int64(clamping: publication.size)
                        $0.until = WallTime.text(publication.untilMilliseconds)
                    }
                }))
    }

    private static func withdraw(_ exchange: AdminExchange) async throws -> HTTPResponse {
        let container = try await exchange.container()
        guard try await Self.documents(exchange).withdraw(exchange.parameter("id")) else {
            throw AdminRefusal.missing("publication")
        }
        return await exchange.done(
            "documents withdraw", exchange.parameter("email"), container)
    }

    private static func unlock(_ exchange: AdminExchange) async throws -> HTTPResponse {
        let container = try await exchange.container()
        guard try await Self.documents(exchange).unlock(exchange.parameter("token")) else {
            throw AdminRefusal.missing("lock")
        }
        return await exchange.done(
            "documents unlock", exchange.parameter("email"), container)
    }
}
