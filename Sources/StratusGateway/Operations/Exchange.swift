import StratusCluster
import StratusCoding
import StratusHTTP
import StratusIdentity
import StratusModel
import StratusRecords
import StratusRows
import StratusRuntime
import StratusSealing

/// One request whose sender is known, on its way to the partitions and back.
///
/// It is what all services share: who asks and where, commands and reads, tokens, the schema, the
/// deadline. Services hold it and add what their operations mean.
final class Exchange: Sendable {
    let kernel: GatewayKernel
    let route: Route
    /// Nil where nothing keeps assets.
    let assets: AssetKit?
    let sender: Sender
    let holder: DatabaseHolder
    let head: RequestHead
    /// The body as received. A request's own name covers it.
    let body: Bytes
    let isSecure: Bool
    let room: AnswerRoom
    /// Held while much is read or written, and left before anything is waited for.
    let turn: LongWork.Turn
    /// Asks for the zone's token in answers that otherwise have none.
    let wantsSyncToken: Bool
    /// When the request was taken up.
    let begun: MonotonicTime
    let deadline: MonotonicTime
    let deadlineMilliseconds: Int64
    /// Who asks, within the bounds of this request.
    let caller: Caller

    /// - Parameter within: how long it may take; nil: as long as a command lives.
    init(
        kernel: GatewayKernel, assets: AssetKit?, route: Route, authentication: Authentication,
        head: RequestHead, body: Bytes, isSecure: Bool, room: AnswerRoom, turn: LongWork.Turn,
        within: Duration? = nil
    ) {
        self.turn = turn
        self.kernel = kernel
        self.route = route
        self.assets = assets
        self.sender = Sender(authentication: authentication)
        self.holder = DatabaseHolder(
            container: route.container, scope: route.scope,
            owner: authentication.principal.userRecordName, layout: authentication.layout)
        self.head = head
        self.body = body
        self.isSecure = isSecure
        self.room = room
        self.wantsSyncToken = URLQuery.isTrue(
            "getCurrentSyncToken", ofClient: head.query)
        let term = kernel.partitions.term()
        self.begun = kernel.world.now
        self.deadline = within.map { kernel.world.now + $0 } ?? term.end
        // A signed request may be sent again for as long as its signature is good; its outcome is
        // remembered for as long. One that somebody copied must not outlive its signature by a
        // gateway's wrong clock.
        let signed = authentication.signed?.deadlineMilliseconds
        self.deadlineMilliseconds = signed ?? term.milliseconds
        var caller = Caller(authentication.principal, in: route.container, until: self.deadline)
        caller.deadlineMilliseconds = self.deadlineMilliseconds
        caller.mayRunLater = signed == nil
        caller.room = room
        caller.turn = turn
        self.caller = caller
    }

    private init(_ other: Exchange, body: Bytes) {
        self.kernel = other.kernel
        self.route = other.route
        self.assets = other.assets
        self.sender = other.sender
        self.holder = other.holder
        self.head = other.head
        self.body = body
        self.isSecure = other.isSecure
        self.room = other.room
        self.turn = other.turn
        self.wantsSyncToken = other.wantsSyncToken
        self.begun = other.begun
        self.deadline = other.deadline
        self.deadlineMilliseconds = other.deadlineMilliseconds
        self.caller = other.caller
    }

    /// The same request, for one that is held: its body has been read and is let go.
    var withoutBody: Exchange { Exchange(self, body: []) }

    /// The same request, read on: with a deadline, a room and a turn of its own.
    func again(within patience: Duration? = nil) -> Exchange {
        Exchange(
            kernel: self.kernel, assets: self.assets, route: self.route,
            authentication: self.sender.authentication,
            head: self.head, body: self.body, isSecure: self.isSecure,
            room: AnswerRoom(of: self.kernel.answers), turn: self.turn.another(),
            within: patience)
    }

