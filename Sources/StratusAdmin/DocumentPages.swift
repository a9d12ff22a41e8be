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
                id, in: try exchange.container(), try exchange.directory)
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
        var json = JSONWriter()
        json.object {
            $0.member("items", objects: items.map({ ($0.path, $0.item) })) { json, element in
                let (path, item) = element
                json.member("path", path)
                json.member("id", item.id)
                json.member("kind", item.kind.name)
                json.member("size", Int64(clamping: item.size))
                json.member(
                    "edited", item.tag == 0 ? "" : WallTime.text(item.editedAtMilliseconds))
                json.member("device", item.device)
                json.member("conflicts", Int64(clamping: item.conflicts))
            }
        }
        return AdminAnswer.json(json.finish())
    }

    private static func usage(_ exchange: AdminExchange) async throws -> HTTPResponse {
        let uses = try await Self.documents(exchange).use()
        var json = JSONWriter()
        json.object { object in
            object.member(
                "parts", objects: [("Documents", uses.documents), ("the rest", uses.rest)]
            ) { json, element in
                let (part, use) = element
                json.member("part", part)
                json.member("files", use.fileCount)
                json.member("folders", use.folderCount)
                json.member("bytes", Int64(clamping: use.size))
                json.member("versions", Int64(clamping: use.versionCount))
            }
        }
        return AdminAnswer.json(json.finish())
    }

    private static func versions(_ exchange: AdminExchange) async throws -> HTTPResponse {
        guard
            let versions = try await Self.documents(exchange).versions(Self.path(exchange))
        else { throw AdminRefusal.missing("file") }
        var json = JSONWriter()
        json.object {
            $0.member("versions", objects: versions.enumerated()) { json, element in
                let (index, version) = element
                json.member("contentTag", String(version.contentTag, radix: 36))
                json.member("state", index == 0 ? "current" : "waits")
                json.member("size", Int64(clamping: version.size))
                json.member("edited", WallTime.text(version.editedAtMilliseconds))
                json.member("device", version.device)
            }
        }
        return AdminAnswer.json(json.finish())
    }

    private static func locks(_ exchange: AdminExchange) async throws -> HTTPResponse {
        let locks = try await Self.documents(exchange).locks()
        var json = JSONWriter()
        json.object {
            $0.member("locks", objects: locks) { json, element in
                let (path, lock) = element
                json.member("path", path)
                json.member("token", lock.token)
                json.member("scope", lock.isExclusive ? "exclusive" : "shared")
                json.member("depth", lock.isInfinite ? "infinity" : "0")
                json.member("until", WallTime.text(lock.untilMilliseconds))
            }
        }
        return AdminAnswer.json(json.finish())
    }

    private static func publications(_ exchange: AdminExchange) async throws -> HTTPResponse {
        let publications = try await Self.documents(exchange).publications()
        var json = JSONWriter()
        json.object {
            $0.member("publications", objects: publications) { json, element in
                let (path, publication) = element
                json.member("path", path)
                json.member("publication", publication.id)
                json.member("name", publication.name)
                json.member("size", Int64(clamping: publication.size))
                json.member("until", WallTime.text(publication.untilMilliseconds))
            }
        }
        return AdminAnswer.json(json.finish())
    }

    private static func withdraw(_ exchange: AdminExchange) async throws -> HTTPResponse {
        let container = try exchange.container()
        guard try await Self.documents(exchange).withdraw(exchange.parameter("id")) else {
            throw AdminRefusal.missing("publication")
        }
        return await exchange.done(
            "documents withdraw", exchange.parameter("email"), container)
    }

    private static func unlock(_ exchange: AdminExchange) async throws -> HTTPResponse {
        let container = try exchange.container()
        guard try await Self.documents(exchange).unlock(exchange.parameter("token")) else {
            throw AdminRefusal.missing("lock")
        }
        return await exchange.done(
            "documents unlock", exchange.parameter("email"), container)
    }
}
