import StratusCluster
import StratusCoding
import StratusContainers
import StratusHTTP
import StratusIdentity
import StratusModel
import StratusRecords
import StratusRows
import StratusRuntime
import StratusSealing

/// The caller's key-value store: a device sends what it changed, and hears what others did.
struct KeyValueService: Sendable {
    let exchange: Exchange
    let counters: KeyValueCounters
    /// Syncs that bring changes, by user.
    let syncs: RequestThrottle?

    /// The longest wait of a `sync` that has nothing to tell.
    static let waitMax: Duration = .seconds(55)
    /// Seconds that a client should leave between two batches of changes.
    static let pause = 5
    /// Pages that one answer is made of: a store is small, so that is more than there are.
    private static let pageCountMax = 256

    static func operations(
        _ counters: KeyValueCounters, _ settings: GatewaySettings
    ) -> [GatewayOperation] {
        let syncs = settings.keyValueRateMax.map { RequestThrottle($0, in: .seconds(60)) }
        let service: @Sendable (Exchange) -> KeyValueService = {
            KeyValueService(exchange: $0, counters: counters, syncs: syncs)
        }
        return [
            GatewayOperation(
                "values", of: .keyValue, methods: [.get, .post], in: .private, needs: .user
            ) { exchange, _ in try await service(exchange).values() },
            GatewayOperation(
                "sync", of: .keyValue, in: .private, needs: .user, patience: .held,
                .collected { try await service($0).sync($1) }),
        ]
    }

    /// `GET values`: every key with its value.
    func values() async throws -> Bytes {
        let found = try await self.read(after: nil, until: self.exchange.deadline)
        var writer = JSONWriter(reserving: 4_096)
        try writer.object { (object) throws in
            object.key("values")
            try object.object { (values) throws in
                for entry in found.sorted {
                    guard let value = entry.value else { continue }
                    values.key(entry.key)
                    values.write(try PropertyListValue(decoding: value))
                }
            }
            self.writeEnd(of: found, to: &object)
        }
        return writer.finish()
    }

    // MARK: sync

    /// A request to `sync`, read and checked.
    private struct Ask {
        var device: String
        var batch: UInt64?
        var changes: [ModifyKeyValues.Change] = []
        var nowMilliseconds: Int64 = 0
        /// Nil: nothing was heard yet, or what was heard is of another store.
        var after: FeedPosition?
        var identityToken: String?
        var wait: Duration
        var refused: [(key: String, error: ClientError)] = []
    }

    /// `POST sync`: takes the device's changes, and answers with what changed since its token.
    func sync(_ input: Input) async throws -> GatewayAnswer {
        var ask = try self.ask(input)
        let identity = self.exchange.identityToken
        if let known = ask.identityToken, known != identity {
            // Another person's changes are nobody's here.
            let found = try await self.read(after: nil, until: self.exchange.deadline)
            return .json(try self.answer(found, reason: "accountChange", refused: ask.refused))
        }
        let isFirst = ask.after == nil
        var told: [String] = []
        if !ask.changes.isEmpty {
            try self.checkRate()
            told = try await self.take(&ask, isFirst: isFirst)
        }
        var found = try await self.read(
            after: ask.after, keys: told, until: self.exchange.deadline)
        if found.isEmpty, ask.changes.isEmpty, ask.refused.isEmpty, ask.wait > .zero {
            return self.wait(ask.wait, ask.device, found, after: ask.after)
        }
        if !found.isFromStart, let batch = ask.batch, !ask.changes.isEmpty {
            // What stands because this very request brought it is no news.
            found.entries = found.entries.filter {
                $0.value.device != ask.device || $0.value.batch != batch
            }
        }
        return .json(try self.answer(found, reason: found.reason, refused: ask.refused))
    }

    private func wait(
        _ wait: Duration, _ device: String, _ found: Found, after position: FeedPosition?
    ) -> GatewayAnswer {
        let service = KeyValueService(
            exchange: self.exchange.withoutBody, counters: self.counters, syncs: self.syncs)
        return service.exchange.later(wait, for: device, after: found, at: self.place) {
            let found = try await service.read(after: position, until: $0)
            return found.isEmpty && !found.isFromStart ? nil : found
        } answer: {
            .json(try service.answer($0, reason: $0.reason))
        }
    }

