import StratusCluster
import StratusHTTP
import StratusIdentity
import StratusModel
import StratusQuery
import StratusRecords
import StratusRuntime
import StratusSealing

/// `records/modify`: reads the operations, compiles them by the schema, submits them, and writes
/// what became of each.
struct ModifyService: Sendable {
    let exchange: Exchange

    var lookUps: LookUpService { LookUpService(exchange: self.exchange) }

    /// `records/modify`. What the gateway itself finds wrong with an operation is that operation's
    /// error; the others go to the partition, unless the batch is atomic.
    func modify(_ input: Input) async throws -> Bytes {
        var draws = self.exchange.draws()
        let request = try ModifyRequest(input, limits: self.exchange.kernel.limits, draws: &draws)
        let place = try self.exchange.requiredPlace(request.zone)
        if self.exchange.isShared {
            if let denial = try await self.exchange.denial(at: place) {
                return await self.modifyAnswer(
                    request.operations.map { _ in .refused(denial) }, .none, .none,
                    request: request, zone: nil, at: place)
            }
            // A stranger makes no key in somebody's database, and writes nothing into its log.
            _ = try await self.exchange.summary(of: place)
        }
        let isAtomic = try self.isAtomic(request.atomic, in: place)
        let batch = try await self.compile(request, at: place, isAtomic: isAtomic)
        let (compiled, schema) = (batch.operations, batch.schema)

        let failed = compiled.contains { if case .failure = $0 { true } else { false } }
        let accepted = compiled.compactMap { try? $0.get() }
        var items = compiled.map { result in
            switch result {
            // Replaced below by what the partition says, unless an atomic batch has failed already.
            case .success: Item.refused(.atomicFailure)
            case .failure(let error): Item.refused(error)
            }
        }
        let zone: ZoneSummary?
        var results: [OperationResult] = []
        var modify = ModifyRecords(
            database: place.database, zone: place.zone.name, isAtomic: isAtomic,
            drawnIncarnation: draws.incarnation(), rules: self.exchange.rules, operations: accepted)
        modify.resolvesAssets = accepted.contains(where: \.hasAssets)
        if accepted.isEmpty {
            zone = try await self.exchange.summary(of: place)
        } else if isAtomic && failed {
            zone = try await self.exchange.summary(of: place)
            // Nothing will happen, and the client learns everything that is wrong at once.
            let refusals = try await self.judge(modify, schema: schema, growth: batch.growth)
            var next = refusals.makeIterator()
            for (position, result) in compiled.enumerated() {
                guard case .success(let operation) = result, let refusal = next.next() else {
                    continue
                }
                if let refusal { items[position] = .refused(self.error(refusal, of: operation)) }
            }
        } else if let buckets = place.buckets {
            zone = self.exchange.wantsSyncToken ? try await self.exchange.summary(of: place) : nil
            results = await self.modify(modify, in: buckets, at: place, schema: schema)
        } else {
            (results, zone) = try await self.modifyWhole(modify, at: place, schema: schema)
        }
        if results.isEmpty {
            return await self.modifyAnswer(
                items, .none, .none, request: request, zone: zone, at: place)
        }
        do {
            let remembered = try await self.remembered(results, of: accepted, at: place)
            var next = self.items(results, of: accepted, remembered: remembered).makeIterator()
            for (position, result) in compiled.enumerated() {
                if case .success = result, let item = next.next() { items[position] = item }
            }
            let saved = items.compactMap { item in
                if case .saved(let record) = item { record } else { nil as Record? }
            }
            let opened = try await self.exchange.opened(saved, with: batch.sealer)
            let shares = try await self.exchange.shownShares(of: saved, at: place)
            for case .success(.left(let note)) in results {
                await self.exchange.noteLeft(note, of: place)
            }
            return await self.modifyAnswer(
                items, opened, shares, request: request, zone: zone, at: place)
        } catch {
            // Who was removed meanwhile is told that, whatever became of the request.
            if self.exchange.isShared, ClientError(error).code == .zoneNotFound { throw error }
            // What the answer needs cannot be read. "Nothing was done" would be wrong by now.
            guard Self.hasCommitted(results) else { throw error }
            throw RouteError.outcomeUnknown
        }
    }

