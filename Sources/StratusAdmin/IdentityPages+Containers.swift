import StratusGateway
import StratusHTTP
import StratusIdentity
import StratusModel
import StratusRecords
import StratusRuntime

/// Containers: which there are, and the beginning and the end of one.
extension IdentityPages {
    private var registry: ContainerRegistry { self.people.authenticator.registry }

    /// Registers the container that gets an addition; throws if it was deleted or is being reset.
    func admit(_ route: IdentityRoute) async throws {
        guard self.request.head.method == "POST" else { return }
        switch route {
        case .tokens(let container), .keys(let container), .members(let container):
            try await self.admit(container)
        default: return
        }
    }

    func admit(_ container: ContainerReference) async throws {
        guard try await self.registry.admit(container) else {
            if try await self.registry.descriptor(of: container)?.state == .resetting {
                throw Refusal(
                    status: 409, code: "CONTAINER_RESETTING",
                    reason: "this environment is being reset: go on with that first")
            }
            throw Refusal(
                status: 409, code: "CONTAINER_DELETED",
                reason:
                    "this container was deleted; once nothing is left of it, it can be created again"
            )
        }
    }

    func listContainers() async throws -> HTTPResponse {
        let all = try await self.registry.all()
        var json = JSONWriter()
        json.object {
            $0.key("containers")
            $0.array { array in
                for (container, descriptor) in all {
                    array.object { Self.write(container, descriptor, to: &$0) }
                }
            }
        }
        return AdminAnswer.json(json.finish())
    }

    func showContainer(_ container: ContainerReference) async throws -> HTTPResponse {
        guard let descriptor = try await self.registry.descriptor(of: container) else {
            throw Refusal.missing("container")
        }
        let schema = try await self.schema(of: container)
        let tokens = try await self.access.tokens(in: container)
        let keys = try await self.access.keys(in: container)
        let users = try await self.access.users(in: container)
        var json = JSONWriter()
        json.object {
            Self.write(container, descriptor, to: &$0)
            $0.member("schemaVersion", Int64(clamping: schema.version))
            $0.member("recordTypes", schema.types.count)
            $0.member("tokens", tokens.count)
            $0.member("keys", keys.count)
            $0.member("users", users.count)
        }
        return AdminAnswer.json(json.finish())
    }

    /// Creates a container. `buckets` in the body is the number over which the public database's
    /// records are spread; it can never be changed.
    func createContainer(_ container: ContainerReference, _ body: JSONValue?) async throws
        -> HTTPResponse
    {
        let buckets = try Self.buckets(body)
        switch try await ContainerCreation(self.people).run(container, buckets: buckets) {
        case .created(let descriptor):
            try await self.note("container create", "", container)
            var json = JSONWriter()
            json.object { Self.write(container, descriptor, to: &$0) }
            return AdminAnswer.json(json.finish(), status: 201)
        case .exists(let known):
            let reason =
                known.publicBucketCount == buckets
                ? "" : ", with buckets: \(known.publicBucketCount), which is never changed"
            throw Refusal(
                status: 409, code: "EXISTS", reason: "this container is there already" + reason)
        case .isErasing:
            throw Refusal(
                status: 409, code: "CONTAINER_DELETED",
                reason:
                    "what this container held is still being removed: delete it to its end first")
        case .hasRecords:
            throw Refusal(
                status: 409, code: "HAS_RECORDS",
                reason:
                    "the public database holds records already, which cannot be spread any more")
        }
    }

    private static func buckets(_ body: JSONValue?) throws -> Int {
        guard let value = body?["buckets"] else { return 1 }
        guard let count = value.int64.flatMap({ Int(exactly: $0) }), Bucket.isOffered(count) else {
            throw Refusal.bad(
                "'buckets' is a power of two from 1 to \(Bucket.countMax): over so many parts the "
                    + "public database is spread")
        }
        return count
    }

    /// Ends access and nothing else; `…/erasure` removes what the container held, piece by piece.
    func deleteContainer(_ container: ContainerReference) async throws -> HTTPResponse {
        guard URLQuery(self.request.head.query)?["confirm"] == container.container else {
            throw Refusal(
                status: 409, code: "CONFIRMATION_NEEDED",
                reason:
                    "this removes every record, token, key and session of the container: repeat its "
                    + "name as 'confirm'")
        }
        guard let descriptor = try await self.registry.beginErasure(of: container) else {
            throw Refusal.missing("container")
        }
        try await self.note("container delete", "", container)
        var json = JSONWriter()
        json.object { Self.write(container, descriptor, to: &$0) }
        return AdminAnswer.json(json.finish(), status: 202)
    }