    /// The request's credentials as they stand now: who has waited may have been signed out.
    func judgeAgain() async throws {
        if self.sender.signed != nil {
            // A signature is good for a few minutes. The key is what counts.
            let key = Device.Registration(
                container: self.route.container, userRecordName: self.sender.name, isServerKey: true
            )
            guard try await self.kernel.authenticator.listener(key) != nil else {
                throw AuthenticationRefusal.failed(reason: "the key is not good any more")
            }
            return
        }
        let request = PresentedRequest(
            head: self.head, container: self.route.container, scope: self.route.scope,
            isSecure: self.isSecure)
        let now = try await self.kernel.authenticator.authenticate(request)
        guard now.principal.userRecordName == self.sender.name else {
            throw await self.kernel.authenticator.refusalWithoutUser(request)
        }
    }

    // MARK: Where

    /// Whether the request is about zones of others.
    var isShared: Bool { self.route.scope == .shared }

    /// Nil where the caller can have no such zone.
    ///
    /// A zone of the shared database lies in its owner's private one. Whether it is shared with the
    /// caller, the partition says that holds it: it is asked under the caller's own principal.
    func place(_ address: ZoneAddress) -> ZonePlace? {
        guard let zone = address.resolved(in: self.route.scope, caller: self.sender.name) else {
            return nil
        }
        if self.isShared { return self.sharedPlace(zone) }
        let count = self.holder.layout.publicBucketCount
        return ZonePlace(
            zone: zone, database: self.holder.spread?.part(of: zone.name) ?? self.holder.database,
            buckets: self.route.scope == .public && zone.isDefault && count > 1
                ? Bucket(0, of: count) : nil)
    }

    /// Nobody shares a default zone, and nobody shares with themself.
    func sharedPlace(_ zone: ZoneID) -> ZonePlace? {
        guard zone.owner != self.sender.name, NameRules.isUserRecordName(zone.owner),
            !zone.isDefault, !zone.isReserved
        else { return nil }
        let database = self.holder.layout.privateDatabase(
            of: zone.owner, in: self.route.container)
        return ZonePlace(zone: zone, database: database.part(of: zone.name))
    }

    /// Whose database a place is in.
    func holder(of place: ZonePlace) -> DatabaseHolder {
        guard self.isShared else { return self.holder }
        return DatabaseHolder(
            container: self.route.container, scope: .private, owner: place.zone.owner,
            layout: self.holder.layout)
    }

    func requiredPlace(_ address: ZoneAddress) throws(InputRefusal) -> ZonePlace {
        guard let place = self.place(address) else { throw .zoneNotFound }
        return place
    }

    func id(_ zone: ZoneSummary) -> ZoneID {
        ZoneID(name: zone.name, owner: self.holder.database.owner)
    }

    /// The zone as the client named it, for an error about an address that resolves to no zone.
    func echo(_ address: ZoneAddress) -> ZoneID {
        ZoneID(name: address.name, owner: address.owner ?? self.sender.name)
    }

    /// Refuses a caller without a user. A caller with only an API token may read what the world may
    /// read, and nothing else.
    func requireUser() async throws {
        guard self.sender.principal.kind != .anonymous else {
            throw await self.kernel.authenticator.refusalWithoutUser(
                PresentedRequest(
                    head: self.head, container: self.route.container, scope: self.route.scope,
                    isSecure: self.isSecure))
        }
    }

    var cipher: TokenCipher { self.kernel.cipher }

    // MARK: Commands and reads

    func ask<Question: PartitionQuestion>(
        _ question: Question, at key: ShardKey, as caller: Caller? = nil
    ) async throws -> Question.Answer where Question.Refusal == RequestRefusal {
        do throws(RecordsError) {
            return try await self.kernel.partitions.ask(
                question, at: .key(key), as: caller ?? self.caller)
        } catch { throw ClientError.told(error) }
    }

    func ask(
        _ ask: RecordQuery.Ask, at key: ShardKey, as caller: Caller? = nil
    ) async throws -> RecordAnswer {
        do throws(RecordsError) {
            return try await self.kernel.partitions.ask(
                ask, at: .key(key), as: caller ?? self.caller)
        } catch { throw ClientError.told(error) }
    }

    /// The zone as it is; nil for one never written. Not found is the whole request's error.
    func summary(of place: ZonePlace) async throws -> ZoneSummary? {
        guard
            case .zones(let zones) = try await self.ask(
                .zones(place.home, names: [place.zone.name]), at: place.key)
        else { throw RouteError.otherKind }
        switch zones.first {
        case .zone(let zone): return zone
        case .refused(let refusal): throw ClientError(refusal)
        case nil: return nil
        }
    }

