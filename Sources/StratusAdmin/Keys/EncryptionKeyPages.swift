import StratusAdminModel
import StratusCluster
import StratusContainers
import StratusHTTP
import StratusIdentity
import StratusModel
import StratusRuntime

/// The keys that files and encrypted fields are sealed under: versions and counts, never the keys.
///
/// All pages do a slice of the containers at a time, in the order of their names. `next` in an
/// answer is what `after` must be for the next slice.
enum EncryptionKeyPages {
    static let routes: [AdminRoute] = [
        AdminRoute(
            "GET", "/v1/encryption-keys",
            answer:
                "the master keys of this node with their check values, and what keys of containers "
                + "are wrapped under them; 100 containers behind `?after=`, and `next`"
        ) { try await Self.list($0) },
        AdminRoute(
            "POST", "/v1/encryption-keys/rotation", body: "after",
            answer:
                "how many keys of containers were wrapped anew, of 100 containers, and which were "
                + "not; and `next`"
        ) { try await Self.rotate($0, $0.body()) },
        AdminRoute(
            "POST", "/v1/encryption-keys/databases/rotation", isLong: true,
            body: "container, environment",
            answer:
                "gives the container's databases newer keys and seals their encrypted fields anew, "
                + "from where an interrupted call came to: a JSON line for each piece with the "
                + "counts so far, one with `failing` for each database that is not rotated to the "
                + "end, and a last one with `done`, or with `stopped` and the reason"
        ) { try await Self.rotateDatabases($0, $0.body()) },
        AdminRoute(
            "POST", "/v1/encryption-keys/containers/rotation", isLong: true,
            body: "container, environment",
            answer:
                "gives the container a newer key, wraps the keys of its databases anew, and destroys "
                + "the older key: a JSON line for each piece with the counts so far, one with "
                + "`failing` for each key that does not open, and a last one with `done`, or with "
                + "`stopped` and the reason"
        ) { try await Self.rotateContainer($0, $0.body()) },
        AdminRoute(
            "POST", "/v1/encryption-keys/forgetting", body: "version, after",
            answer:
                "`waitsMilliseconds` while what was begun may still arrive, `next` while containers "
                + "are left to look at; then `forgotten`: another key may come under the version"
        ) { try await Self.forget($0, $0.body()) },
    ]

    private static func survey(_ exchange: AdminExchange) throws -> (MasterSurvey, ContainerKeys) {
        guard let keys = try exchange.directory.keys else {
            throw AdminRefusal(404, .notFound, "this node has no encryption keys")
        }
        return (MasterSurvey(try exchange.registry, keys.containers), keys.containers)
    }

    /// Reads a place in the order of containers: ENVIRONMENT/NAME.
    private static func place(_ text: String?) throws -> ContainerReference? {
        guard let text, !text.isEmpty else { return nil }
        guard let mark = text.firstIndex(of: "/"),
            let environment = Environment(name: String(text[..<mark]))
        else { throw AdminRefusal.bad("'after' must be ENVIRONMENT/CONTAINER") }
        return ContainerReference(
            container: String(text[text.index(after: mark)...]), environment: environment)
    }

    private static func text(_ place: ContainerReference) -> String {
        "\(place.environment.name)/\(place.container)"
    }

    private static func list(_ exchange: AdminExchange) async throws -> HTTPResponse {
        let (survey, keys) = try Self.survey(exchange)
        let counts = try await survey.count(after: Self.place(exchange.query?["after"]))
        let noted = try await keys.agreement.noted()
        let held = keys.versions
        let versions = Set(held).union(counts.wrapped.keys).sorted()
        return AdminAnswer.json(
            MasterKeysAnswer {
                $0.masters = versions.map { version in
                    MasterKey {
                        $0.version = Int64(version)
                        $0.state =
                            version == keys.sealing
                            ? "seals" : held.contains(version) ? "opens" : "missing"
                        $0.containers = Int64(counts.wrapped[version] ?? 0)
                        let check = keys.agreement.check(of: version)
                        $0.check = check.map { Hexadecimal.text($0) }
                        guard let noted = noted[version] else { return }
                        $0.noted = Hexadecimal.text(noted)
                        $0.differs = check.map { $0 != noted }
                    }
                }
                $0.withoutKey = Int64(counts.withoutKey)
                $0.failing = counts.failing.map { FailingKey($0) }
                $0.next = counts.next.map { Self.text($0) }
            })
    }