    /// Makes records of which all is known. Each operation is decided by itself.
    func create(
        _ operations: [RecordOperation], at place: ZonePlace, schema: Schema
    ) async throws -> [OperationResult] {
        var draws = self.exchange.draws()
        var modify = ModifyRecords(
            database: place.database, zone: place.zone.name, isAtomic: false,
            drawnIncarnation: draws.incarnation(), rules: self.exchange.rules,
            operations: operations)
        modify.resolvesAssets = operations.contains(where: \.hasAssets)
        if let buckets = place.buckets {
            return await self.modify(modify, in: buckets, at: place, schema: schema)
        }
        return try await self.modifyWhole(modify, at: place, schema: schema).results
    }

    /// A request to a zone that lies whole in one partition.
    private func modifyWhole(
        _ modify: ModifyRecords, at place: ZonePlace, schema: Schema
    ) async throws -> (results: [OperationResult], zone: ZoneSummary?) {
        var modify = modify
        if let spread = self.exchange.holder(of: place).spread,
            !modify.operations.allSatisfy(\.kind.isDelete)
        {
            let parts = SpreadParts(spread)
            if let bounds = await self.sizeBounds(of: parts, spread) {
                modify.rules.databaseSizeMax = bounds[parts.number(of: place.database)]
            }
        }
        await self.cutWords(of: &modify, by: schema)
        let outcome = try await self.exchange.submit(
            .modifyRecords(modify), to: place.database, schema: schema
        ).outcome
        guard case .records(let modified) = outcome,
            modified.results.count == modify.operations.count
        else { throw RouteError.otherKind }
        return (
            modified.results.map { .success(Self.saying(self.exchange.rules, $0)) },
            modified.zone
        )
    }

    private static func hasCommitted(_ results: [OperationResult]) -> Bool {
        results.contains { result in
            switch result {
            case .success(.saved), .success(.deleted), .success(.left): true
            case .success(.refused), .failure: false
            }
        }
    }

    /// One entry of the answer.
    private enum Item {
        case saved(Record)
        case deleted
        case refused(ClientError)
    }

    /// In custom zones a batch is atomic unless the client says otherwise; in default zones it
    /// never is, and asking for it is a mistake.
    private func isAtomic(_ wish: Bool?, in place: ZonePlace) throws(InputRefusal) -> Bool {
        guard place.zone.isDefault else { return wish ?? true }
        guard wish == true else { return false }
        // No entry of one log decides for several buckets.
        if place.buckets == nil,
            self.exchange.rules.flags.contains(.batchesInDefaultZoneMayBeAtomic)
        {
            return true
        }
        throw .atomicInDefaultZone
    }

    // MARK: Words

    /// Texts below this size are cut where they are indexed.
    static let cutTextSizeMin = 4 << 10

    /// Cuts long texts into words here, and not where they are indexed: there everybody waits for
    /// the storage thread. One text at a time, and on no event loop.
    func cutWords(of modify: inout ModifyRecords, by schema: Schema) async {
        for operation in modify.operations {
            for field in operation.fields {
                guard Self.textSize(field.value) >= Self.cutTextSizeMin,
                    Self.isSearchable(field.name, of: operation.recordType, in: schema)
                else { continue }
                let words = await Task.detached { TextWords(of: field.value) }.value
                modify.words.append(
                    ModifyRecords.CutText(
                        recordName: operation.recordName, field: field.name, words: words))
            }
        }
    }

    private static func textSize(_ value: FieldValue) -> Int {
        switch value {
        case .scalar(.string(let text)): text.utf8.count
        case .list(.string, let elements):
            elements.reduce(0) { size, element in
                if case .string(let text) = element { size + text.utf8.count } else { size }
            }
        case .scalar, .list, .sealed: 0
        }
    }

    /// Whether the field is SEARCHABLE; where the operation names no type, in any type.
    private static func isSearchable(
        _ field: String, of type: String?, in schema: Schema
    ) -> Bool {
        schema.types.contains { known in
            (type == nil || known.name == type)
                && known.field(named: field)?.indexes.contains(.searchable) == true
        }
    }

    // MARK: Compiling

    /// A request's operations, read by a schema.
    private struct CompiledBatch {
        var operations: [Result<RecordOperation, ClientError>]
        var schema: Schema
        var sealer: FieldSealer?
        /// What the schema lacks for them. It does not grow by that: nothing of the batch happens.
        var growth: [RecordType] = []
    }