    /// The limits and flags that partitions check records and databases against.
    var rules: RecordRules {
        var rules = RecordRules(
            limits: self.kernel.limits, flags: self.kernel.settings.ruleFlags)
        let quota =
            self.route.scope == .public
            ? self.kernel.limits.publicDatabaseSizeMax
            : self.kernel.limits.privateDatabaseSizeMax
        rules.databaseSizeMax = UInt64(quota.raw)
        return rules
    }

    /// - Throws: what the whole command was refused for, as the partition says it.
    func submit(
        _ command: RecordCommand, to key: ShardKey, schema: Schema, as caller: Caller? = nil,
        identity: RequestIdentity
    ) async throws(RecordsError) -> RecordOutcome {
        var command = command
        self.raise(&command)
        let database =
            switch command {
            case .modifyRecords, .modifyZones, .modifyDocuments: command.database
            default: DatabaseID?.none
            }
        do throws(RecordsError) {
            let outcome = try await self.kernel.partitions.submit(
                command, at: .key(key), as: caller ?? self.caller, identity: identity,
                schemaVersion: schema.version)
            if let database { self.kernel.stirred(database) }
            return outcome
        } catch {
            if case .refused = error, let database { self.kernel.stirred(database) }
            throw error
        }
    }

    /// A command as Stratus itself.
    func submitAsSystem(
        _ command: RecordCommand, to key: ShardKey, schema: Schema = Schema()
    ) async throws -> RecordOutcome {
        var caller = self.caller
        caller.principal = Principal(kind: .system)
        do throws(RecordsError) {
            return try await self.submit(
                command, to: key, schema: schema, as: caller,
                identity: self.kernel.world.drawIdentity())
        } catch { throw ClientError.told(error) }
    }

    /// What a command makes begins above every tag that the container had before it was made again.
    private func raise(_ command: inout RecordCommand) {
        let floor = self.holder.layout.tagFloor
        guard floor != 0 else { return }
        if case .modifyRecords(let modify) = command, modify.zone != ZoneID.defaultName { return }
        command.tagFloor = floor
    }

    /// Submits to a database's partition, which may first have to learn the schema that the command
    /// was compiled for.
    ///
    /// - Parameter part: tells the commands of one request apart.
    /// - Returns: the outcome, and under which identity it was decided.
    func submit(
        _ command: RecordCommand, to database: DatabaseID, schema: Schema, part: Bytes = []
    ) async throws -> (outcome: RecordOutcome, identity: RequestIdentity) {
        let key = ShardKey.database(database)
        do throws(RecordsError) {
            let identity = self.identity(attempt: 0, part: part)
            return (
                try await self.submit(command, to: key, schema: schema, identity: identity),
                identity
            )
        } catch {
            guard case .refused(let refusal) = error, refusal.reason == .schemaBehind else {
                throw ClientError.told(error)
            }
        }
        try await self.install(schema, at: key)
        do throws(RecordsError) {
            let identity = self.identity(attempt: 1, part: part)
            return (
                try await self.submit(command, to: key, schema: schema, identity: identity),
                identity
            )
        } catch { throw ClientError.told(error) }
    }

    /// An operation on a database as the caller.
    ///
    /// - Parameter part: tells the commands of one request apart.
    func submit<Operation: DatabaseOperation<RecordState>>(
        _ operation: Operation, part: Bytes = []
    ) async throws -> Operation.Outcome {
        do throws(RecordsError) {
            return try await self.kernel.partitions.submit(
                operation, at: .database(operation.database), as: self.caller,
                identity: self.identity(attempt: 0, part: part))
        } catch { throw ClientError.told(error) }
    }

    func install(_ schema: Schema, at key: ShardKey) async throws {
        _ = try await self.submitAsSystem(.schema(.install(schema)), to: key, schema: schema)
    }

    // MARK: Schema

