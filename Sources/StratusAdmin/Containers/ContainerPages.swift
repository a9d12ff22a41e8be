import StratusAdminModel
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
            "GET", "/v1/containers/{container}",
            answer: "the environments of one container"
        ) { try await Self.listEnvironments($0) },
        AdminRoute(
            "GET", "/v1/containers/{container}/environments/{environment}",
            answer: "the container, with counts"
        ) { try await Self.showContainer($0, $0.container()) },
        AdminRoute(
            "POST", "/v1/containers/{container}/environments/{environment}",
            body: "buckets, placement, zoneBuckets",
            answer: "the container that was made"
        ) { try await Self.createContainer($0, $0.namedContainer(), $0.body()) },
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
        ) { try await Self.showPlaces($0, in: $0.namedContainer()) },
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
        Self.copyRoute,
    ]

    private static func listContainers(_ exchange: AdminExchange) async throws -> HTTPResponse {
        let all = try await exchange.registry.all()
        return AdminAnswer.json(Listing(all.map { ContainerAnswer($0, $1) }))
    }

    private static func listEnvironments(_ exchange: AdminExchange) async throws -> HTTPResponse {
        let name = exchange.parameter("container")
        guard ContainerReference.isName(name) else {
            throw AdminRefusal.bad(ContainerReference.refusal(of: name))
        }
        var found: [ContainerAnswer] = []
        for environment in Environment.allCases {
            let container = ContainerReference(container: name, environment: environment)
            if let descriptor = try await exchange.registry.descriptor(of: container) {
                found.append(ContainerAnswer(container, descriptor))
            }
        }
        return AdminAnswer.json(Listing(found))
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
        return AdminAnswer.json(
            ContainerDetails {
                $0.container = ContainerAnswer(container, descriptor)
                $0.schemaVersion = Int64(clamping: schema.version)
                $0.recordTypes = Int64(schema.types.count)
                $0.tokens = Int64(tokens.count)
                $0.keys = Int64(keys.count)
                $0.users = Int64(users.count)
            })
    }

    /// Creates a container. `buckets` in the body is the number over which the public database's
    /// records are spread. With `placement: zone`, the custom zones of each private database are
    /// spread over `zoneBuckets`. None of it can ever be changed.
    private static func createContainer(
        _ exchange: AdminExchange, _ container: ContainerReference, _ body: ContainerBody
    ) async throws
        -> HTTPResponse
    {
        let buckets = try Self.count("buckets", body.buckets, of: "the public database") ?? 1
        let zoneBuckets = try Self.zoneBuckets(body)
        switch try await ContainerCreation(exchange.directory).run(
            container, buckets: buckets, zoneBuckets: zoneBuckets)
        {
        case .created(let descriptor):
            await exchange.noteAfterwards("container create", "", container)
            return AdminAnswer.json(ContainerAnswer(container, descriptor), status: 201)
        case .exists(let known):
            let isSame =
                known.publicBucketCount == buckets && known.zoneBucketCount == zoneBuckets
            let reason =
                isSame
                ? "" : ", with \(Self.description(of: known.layout)), which is never changed"
            throw AdminRefusal(409, .exists, "this container already exists" + reason)
        case .isErasing:
            throw AdminRefusal(
                409, .containerDeleted,
                "what the deleted container held is still being removed: run 'stratusctl "
                    + "container delete' again until it has finished")
        case .hasRecords:
            throw AdminRefusal(
                409, .hasRecords,
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
        _ name: String, _ given: Int64?, of database: String
    ) throws -> Int? {
        guard let given else { return nil }
        guard let count = Int(exactly: given), Bucket.isOffered(count) else {
            throw AdminRefusal.bad(
                "'\(name)' must be a power of two from 1 to \(Bucket.countMax): the number of "
                    + "buckets of \(database)")
        }
        return count
    }

    private static func zoneBuckets(_ body: ContainerBody) throws -> Int {
        let count = try Self.count("zoneBuckets", body.zoneBuckets, of: "each private database")
        switch body.placement {
        case "zone":
            guard count != 1 else {
                throw AdminRefusal.bad("'placement: zone' needs at least 2 'zoneBuckets'")
            }
            return count ?? ContainerLayout.zoneBucketCountStandard
        case "whole", nil:
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
                409, .confirmationNeeded,
                "this removes every record, token, key and session of the container: repeat its "
                    + "name as 'confirm'")
        }
        guard let descriptor = try await exchange.registry.beginErasure(of: container) else {
            throw AdminRefusal.missing("container")
        }
        await exchange.noteAfterwards("container delete", "", container)
        return AdminAnswer.json(ContainerAnswer(container, descriptor), status: 202)
    }

    private static func eraseContainer(_ exchange: AdminExchange, _ container: ContainerReference)
        async throws -> HTTPResponse
    {
        guard let progress = try await ContainerErasure(exchange.directory).step(container) else {
            throw AdminRefusal(409, .notDeleted, "this container is not being deleted")
        }
        if progress.isDone { await exchange.noteAfterwards("container erased", "", container) }
        var answer = RemovalAnswer(progress)
        if progress.isDone {
            answer.outstanding = [
                "the schema, and how far each database had come",
                "rows without an owner, until jobs have removed them",
                "what it leaves in database files and in the log: within the hour, see "
                    + "'stratusctl user erasures'",
                "copies of the data directory made before",
            ]
        }
        return AdminAnswer.json(answer)
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
        return AdminAnswer.json(
            UsageAnswer {
                $0.databases = page.databases.map { held in
                    DatabaseUsage {
                        $0.database = held.owner.isEmpty ? "public" : "private"
                        $0.userRecordName = held.owner.isEmpty ? nil : held.owner
                        $0.email = held.email
                        $0.zones = Int64(clamping: held.zoneCount)
                        $0.records = Int64(clamping: held.use.recordCount)
                        $0.bytes = Int64(clamping: held.use.size)
                    }
                }
                $0.next = page.next
            })
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
        return AdminAnswer.json(
            Listing(
                places.map { place in
                    PlaceAnswer {
                        $0.part = place.bucket.map { "bucket \($0)" } ?? "home"
                        $0.partition = place.group.flatMap { PartitionID(group: $0) }
                            .map { "\($0.raw)" }
                        $0.isInUse = place.isInUse
                    }
                }))
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
        return AdminAnswer.json(BucketsAnswer { $0.buckets = Int64(count) }, status: 202)
    }

    /// Closes a development environment, to reset it to production's schema and no records;
    /// `…/reset/piece` does that, piece by piece. With `dryRun=1` it only tells what the schema
    /// would lose.
    private static func resetEnvironment(_ exchange: AdminExchange, _ container: ContainerReference)
        async throws -> HTTPResponse
    {
        guard container.environment == .development else {
            throw AdminRefusal(409, .productionIsClosed, "production is never reset")
        }
        let query = exchange.query
        let isDry = ["1", "true"].contains(query?["dryRun"])
        let changes = try await EnvironmentReset(exchange.directory).changes(of: container)
        if !isDry {
            guard query?["confirm"] == container.container else {
                throw AdminRefusal(
                    409, .confirmationNeeded,
                    "this removes every record of the environment, and every type and field "
                        + "that production does not have: repeat the container's name as 'confirm'")
            }
            guard try await exchange.registry.beginReset(of: container) != nil else {
                throw AdminRefusal.missing("container")
            }
            await exchange.noteAfterwards("schema reset", "", container)
        }
        return AdminAnswer.json(
            ResetAnswer {
                $0.state = isDry ? "active" : "resetting"
                $0.changes = changes.map(\.description)
            }, status: isDry ? 200 : 202)
    }

    private static func continueReset(_ exchange: AdminExchange, _ container: ContainerReference)
        async throws -> HTTPResponse
    {
        guard let progress = try await EnvironmentReset(exchange.directory).step(container) else {
            throw AdminRefusal(409, .notResetting, "this environment is not being reset")
        }
        if progress.isDone { await exchange.noteAfterwards("schema reset done", "", container) }
        var answer = RemovalAnswer(progress)
        if progress.isDone { answer.version = Int64(clamping: progress.version) }
        return AdminAnswer.json(answer)
    }
}

extension RemovalAnswer {
    init(_ progress: RemovalProgress) {
        self.init()
        self.isDone = progress.isDone
        self.waitMilliseconds = progress.waitsMilliseconds
        self.users = Int64(progress.userCount)
        self.zones = Int64(clamping: progress.zoneCount)
        self.records = Int64(clamping: progress.recordCount)
    }
}

extension ContainerAnswer {
    init(_ container: ContainerReference, _ descriptor: ContainerDescriptor) {
        self.init()
        self.container = container.container
        self.environment = container.environment.name
        self.state = descriptor.state.name
        self.created = WallTime.text(descriptor.createdMilliseconds)
        if descriptor.deletedMilliseconds != 0 {
            self.deleted = WallTime.text(descriptor.deletedMilliseconds)
        }
        self.generation = Int64(clamping: descriptor.generation)
        self.buckets = Int64(descriptor.publicBucketCount)
        self.placement = descriptor.zoneBucketCount > 1 ? "zone" : "whole"
        self.zoneBuckets =
            descriptor.zoneBucketCount > 1 ? Int64(descriptor.zoneBucketCount) : nil
    }
}