    func eraseContainer(_ container: ContainerReference) async throws -> HTTPResponse {
        guard let progress = try await ContainerErasure(self.people).step(container) else {
            throw Refusal(
                status: 409, code: "NOT_DELETED",
                reason: "this container is not being deleted")
        }
        if progress.isDone { try await self.note("container erased", "", container) }
        var json = JSONWriter()
        json.object {
            Self.write(progress, to: &$0)
            if progress.isDone {
                $0.key("outstanding")
                $0.array {
                    $0.write("the schema, and how far each database had come")
                    $0.write("rows without an owner, until jobs have removed them")
                    $0.write("pages freed in database files, until they are used again")
                    $0.write("copies of the data directory made before")
                }
            }
        }
        return AdminAnswer.json(json.finish())
    }

    /// Shows the usage of the container's databases. `after`: the page after this user.
    func showUsage(of container: ContainerReference) async throws -> HTTPResponse {
        guard try await self.registry.descriptor(of: container) != nil else {
            throw Refusal.missing("container")
        }
        let page = try await ContainerUsage(self.people).page(
            of: container, after: URLQuery(self.request.head.query)?["after"])
        var json = JSONWriter()
        json.object {
            $0.key("databases")
            $0.array { array in
                for held in page.databases {
                    array.object {
                        $0.member("database", held.owner.isEmpty ? "public" : "private")
                        if !held.owner.isEmpty { $0.member("userRecordName", held.owner) }
                        $0.member("zones", Int64(clamping: held.zoneCount))
                        $0.member("records", Int64(clamping: held.use.recordCount))
                        $0.member("bytes", Int64(clamping: held.use.size))
                    }
                }
            }
            if let next = page.next { $0.member("next", next) }
        }
        return AdminAnswer.json(json.finish())
    }

    /// Tells the buckets of the public database to compare their references; answers how many have
    /// begun.
    func auditLinks(in container: ContainerReference) async throws -> HTTPResponse {
        guard let count = try await LinkAudit(self.people).begin(in: container) else {
            throw Refusal.missing("container that may be used")
        }
        try await self.note("references audit", "", container)
        var json = JSONWriter()
        json.object { $0.member("buckets", count) }
        return AdminAnswer.json(json.finish(), status: 202)
    }

    // MARK: Resetting

    /// Closes a development environment, to reset it to production's schema and no records;
    /// `…/reset/piece` does that, piece by piece. With `dryRun=1` it only tells what the schema
    /// would lose.
    func resetEnvironment(_ container: ContainerReference) async throws -> HTTPResponse {
        guard container.environment == .development else {
            throw Refusal(
                status: 409, code: "PRODUCTION_IS_CLOSED", reason: "production is never reset")
        }
        let query = URLQuery(self.request.head.query)
        let isDry = ["1", "true"].contains(query?["dryRun"])
        let changes = try await EnvironmentReset(self.people).changes(of: container)
        if !isDry {
            guard query?["confirm"] == container.container else {
                throw Refusal(
                    status: 409, code: "CONFIRMATION_NEEDED",
                    reason:
                        "this removes every record of the environment, and every type and field "
                        + "that production does not have: repeat the container's name as 'confirm'")
            }
            guard try await self.registry.beginReset(of: container) != nil else {
                throw Refusal.missing("container")
            }
            try await self.note("schema reset", "", container)
        }
        var json = JSONWriter()
        json.object {
            $0.member("state", isDry ? "active" : "resetting")
            $0.key("changes")
            $0.array { array in
                for change in changes { array.write(change.description) }
            }
        }
        return AdminAnswer.json(json.finish(), status: isDry ? 200 : 202)
    }

    func continueReset(_ container: ContainerReference) async throws -> HTTPResponse {
        guard let progress = try await EnvironmentReset(self.people).step(container) else {
            throw Refusal(
                status: 409, code: "NOT_RESETTING",
                reason: "this environment is not being reset")
        }
        if progress.isDone { try await self.note("schema reset done", "", container) }
        var json = JSONWriter()
        json.object {
            Self.write(progress, to: &$0)
            if progress.isDone { $0.member("version", Int64(clamping: progress.version)) }
        }
        return AdminAnswer.json(json.finish())
    }

    private static func write(_ progress: RemovalProgress, to json: inout JSONWriter) {
        json.member("isDone", progress.isDone)
        json.member("waitMilliseconds", progress.waitsMilliseconds)
        json.member("users", progress.userCount)
        json.member("zones", Int64(clamping: progress.zoneCount))
        json.member("records", Int64(clamping: progress.recordCount))
    }

    private static func write(
        _ container: ContainerReference, _ descriptor: ContainerDescriptor,
        to json: inout JSONWriter
    ) {
        json.member("container", container.container)
        json.member("environment", container.environment.name)
        json.member("state", descriptor.state.name)
        json.member("created", WallTime.text(descriptor.createdMilliseconds))
        if descriptor.deletedMilliseconds != 0 {
            json.member("deleted", WallTime.text(descriptor.deletedMilliseconds))
        }
        json.member("generation", Int64(clamping: descriptor.generation))
        json.member("buckets", descriptor.publicBucketCount)
    }
}