    /// The container's schema, at most `schemaLifetime` old.
    ///
    /// - Parameter fresh: asks the container's home, whatever is in memory.
    func schema(fresh: Bool = false) async throws -> Schema {
        let container = self.route.container
        let now = self.kernel.world.now
        if !fresh,
            let kept = self.kernel.caches.schemas.schema(
                of: container, at: now, lifetime: self.kernel.settings.schemaLifetime)
        {
            return kept
        }
        guard
            case .schema(let found) = try await self.ask(
                .schema(container), at: .container(container))
        else { throw RouteError.otherKind }
        let schema = found ?? Schema()
        self.kernel.caches.schemas.keep(schema, of: container, at: now)
        return schema
    }

    /// Whether a partition's copy of the schema is older than this one.
    func isBehind(_ schema: Schema, at key: ShardKey) async throws -> Bool {
        guard schema.version > 0,
            case .schema(let held) = try await self.ask(.schema(self.route.container), at: key)
        else { return false }
        return held?.version ?? 0 < schema.version
    }

    /// Makes sure that the partition of a public database decides by this schema who may read what.
    /// Its own copy may be older and let in whom this one keeps out, and otherwise only a save
    /// brings it up to date.
    func teach(_ schema: Schema, to database: DatabaseID) async throws {
        let taught = self.kernel.caches.taughtSchemas
        guard database.scope == .public, !taught.holds(schema.version, at: database) else { return }
        let key = ShardKey.database(database)
        if try await self.isBehind(schema, at: key) {
            // A partition that refuses the schema says so to saves; reads go on.
            do { try await self.install(schema, at: key) } catch is ClientError {}
        }
        taught.note(schema.version, at: database)
    }

    /// The schema that reads are judged by; nil where the container's home does not answer within a
    /// second. Credentials stand at the same home, so a gateway that cannot reach it soon believes
    /// none.
    func schemaToReadBy() async -> Schema? {
        let container = self.route.container
        let now = self.kernel.world.now
        let schemas = self.kernel.caches.schemas
        if let kept = schemas.schema(
            of: container, at: now, lifetime: self.kernel.settings.schemaLifetime)
        {
            return kept
        }
        var caller = self.caller
        caller.end = min(self.deadline, now + .seconds(1))
        let answer = try? await self.ask(
            .schema(container), at: .container(container), as: caller)
        guard case .schema(let found)? = answer else { return nil }
        let schema = found ?? Schema()
        schemas.keep(schema, of: container, at: now)
        return schema
    }

    /// Makes types and fields at the container's home; of two requests that make the same field the
    /// first decides its type.
    func extendSchema(with types: [RecordType]) async throws -> Schema {
        _ = try await self.submitAsSystem(
            .schema(.extend(types)), to: .container(self.route.container),
            schema: try await self.schema())
        return try await self.schema(fresh: true)
    }

    // MARK: Draws

    /// Names the command. A client that names its request itself may send it again: the command is
    /// carried out once. The name is good for this caller, this operation and this very body, so
    /// that one used twice by mistake hides nothing.
    func identity(attempt: UInt8, part: Bytes = []) -> RequestIdentity {
        guard let name = self.requestName else { return self.kernel.world.drawIdentity() }
        var writer = ByteWriter()
        writer.write(text: self.sender.name)
        writer.write(text: name)
        writer.write(text: self.route.label)
        writer.write(prefixed: self.body)
        writer.write(attempt)
        writer.write(raw: part)
        return self.cipher.identity(of: self.feedPlace(nil, "").circumstances(0x10, writer.bytes))
    }

    /// The client's name for this request, the same if the client sends it again. A signature is a
    /// name that nobody else can give, and it covers the request's content.
    private var requestName: String? {
        if let signed = self.sender.signed { return Hexadecimal.text(signed.identity) }
        guard let name = self.head.headers["X-Stratus-Request-ID"], !name.isEmpty else {
            return nil
        }
        return name
    }

    /// The source of record names and the like. It is unpredictable, except for a request that has
    /// a name: a repeat of it must draw the same.
    func draws() -> Draws {
        guard self.requestName != nil else {
            return Draws { [world = self.kernel.world] in world.random() }
        }
        let identity = self.identity(attempt: .max)
        var generator = SeededGenerator(seed: identity.high ^ identity.low)
        return Draws { generator.next() }
    }
}
