import StratusContainers
import StratusHTTP
import StratusIdentity
import StratusModel
import StratusPlacement
import StratusQuery
import StratusRecords
import StratusRuntime

/// Containers: which there are, and the beginning and the end of one.
enum ContainerPages {
    static let routes: [AdminRoute] = [
        AdminRoute(
            "GET", "/v1/containers",
            answer: "every container"
        ) { try await Self.listContainers($0) },
        AdminRoute(
            "GET", "/v1/containers/{container}/environments/{environment}",
            answer: "the container, with counts"
        ) { try await Self.showContainer($0, $0.container()) },
        AdminRoute(
            "POST", "/v1/containers/{container}/environments/{environment}",
            body: "buckets, placement, zoneBuckets",
            answer: "the container that was made"
        ) { try await Self.createContainer($0, $0.container(), $0.json()) },
        AdminRoute(
            "DELETE", "/v1/containers/{container}/environments/{environment}",
            answer: "the container, whose access has ended (confirm=NAME)"
        ) { try await Self.deleteContainer($0, $0.container()) },
        AdminRoute(
            "POST", "/v1/containers/{container}/environments/{environment}/erasure",
            answer: "what this piece removed, and whether anything is left"
        ) { try await Self.eraseContainer($0, $0.container()) },
        AdminRoute(
            "GET", "/v1/containers/{container}/environments/{environment}/usage",
            answer: "the storage of each database, a page at a time (after=USER)"
        ) { try await Self.showUsage($0, of: $0.container()) },
        AdminRoute(
            "GET", "/v1/containers/{container}/environments/{environment}/places",
            answer: "the partitions of a user's private database (owner=USER, zone=NAME)"
        ) { try await Self.showPlaces($0, in: $0.container()) },
        AdminRoute(
            "POST", "/v1/containers/{container}/environments/{environment}/references/audit",
            answer: "how many buckets have begun"
        ) { try await Self.auditLinks($0, in: $0.container()) },
        AdminRoute(
            "POST", "/v1/containers/{container}/environments/{environment}/schema/reset",
            answer: "what the schema loses (dryRun=1, or confirm=NAME)"
        ) { try await Self.resetEnvironment($0, $0.container()) },
        AdminRoute(
            "POST", "/v1/containers/{container}/environments/{environment}/schema/reset/piece",
            answer: "what this piece removed, and whether anything is left"
        ) { try await Self.continueReset($0, $0.container()) },
    ]