    private func compile(
        _ request: ModifyRequest, at place: ZonePlace, isAtomic: Bool
    ) async throws -> CompiledBatch {
        let storedTypes = try await self.storedTypes(request, at: place)
        // What a record may hold whose type nobody knows, only the newest schema says.
        var isFresh =
            place.database.scope == .private
            && request.operations.contains {
                Self.needsStoredType($0) && storedTypes[$0.recordName] == nil
            }
        var hasGrown = false
        // What the partition has against operations whatever the schema becomes.
        var refused: [Int: ClientError] = [:]
        var sealer: FieldSealer?
        while true {
            let schema = try await self.exchange.schema(fresh: isFresh)
            if sealer == nil { sealer = try await self.sealer(request, schema, storedTypes, place) }
            var compiler = OperationCompiler(
                schema: schema,
                reader: FieldReader(
                    zone: place.zone, scope: self.exchange.route.scope,
                    caller: self.exchange.sender.name, receipts: self.exchange.receipts,
                    sealer: sealer),
                isProduction: self.exchange.route.container.environment == .production,
                growsSchema: self.exchange.kernel.settings.growsSchema(
                    in: self.exchange.route.container.environment),
                storedTypes: storedTypes, links: self.links(for: request, at: place))
            var compiled = request.operations.map { compiler.compile($0) }
            for (position, error) in refused { compiled[position] = .failure(error) }
            let missing = compiler.missing.filter { refused[$0.operation] == nil }
            if missing.isEmpty, isFresh || !compiler.hasMisfit {
                return CompiledBatch(
                    operations: compiled, schema: compiler.schema, sealer: sealer)
            }
            if !isFresh {
                // The schema in memory may be older than what somebody just made or changed.
                isFresh = true
            } else if self.exchange.kernel.settings.growsSchema(
                in: self.exchange.route.container.environment),
                !hasGrown
            {
                // A save that is refused makes no types and fields.
                refused = try await self.refusedAnyway(
                    compiled, lacking: missing, by: compiler, at: place, isAtomic: isAtomic)
                for (position, error) in refused { compiled[position] = .failure(error) }
                let mayHappen =
                    !isAtomic
                    || compiled.allSatisfy { if case .success = $0 { true } else { false } }
                let wanted = missing.filter { refused[$0.operation] == nil }.map(\.type)
                guard mayHappen else {
                    return CompiledBatch(
                        operations: compiled, schema: compiler.schema, sealer: sealer,
                        growth: wanted)
                }
                if !wanted.isEmpty { _ = try await self.exchange.extendSchema(with: wanted) }
                hasGrown = true
            } else {
                let closed = compiled.map { result in
                    result.flatMap { operation in
                        compiler.refusal(of: operation).map { .failure($0) }
                            ?? .success(operation)
                    }
                }
                return CompiledBatch(operations: closed, schema: compiler.schema, sealer: sealer)
            }
        }
    }

    /// Nil where no operation needs a short GUID, or the place has none.
    private func links(for request: ModifyRequest, at place: ZonePlace) -> ZoneLinks? {
        guard request.operations.contains(where: { $0.drawnGUID != nil }) else { return nil }
        return ZoneLinks(self.exchange.kernel.identities, of: place)
    }

    /// What seals the encrypted fields of a request. Nil where it has none.
    private func sealer(
        _ request: ModifyRequest, _ schema: Schema, _ storedTypes: [String: String],
        _ place: ZonePlace
    ) async throws -> FieldSealer? {
        guard place.database.scope == .private,
            request.operations.contains(where: {
                OperationCompiler.needsSealing($0, by: schema, storedTypes: storedTypes)
            })
        else { return nil }
        return try await self.exchange.kernel.keys.fieldSealer(of: place.database)
    }