    private func ask(_ input: Input) throws -> Ask {
        let device = try input.requiredString("device")
        guard KeyValueStore.isDevice(device) else {
            throw InputRefusal.unexpectedInput(key: "device")
        }
        var ask = Ask(device: device, wait: try Self.wait(input))
        ask.identityToken = try input.string("identityToken")
        if let token = try input.string("token") {
            ask.after = try self.exchange.position(token, at: self.place)
        }
        let elements =
            input["changes"] == nil
            ? [] : try input.requiredElements("changes", limit: KeyValueStore.changeCountMax)
        guard !elements.isEmpty else { return ask }
        guard let batch = input["batch"] else { throw InputRefusal.missingKey("batch") }
        guard let now = input["now"] else { throw InputRefusal.missingKey("now") }
        guard let number = batch.wholeInt64, number > 0 else {
            throw InputRefusal.unexpectedInput(key: "batch")
        }
        guard let milliseconds = now.wholeInt64 else {
            throw InputRefusal.unexpectedInput(key: "now")
        }
        ask.batch = UInt64(number)
        ask.nowMilliseconds = milliseconds
        for element in elements {
            let item = try Input(element, at: "changes")
            // One that is no text cannot be named.
            let key = item["key"]?.string ?? ""
            do {
                ask.changes.append(try Self.change(item, key: key))
            } catch let refusal as PropertyListReader.Refusal {
                ask.refused.append((key, ClientError(.badRequest, refusal.reason)))
            } catch let refusal as InputRefusal {
                // One bad change costs no other key its own.
                ask.refused.append((key, ClientError(refusal)))
            }
        }
        return ask
    }

    static func wait(_ input: Input) throws(InputRefusal) -> Duration {
        guard let wait = input["wait"] else { return .zero }
        guard let seconds = wait.double, seconds >= 0 else {
            throw .unexpectedInput(key: "wait")
        }
        return min(Self.waitMax, .milliseconds(Int64(min(seconds, 3_600) * 1_000)))
    }

    private static func change(_ item: Input, key: String) throws -> ModifyKeyValues.Change {
        guard let at = item["at"] else { throw InputRefusal.missingKey("at") }
        guard let milliseconds = at.wholeInt64 else {
            throw InputRefusal.unexpectedInput(key: "at")
        }
        let isRemoved = try item.flag("removed") ?? false
        guard KeyValueStore.isKey(key) else {
            throw PropertyListReader.Refusal(
                reason: "a key has 1 to \(KeyValueStore.keySizeMax) bytes")
        }
        guard isRemoved != (item["value"] != nil) else {
            throw PropertyListReader.Refusal(
                reason: "a change has either a 'value' or 'removed': true")
        }
        let value = try item["value"].map { try PropertyListReader.value($0).encoded() }
        return ModifyKeyValues.Change {
            $0.key = key
            $0.atMilliseconds = milliseconds
            $0.value = value
        }
    }

    private var place: FeedPlace {
        FeedPlace(
            container: self.exchange.route.container, scope: .private,
            owner: self.exchange.holder.owner, zone: ZoneID.keyValueName)
    }

    private func checkRate() throws {
        let container = self.exchange.route.container
        let caller =
            "\(self.exchange.sender.name) \(container.environment.name) \(container.container)"
        if let wait = self.syncs?.wait(
            of: caller, at: self.exchange.kernel.world.now)
        {
            throw ClientError(
                .throttled, "too many batches of changes, retry later",
                retryAfter: ClientError.seconds(wait))
        }
    }

    /// Submits the changes. What is refused is noted in `ask`.
    /// - Returns: the keys whose state the client must be told, whatever it has heard before.
    private func take(_ ask: inout Ask, isFirst: Bool) async throws -> [String] {
        let limit = self.exchange.kernel.limits.keyValueSizeMax
        var draws = self.exchange.draws()
        let modified = try await self.submit(
            ModifyKeyValues(self.exchange.holder.home) {
                $0.device = ask.device
                $0.batch = ask.batch ?? 0
                $0.nowMilliseconds = ask.nowMilliseconds
                $0.isFirst = isFirst
                $0.drawnIncarnation = draws.incarnation()
                $0.rules.sizeMax = UInt32(clamping: limit.raw)
                $0.changes = ask.changes
            })
        self.counters.note(modified, count: ask.changes.count)
        for refused in modified.refused {
            ask.refused.append((refused.key, ClientError(refused.reason, limit)))
        }
        if modified.isRepeat { return ask.changes.map(\.key) }
        return zip(ask.changes, modified.results).filter { $1 != .taken }.map(\.0.key)
    }

    /// How long a batch waits for its partition before it is proposed anew with its age of then.
    static let proposalPatience: Duration = .milliseconds(250)

    /// Submits a batch until its deadline. A change is as old as its device said and as its request
    /// has waited here: who waits for a leader must not come out younger than who did not.
    ///
    /// It is one command under one identity, so it is carried out once whichever proposal arrives.
    private func submit(_ modify: ModifyKeyValues) async throws -> ModifiedKeyValues {
        let kernel = self.exchange.kernel
        let (begun, end) = (self.exchange.begun, self.exchange.deadline)
        let identity = self.exchange.identity(attempt: 0)
        var isInDoubt = false
        while true {
            var aged = modify
            let waited = (kernel.world.now - begun).clampedNanoseconds / 1_000_000
            let (now, isOver) = modify.nowMilliseconds.addingReportingOverflow(waited)
            aged.nowMilliseconds = isOver ? .max : now
            let impatient = min(end, kernel.world.now + Self.proposalPatience)
            var caller = self.exchange.caller
            caller.end = impatient
            do throws(RecordsError) {
                let modified = try await kernel.partitions.submit(
                    aged, at: .database(modify.database), as: caller, identity: identity)
                kernel.stirred(modify.database)
                return modified
            } catch {
                if case .refused(let refusal) = error { throw ClientError(refusal) }
                if error == .outcomeUnknown { isInDoubt = true }
                let mayGoOn = kernel.world.now >= impatient && kernel.world.now < end
                guard mayGoOn else { throw isInDoubt ? .outcomeUnknown : RouteError(error) }
            }
        }
    }