    private static func listContainers(_ exchange: AdminExchange) async throws -> HTTPResponse {
        let all = try await exchange.registry.all()
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

    private static func showContainer(_ exchange: AdminExchange, _ container: ContainerReference)
        async throws -> HTTPResponse
    {
        guard let descriptor = try await exchange.registry.descriptor(of: container) else {
            throw AdminRefusal.missing("container")
        }
        let schema = try await exchange.schema(of: container)
        let tokens = try await exchange.access.tokens(in: container)
        let keys = try await exchange.access.keys(in: container)
        let users = try await exchange.access.users(in: container)
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
    /// records are spread. With `placement: zone`, the custom zones of each private database are
    /// spread over `zoneBuckets`. None of it can ever be changed.
    private static func createContainer(
        _ exchange: AdminExchange, _ container: ContainerReference, _ body: JSONValue?
    ) async throws
        -> HTTPResponse
    {
        let buckets = try Self.count("buckets", in: body, of: "the public database") ?? 1
        let zoneBuckets = try Self.zoneBuckets(body)
        switch try await ContainerCreation(exchange.directory).run(
            container, buckets: buckets, zoneBuckets: zoneBuckets)
        {
        case .created(let descriptor):
            await exchange.noteAfterwards("container create", "", container)
            var json = JSONWriter()
            json.object { Self.write(container, descriptor, to: &$0) }
            return AdminAnswer.json(json.finish(), status: 201)
        case .exists(let known):
            let isSame =
                known.publicBucketCount == buckets && known.zoneBucketCount == zoneBuckets
            let reason =
                isSame
                ? "" : ", with \(Self.description(of: known.layout)), which is never changed"
            throw AdminRefusal(409, "EXISTS", "this container already exists" + reason)
        case .isErasing:
            throw AdminRefusal(
                409, "CONTAINER_DELETED",
                "what the deleted container held is still being removed: run 'stratusctl "
                    + "container delete' again until it has finished")
        case .hasRecords:
            throw AdminRefusal(
                409, "HAS_RECORDS",
                "the public database already holds records, so its number of buckets can "
                    + "no longer change")
        }
    }

    private static func description(of layout: ContainerLayout) -> String {
        "buckets: \(layout.publicBucketCount)"
            + (layout.zoneBucketCount > 1
                ? ", placement: zone, zone buckets: \(layout.zoneBucketCount)" : "")
    }

    private static func count(
        _ key: String, in body: JSONValue?, of database: String
    ) throws -> Int? {
        guard let value = body?[key] else { return nil }
        guard let count = value.int64.flatMap({ Int(exactly: $0) }), Bucket.isOffered(count) else {
            throw AdminRefusal.bad(
                "'\(key)' must be a power of two from 1 to \(Bucket.countMax): the number of "
                    + "buckets of \(database)")
        }
        return count
    }

    private static func zoneBuckets(_ body: JSONValue?) throws -> Int {
        let count = try Self.count("zoneBuckets", in: body, of: "each private database")
        switch body?["placement"]?.string {
        case "zone":
            guard count != 1 else {
                throw AdminRefusal.bad("'placement: zone' needs at least 2 'zoneBuckets'")
            }
            return count ?? ContainerLayout.zoneBucketCountStandard
        case "whole", nil:
            guard body?["placement"] == nil || body?["placement"]?.string == "whole" else {
                throw AdminRefusal.bad("'placement' must be 'whole' or 'zone'")
            }
            guard count ?? 1 == 1 else {
                throw AdminRefusal.bad("'zoneBuckets' is for 'placement: zone' only")
            }
            return 1
        default: throw AdminRefusal.bad("'placement' must be 'whole' or 'zone'")
        }
    }

    /// Ends access and nothing else; `…/erasure` removes what the container held, piece by piece.
    private static func deleteContainer(_ exchange: AdminExchange, _ container: ContainerReference)
        async throws -> HTTPResponse
    {
        guard exchange.query?["confirm"] == container.container else {
            throw AdminRefusal(
                409, "CONFIRMATION_NEEDED",
                "this removes every record, token, key and session of the container: repeat its "
                    + "name as 'confirm'")
        }
        guard let descriptor = try await exchange.registry.beginErasure(of: container) else {
            throw AdminRefusal.missing("container")
        }
        await exchange.noteAfterwards("container delete", "", container)
        var json = JSONWriter()
        json.object { Self.write(container, descriptor, to: &$0) }
        return AdminAnswer.json(json.finish(), status: 202)
    }

    private static func eraseContainer(_ exchange: AdminExchange, _ container: ContainerReference)
        async throws -> HTTPResponse
    {
        guard let progress = try await ContainerErasure(exchange.directory).step(container) else {
            throw AdminRefusal(409, "NOT_DELETED", "this container is not being deleted")
        }
        if progress.isDone { await exchange.noteAfterwards("container erased", "", container) }
        var json = JSONWriter()
        json.object {
            Self.write(progress, to: &$0)
            if progress.isDone {
                $0.key("outstanding")
                $0.array {
                    $0.write("the schema, and how far each database had come")
                    $0.write("rows without an owner, until jobs have removed them")
                    $0.write(
                        "what it leaves in database files and in the log: within the hour, see "
                            + "'stratusctl user erasures'")
                    $0.write("copies of the data directory made before")
                }
            }
        }
        return AdminAnswer.json(json.finish())
    }

    /// Shows the usage of the container's databases. `after`: the page after this user.
    private static func showUsage(_ exchange: AdminExchange, of container: ContainerReference)
        async throws -> HTTPResponse
    {
        guard try await exchange.registry.descriptor(of: container) != nil else {
            throw AdminRefusal.missing("container")
        }
        let page = try await ContainerUsage(exchange.directory).page(
            of: container, after: exchange.query?["after"])
        var json = JSONWriter()
        json.object {
            $0.member("databases", objects: page.databases) { json, held in
                json.member("database", held.owner.isEmpty ? "public" : "private")
                if !held.owner.isEmpty { json.member("userRecordName", held.owner) }
                json.member("zones", Int64(clamping: held.zoneCount))
                json.member("records", Int64(clamping: held.use.recordCount))
                json.member("bytes", Int64(clamping: held.use.size))
            }
            if let next = page.next { $0.member("next", next) }
        }
        return AdminAnswer.json(json.finish())
    }

    /// Shows the partitions that a private database, or one zone of it, lies in.
    private static func showPlaces(
        _ exchange: AdminExchange, in container: ContainerReference
    ) async throws -> HTTPResponse {
        guard let owner = exchange.query?["owner"], !owner.isEmpty, !owner.utf8.contains(0) else {
            throw AdminRefusal.bad("'owner' is missing: a user's record name")
        }
        let places = try await DatabasePlaces(exchange.directory).places(
            of: owner, in: container, zone: exchange.query?["zone"])
        guard let places else { throw AdminRefusal.missing("container") }
        var json = JSONWriter()
        json.object {
            $0.key("places")
            $0.array { array in
                for place in places {
                    array.object {
                        $0.member("part", place.bucket.map { "bucket \($0)" } ?? "home")
                        if let partition = place.group.flatMap({ PartitionID(group: $0) }) {
                            $0.member("partition", "\(partition.raw)")
                        }
                        $0.member("inUse", place.isInUse)
                    }
                }
            }
        }
        return AdminAnswer.json(json.finish())
    }

    /// Tells the buckets of the public database to compare their references; answers how many have
    /// begun.
    private static func auditLinks(_ exchange: AdminExchange, in container: ContainerReference)
        async throws -> HTTPResponse
    {
        guard let count = try await LinkAudit(exchange.directory).begin(in: container) else {
            throw AdminRefusal.missing("container that may be used")
        }
        await exchange.noteAfterwards("references audit", "", container)
        var json = JSONWriter()
        json.object { $0.member("buckets", count) }
        return AdminAnswer.json(json.finish(), status: 202)
    }

    /// Closes a development environment, to reset it to production's schema and no records;
    /// `…/reset/piece` does that, piece by piece. With `dryRun=1` it only tells what the schema
    /// would lose.
    private static func resetEnvironment(_ exchange: AdminExchange, _ container: ContainerReference)
        async throws -> HTTPResponse
    {
        guard container.environment == .development else {
            throw AdminRefusal(409, "PRODUCTION_IS_CLOSED", "production is never reset")
        }
        let query = exchange.query
        let isDry = ["1", "true"].contains(query?["dryRun"])
        let changes = try await EnvironmentReset(exchange.directory).changes(of: container)
        if !isDry {
            guard query?["confirm"] == container.container else {
                throw AdminRefusal(
                    409, "CONFIRMATION_NEEDED",
                    "this removes every record of the environment, and every type and field "
                        + "that production does not have: repeat the container's name as 'confirm'")
            }
            guard try await exchange.registry.beginReset(of: container) != nil else {
                throw AdminRefusal.missing("container")
            }
            await exchange.noteAfterwards("schema reset", "", container)
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

    private static func continueReset(_ exchange: AdminExchange, _ container: ContainerReference)
        async throws -> HTTPResponse
    {
        guard let progress = try await EnvironmentReset(exchange.directory).step(container) else {
            throw AdminRefusal(409, "NOT_RESETTING", "this environment is not being reset")
        }
        if progress.isDone { await exchange.noteAfterwards("schema reset done", "", container) }
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
        json.member("placement", descriptor.zoneBucketCount > 1 ? "zone" : "whole")
        if descriptor.zoneBucketCount > 1 {
            json.member("zoneBuckets", descriptor.zoneBucketCount)
        }
    }
}