    /// Returns what is refused whatever the schema becomes: a record that exists, another tag, a
    /// zone that is not there. The batch is judged by the schema as it will be, because a record of
    /// a known type may need one of a type that this batch brings.
    ///
    /// What is refused brings nothing. So where an operation that brings something is refused, the
    /// others are judged once more without it: the first that names a field says its type.
    private func refusedAnyway(
        _ compiled: [Result<RecordOperation, ClientError>],
        lacking missing: [(operation: Int, type: RecordType)], by compiler: OperationCompiler,
        at place: ZonePlace, isAtomic: Bool
    ) async throws -> [Int: ClientError] {
        // A bucket holds some of the records only. What is wrong with the growth itself, the command
        // says that makes it.
        guard place.buckets == nil,
            case .success = SchemaRules.extending(compiler.schema, with: missing.map(\.type))
        else { return [:] }
        let positions = compiled.indices.filter {
            if case .success = compiled[$0] { true } else { false }
        }
        let operations = compiled.compactMap { try? $0.get() }
        var modify = ModifyRecords(
            database: place.database, zone: place.zone.name, isAtomic: isAtomic,
            drawnIncarnation: ZoneIncarnation(0), rules: self.exchange.rules, operations: operations
        )
        modify.resolvesAssets = operations.contains(where: \.hasAssets)
        func judged(_ growth: [RecordType]) async throws -> [Int: RecordRefusal] {
            let refusals = try await self.judge(modify, schema: compiler.schema, growth: growth)
            return Dictionary(
                uniqueKeysWithValues: zip(positions, refusals).compactMap { position, refusal in
                    refusal.map { (position, $0) }
                })
        }
        var refusals = try await judged(missing.map(\.type))
        let spoilt = Set(missing.map(\.operation)).filter { position in
            refusals[position].map { $0.reason != .fieldTypeMismatch } ?? false
        }
        if !spoilt.isEmpty, refusals.keys.contains(where: { !spoilt.contains($0) }) {
            let left = missing.filter { !spoilt.contains($0.operation) }.map(\.type)
            let again = try await judged(left)
            refusals = refusals.filter { spoilt.contains($0.key) }.merging(again) { one, _ in one }
        }
        var refused: [Int: ClientError] = [:]
        for (position, operation) in zip(positions, operations) {
            refused[position] = refusals[position].map { self.error($0, of: operation) }
        }
        return refused
    }

    /// The types of the records whose operations name none but bring fields: their fields are read
    /// by the schema too.
    private func storedTypes(
        _ request: ModifyRequest, at place: ZonePlace
    ) async throws -> [String: String] {
        let names = request.operations.filter { Self.needsStoredType($0) }.map(\.recordName)
        guard !names.isEmpty else { return [:] }
        return try await self.records(named: names, at: place).mapValues(\.type)
    }

    private static func needsStoredType(_ operation: ModifyRequest.Operation) -> Bool {
        operation.recordType == nil && !operation.kind.isDelete
            && operation.fields?.isEmpty == false
    }

    // MARK: Answering

    /// An outcome remembered for a repeated request holds no records: they are looked up.
    private func remembered(
        _ results: [OperationResult], of operations: [RecordOperation], at place: ZonePlace
    ) async throws -> [String: Record] {
        let forgotten = zip(results, operations).compactMap { result, operation in
            if case .success(.saved(let saved)) = result, saved.record == nil {
                operation.recordName
            } else {
                nil as String?
            }
        }
        return forgotten.isEmpty ? [:] : try await self.records(named: forgotten, at: place)
    }

    /// Apart from its callers, who seldom need it: what it takes of memory is several times what
    /// they take.
    @inline(never)
    private func records(named names: [String], at place: ZonePlace) async throws -> [String:
        Record]
    {
        let (items, _) = try await self.lookUps.lookUp(names, at: place)
        var found: [String: Record] = [:]
        for case .found(let record) in items { found[record.name] = record }
        return found
    }

    private func items(
        _ results: [OperationResult], of operations: [RecordOperation],
        remembered found: [String: Record]
    ) -> [Item] {
        zip(results, operations).map { result, operation in
            switch result {
            case .success(.saved(let saved)):
                (saved.record ?? found[operation.recordName]).map { .saved($0) }
                    // Saved, and deleted by somebody since.
                    ?? .refused(ClientError(RecordRefusal(.notFound)))
            case .success(.deleted), .success(.left): .deleted
            case .success(.refused(let refusal)):
                .refused(self.error(refusal, of: operation))
            case .failure(let error): .refused(error)
            }
        }
    }

    private func error(_ refusal: RecordRefusal, of operation: RecordOperation) -> ClientError {
        ClientError(
            refusal, tagWasGiven: operation.changeTag != nil && operation.kind.checksTag)
    }