    // MARK: Reading

    /// What a read of the store has found, in as many pages as it took.
    private struct Found {
        /// By the bytes of their keys: keys that Unicode calls equal are two keys.
        var entries: [Bytes: KeyValuesPage.Entry] = [:]
        var isFromStart = false
        var position = FeedPosition(incarnation: ZoneIncarnation(0), tag: ChangeTag(0))
        var moreComing = false
        var use = KeyValueUse()

        var isEmpty: Bool { self.entries.isEmpty }
        /// Why the client is told.
        var reason: String {
            self.isFromStart ? "initialSync" : self.isEmpty ? "none" : "serverChange"
        }
        var sorted: [KeyValuesPage.Entry] {
            self.entries.sorted { $0.key.lexicographicallyPrecedes($1.key) }.map(\.value)
        }
    }

    private func read(
        after: FeedPosition?, keys: [String] = [], until deadline: MonotonicTime
    ) async throws -> Found {
        var found = Found()
        var ask = KeyValuesAsk(self.exchange.holder.home) {
            $0.after = after
            $0.keys = keys
        }
        for _ in 0..<Self.pageCountMax {
            let page = try await self.page(ask, until: deadline)
            if page.isFromStart {
                // Also where a position has expired between two pages.
                found.entries = [:]
                found.isFromStart = true
            }
            for entry in page.entries { found.entries[Bytes(entry.key.utf8)] = entry }
            found.position = page.position
            found.use = page.use
            found.moreComing = page.moreComing
            guard page.moreComing else { break }
            ask.after = page.position
            ask.keys = []
        }
        return found
    }

    private func page(
        _ ask: KeyValuesAsk, until deadline: MonotonicTime
    ) async throws -> KeyValuesPage {
        var caller = self.exchange.caller
        caller.end = deadline
        return try await self.exchange.ask(ask, at: .database(ask.database), as: caller)
    }

    // MARK: Answers

    private func answer(
        _ found: Found, reason: String, refused: [(key: String, error: ClientError)] = []
    ) throws -> Bytes {
        var writer = JSONWriter(reserving: 1_024)
        try writer.object { (object) throws in
            object.member("reason", reason)
            object.key("changes")
            try object.array { (array) throws in
                for entry in found.sorted {
                    try array.object { (item) throws in
                        item.member("key", entry.key)
                        if let value = entry.value {
                            item.key("value")
                            item.write(try PropertyListValue(decoding: value))
                        } else {
                            item.member("removed", true)
                        }
                    }
                }
            }
            object.member("refused", objects: refused) { json, element in
                let (key, error) = element
                json.member("key", key)
                json.member("serverErrorCode", error.code.rawValue)
                json.member("reason", error.reason)
            }
            self.writeEnd(of: found, to: &object)
            object.member("pause", Self.pause)
        }
        return writer.finish()
    }

    private func writeEnd(of found: Found, to object: inout JSONWriter) {
        object.member(
            "token",
            FeedToken(found.position).text(at: self.place, sealedWith: self.exchange.cipher))
        object.member("moreComing", found.moreComing)
        object.member("identityToken", self.exchange.identityToken)
        object.key("usage")
        object.write(found.use, self.exchange.kernel.limits)
    }
}

extension JSONWriter {
    mutating func write(_ use: KeyValueUse, _ limits: Limits) {
        self.object {
            $0.member("keys", Int64(clamping: use.keyCount))
            $0.member("bytes", Int64(clamping: use.size))
            $0.member("keysMax", Int(KeyValueRules().keyCountMax))
            $0.member("bytesMax", limits.keyValueSizeMax.raw)
        }
    }
}

extension ClientError {
    init(_ refusal: KeyValueRefusal, _ limit: ByteCount) {
        self =
            switch refusal {
            case .keyInvalid:
                Self(.badRequest, "a key has 1 to \(KeyValueStore.keySizeMax) bytes")
            case .valueTooLarge:
                Self(.quotaExceeded, "valueTooLarge: a value has at most \(limit.raw) bytes")
            case .storeFull:
                Self(.quotaExceeded, "storeFull: all values have at most \(limit.raw) bytes")
            case .tooManyKeys:
                Self(
                    .quotaExceeded,
                    "tooManyKeys: a store has at most \(KeyValueRules().keyCountMax) keys")
            }
    }
}