    private static func rotation(_ survey: MasterSurvey, after last: ContainerReference?)
        async throws -> MasterSurvey.Rotation
    {
        do throws(RouteError) { return try await survey.rotate(after: last) } catch {
            if case .refused(let reason) = error { throw AdminRefusal(409, .refused, reason) }
            throw error
        }
    }

    private static func rotate(_ exchange: AdminExchange, _ body: SliceBody) async throws
        -> HTTPResponse
    {
        let (survey, keys) = try Self.survey(exchange)
        let after = try Self.place(body.after)
        let rotation = try await Self.rotation(survey, after: after)
        await exchange.noteAfterwards(
            "encryption-key rotate",
            "master \(keys.sealing), \(rotation.wrapped) containers behind "
                + (after.map { Self.text($0) } ?? "the first"))
        return AdminAnswer.json(
            MasterRotationAnswer {
                $0.version = Int64(keys.sealing)
                $0.wrapped = Int64(rotation.wrapped)
                $0.failing = rotation.failing.map { FailingKey($0) }
                $0.next = rotation.next.map { Self.text($0) }
            })
    }

    /// The container that a body names, if it is in use.
    private static func container(_ exchange: AdminExchange, _ body: PlaceBody) async throws
        -> ContainerReference
    {
        let container = try await exchange.container(of: body)
        guard try await exchange.registry.descriptor(of: container)?.state == .active else {
            throw AdminRefusal.missing("container")
        }
        return container
    }

    private static let noKeys = AdminRefusal(
        404, .notFound, "this node has no encryption keys")

    private static func rotateDatabases(_ exchange: AdminExchange, _ body: PlaceBody) async throws
        -> HTTPResponse
    {
        let container = try await Self.container(exchange, body)
        guard
            let rotation = DatabaseRotation(
                try exchange.directory, of: container, files: exchange.services.resealing)
        else { throw Self.noKeys }
        try await exchange.note("encryption-key rotate databases", "", container)
        return AdminAnswer.lines(RotationLines(rotation))
    }

    private static func rotateContainer(_ exchange: AdminExchange, _ body: PlaceBody) async throws
        -> HTTPResponse
    {
        let container = try await Self.container(exchange, body)
        guard let rotation = ContainerRotation(try exchange.directory, of: container) else {
            throw Self.noKeys
        }
        // Before anything is changed.
        try await exchange.note("encryption-key rotate container", "", container)
        return AdminAnswer.lines(RotationLines(rotation))
    }

    private static func forget(_ exchange: AdminExchange, _ body: SliceBody) async throws
        -> HTTPResponse
    {
        let (survey, _) = try Self.survey(exchange)
        guard let number = body.version, let version = UInt32(exactly: number),
            NamedMasters.versions.contains(version)
        else {
            throw AdminRefusal.bad("'version' must be that of a master key in a file")
        }
        var answer = ForgettingAnswer()
        switch try await survey.forget(version, after: Self.place(body.after)) {
        case .settles(let milliseconds):
            answer.waitsMilliseconds = milliseconds
        case .goesOn(let place): answer.next = Self.text(place)
        case .forgotten:
            await exchange.noteAfterwards("encryption-key forget", "master \(version)")
            answer.isForgotten = true
        case .unknown: answer.isForgotten = false
        case .seals:
            throw AdminRefusal(
                409, .refused, "master key \(version) seals: 'keys.sealingMaster' names it")
        case .wraps(let container):
            throw AdminRefusal(
                409, .refused,
                "master key \(version) wraps the key of \(Self.text(container)): run "
                    + "'stratusctl encryption-key rotate' first")
        case .unreadable(let container, let reason):
            throw AdminRefusal(
                409, .refused, "the key of \(Self.text(container)) may be under it: \(reason)")
        }
        return AdminAnswer.json(answer)
    }
}

extension FailingKey {
    init(_ failing: MasterSurvey.Failing) {
        self.init()
        self.container = failing.container.container
        self.environment = failing.container.environment.name
        self.reason = failing.reason
    }
}