    /// Returns the partition's refusal of each operation in a batch, without carrying the batch
    /// out.
    ///
    /// - Parameter growth: what the schema is to grow by first.
    private func judge(
        _ modify: ModifyRecords, schema: Schema, growth: [RecordType]
    ) async throws -> [RecordRefusal?] {
        let key = ShardKey.database(modify.database)
        var hasInstalled = false
        while true {
            let ask = JudgeAsk(modify, schemaVersion: schema.version, growth: growth)
            do throws(RecordsError) {
                guard
                    case .judged(let refusals) = try await self.exchange.kernel.partitions.ask(
                        RecordQuery.Ask.judge(ask), at: .key(key), as: self.exchange.caller),
                    refusals.count == modify.operations.count
                else { throw .otherKind }
                return refusals
            } catch {
                guard case .refused(let refusal) = error, refusal.reason == .schemaBehind,
                    !hasInstalled
                else { throw ClientError.told(error) }
            }
            try await self.exchange.install(schema, at: key)
            hasInstalled = true
        }
    }

    /// Says of records whose parent was refused what the parent was refused for. In an atomic batch
    /// they are innocent.
    private func namingParents(
        _ items: [Item], of request: ModifyRequest, at place: ZonePlace
    ) -> [Item] {
        let errors = items.map { item in
            if case .refused(let error) = item { error } else { nil as ClientError? }
        }
        if errors.count(where: { $0 != nil }) < 2 { return items }
        let parents = RefusedParents(request.operations, errors)
        let isAtomic = (try? self.isAtomic(request.atomic, in: place)) ?? false
        return items.enumerated().map { position, item in
            guard let error = parents.error(at: position) else { return item }
            return .refused(isAtomic ? .atomicFailure : error)
        }
    }

    private func serverRecords(
        _ items: [Item], of request: ModifyRequest, at place: ZonePlace
    ) async -> ServerRecords {
        let names = zip(items, request.operations).compactMap { item, operation in
            if case .refused(let error) = item, error.code == .conflict {
                operation.recordName
            } else {
                nil as String?
            }
        }
        if names.isEmpty { return .none }
        return await ServerRecords(named: names, at: place, for: self.exchange)
    }

    private func count(_ items: [Item]) {
        var (saved, deleted) = (0, 0)
        for item in items {
            switch item {
            case .saved: saved += 1
            case .deleted: deleted += 1
            case .refused: break
            }
        }
        let counts = self.exchange.kernel.settings.counts
        if saved > 0 { counts.saved.add(saved) }
        if deleted > 0 { counts.deleted.add(deleted) }
    }

    private func modifyAnswer(
        _ items: [Item], _ opened: OpenedFields, _ shares: ShownShares, request: ModifyRequest,
        zone: ZoneSummary?, at place: ZonePlace
    ) async -> Bytes {
        let items = self.namingParents(items, of: request, at: place)
        var servers = await self.serverRecords(items, of: request, at: place)
        var writer = self.exchange.writer(reserving: 1_024 * items.count)
        let links = self.exchange.assetLinks
        self.count(items)
        writer.object {
            $0.key("records")
            $0.array { array in
                for (item, operation) in zip(items, request.operations) {
                    switch item {
                    case .saved(let record):
                        let shape = operation.shape
                        if let error = ClientError(of: record, shape, opened, wasSaved: true) {
                            array.writeFailure(error, recordName: record.name)
                        } else if shares.isGone(record) {
                            // Saved, and deleted by somebody since.
                            array.writeFailure(
                                ClientError(RecordRefusal(.notFound)), recordName: record.name)
                        } else {
                            array.writeRecord(record, shape, links, opened, shares)
                        }
                    case .deleted:
                        array.object {
                            $0.member("recordName", operation.recordName)
                            $0.member("deleted", true)
                        }
                    case .refused(let error):
                        array.writeFailure(error, recordName: operation.recordName) {
                            guard error.code == .conflict else { return }
                            servers.write(operation.recordName, operation.shape, links, to: &$0)
                        }
                    }
                }
            }
            self.exchange.writeSyncToken(of: zone, in: place.zone, to: &$0)
        }
        return writer.finish()
    }
}
