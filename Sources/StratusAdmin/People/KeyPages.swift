import StratusAdminModel
import StratusContainers
import StratusHTTP
import StratusIdentity
import StratusModel
import StratusRecords
import StratusRuntime

/// Server-to-server keys of a container.
enum KeyPages {
    static let routes: [AdminRoute] = [
        AdminRoute(
            "GET", "/v1/containers/{container}/environments/{environment}/keys",
            answer: "the keys, each with the user it acts as"
        ) { try await Self.listKeys($0, in: $0.container()) },
        AdminRoute(
            "POST", "/v1/containers/{container}/environments/{environment}/keys",
            body: "name, publicKey (PEM)",
            answer:
                "the id of the key, and whether this made the container (existing=1: it must be "
                + "there)"
        ) { try await Self.addKey($0, $0.body(), in: $0.namedContainer()) },
        AdminRoute(
            "DELETE", "/v1/containers/{container}/environments/{environment}/keys/{key}",
            answer: "nothing"
        ) { try await Self.revoke($0, in: $0.container()) },
    ]

    private static func addKey(
        _ exchange: AdminExchange, _ body: ServerKeyBody, in container: ContainerReference
    ) async throws
        -> HTTPResponse
    {
        guard let pem = body.publicKey.map({ Bytes($0.utf8) }) else {
            throw AdminRefusal.bad("'publicKey' is missing")
        }
        let name = try AdminExchange.name(body.name)
        let isCreated = try await exchange.admit(container)
        switch try await exchange.access.addKey(name: name, pem: pem, in: container) {
        case .noKey:
            throw AdminRefusal.bad(
                "the public key must be an EC P-256 key in PEM form ('openssl ec -pubout')")
        case .nameIsFull:
            throw AdminRefusal(
                409, .nameIsFull,
                "two live keys are already named '\(name)': revoke the older one first")
        case .known(let id):
            throw AdminRefusal(409, .exists, "this key is already registered as \(id)")
        case .added(let id):
            await exchange.noteAfterwards("key add", "\(id) '\(name)'", container)
            return AdminAnswer.json(
                ServerKeyAnswer {
                    $0.id = id
                    $0.isCreated = isCreated
                }, status: 201)
        }
    }

    private static func listKeys(_ exchange: AdminExchange, in container: ContainerReference)
        async throws -> HTTPResponse
    {
        let keys = try await exchange.access.keys(in: container)
        let names = try exchange.store.keys
        return AdminAnswer.json(
            Listing(
                keys.map { listed in
                    ServerKeyRow {
                        $0.id = listed.id
                        $0.name = listed.key.name
                        $0.created = WallTime.text(listed.key.createdMilliseconds)
                        $0.userRecordName = names.userRecordName(
                            ofServerKey: Hexadecimal.bytes(listed.id) ?? [], in: container)
                    }
                }))
    }

    private static func revoke(_ exchange: AdminExchange, in container: ContainerReference)
        async throws -> HTTPResponse
    {
        let id = exchange.parameter("key")
        guard try await exchange.access.revokeKey(id: id, in: container) else {
            throw AdminRefusal.missing("key")
        }
        return await exchange.done("key revoke", id, container)
    }
}
