import StratusCluster
import StratusHTTP
import StratusIdentity
import StratusModel
import StratusRecords
import StratusRows
import StratusSealing

/// `assets/upload` and `assets/rereference`: permissions to upload, and receipts for what was
/// uploaded before.
struct AssetService: Sendable {
    let exchange: Exchange

    static let operations = [
        GatewayOperation("assets/upload", in: [.public, .private], needs: .user) {
            try await AssetService(exchange: $0).tickets($1)
        },
        GatewayOperation("assets/rereference", in: [.public, .private], needs: .user) {
            try await AssetService(exchange: $0).receipts($1)
        },
    ]

    private struct Token {
        var recordName: String
        var recordType: String?
        var fieldName: String
    }

    private var kit: AssetKit {
        get throws(InputRefusal) {
            guard let kit = self.exchange.assets else {
                throw .unknownOperation(self.exchange.route.label)
            }
            return kit
        }
    }

    // MARK: assets/upload

    /// A URL for each token, in order. Nothing is written. One token that is refused refuses all,
    /// since clients pair tokens and URLs by their position.
    func tickets(_ input: Input) async throws -> Bytes {
        let kit = try self.kit
        let elements = try input.requiredElements(
            "tokens", limit: self.exchange.kernel.limits.operationCountMax)
        let place = try self.exchange.requiredPlace(try self.address(input))
        var draws = self.exchange.draws()
        let tokens = try elements.map { element throws(InputRefusal) in
            let item = try Input(element, at: "tokens")
            let name = try item.string("recordName")
            return Token(
                recordName: name ?? draws.recordName(),
                recordType: try item.string("recordType"),
                fieldName: try item.requiredString("fieldName"))
        }
        try await self.check(tokens, in: place.database)
        // Said before the bytes are sent. Nobody is asked about a default zone: it is always there.
        if !place.zone.isDefault { _ = try await self.exchange.summary(of: place) }
        if let database = self.exchange.holder.spread,
            let number = database.number(of: place.zone.name)
        {
            // What is in a bucket is counted and erased only if the home knows of the bucket.
            try await self.exchange.note(BucketMask(of: [number]), of: database)
        }
        let expires = self.exchange.kernel.world.wallMilliseconds + UploadTicket.lifeMilliseconds
        var writer = JSONWriter(reserving: 512 * tokens.count)
        writer.object {
            $0.key("tokens")
            $0.array { array in
                for token in tokens {
                    let ticket = UploadTicket(
                        upload: draws.name(), database: self.database(of: token, at: place),
                        user: self.exchange.sender.name, sizeMax: kit.settings.sizeMax,
                        expiresMilliseconds: expires)
                    array.object {
                        $0.member("recordName", token.recordName)
                        $0.member("fieldName", token.fieldName)
                        $0.member(
                            "url",
                            self.exchange.assetOrigin(kit.settings) + AssetPath.uploads
                                + ticket.text(sealedWith: kit.ciphers.tickets))
                    }
                }
            }
        }
        return writer.finish()
    }

    private func address(_ input: Input) throws(InputRefusal) -> ZoneAddress {
        guard let given = input["zoneID"] else { return .defaultZone }
        return try ZoneAddress(given, key: "zoneID")
    }

    /// The body goes where the record will be.
    private func database(of token: Token, at place: ZonePlace) -> DatabaseID {
        guard let buckets = place.buckets else { return place.database }
        return place.database(in: buckets.sibling(of: token.recordName))
    }

    /// CREATE or WRITE on the type, which has such a field of assets. Where a save may make types
    /// and fields, unknown ones are taken: the save makes them.
    private func check(_ tokens: [Token], in database: DatabaseID) async throws {
        let grows = self.exchange.kernel.settings.growsSchema(
            in: self.exchange.route.container.environment)
        var schema = try await self.exchange.schema()
        if self.refusal(of: tokens, by: schema, grows, database) != nil {
            // The schema in memory may be older than what somebody just made.
            schema = try await self.exchange.schema(fresh: true)
        }
        if let refusal = self.refusal(of: tokens, by: schema, grows, database) { throw refusal }
    }

    private func refusal(
        of tokens: [Token], by schema: Schema, _ grows: Bool, _ database: DatabaseID
    ) -> ClientError? {
        for token in tokens {
            guard NameRules.isIdentifier(token.fieldName, limit: 255) else {
                return ClientError(FieldRefusal.nameInvalid(field: token.fieldName))
            }
            guard let name = token.recordType else { continue }
            let type = schema.type(named: name)
            if type == nil, !grows {
                return ClientError(
                    .badRequest, "Did not find record type: \(ClientError.quoted(name))")
            }
            if let field = type?.field(named: token.fieldName) {
                guard field.type.scalar == .asset else {
                    return ClientError(
                        .badRequest,
                        "field '\(ClientError.quoted(token.fieldName))' is defined to be: "
                            + TypeTag.name(of: field.type))
                }
            } else if !grows {
                return ClientError(
                    FieldRefusal.notDefined(
                        field: token.fieldName, recordType: name,
                        isProduction: self.exchange.route.container.environment == .production))
            }
            let principal = self.exchange.sender.principal
            let mayUpload =
                AccessRules.allows(.create, type, creator: nil, in: database, principal)
                || AccessRules.allows(
                    .write, type, creator: principal.userRecordName, in: database, principal)
            guard mayUpload else {
                return ClientError(RecordRefusal(.createDenied))
            }
        }
        return nil
    }

    // MARK: assets/rereference

    /// Receipts for assets that records hold, to be saved with other records. Each that cannot be
    /// had is an error of its own.
    func receipts(_ input: Input) async throws -> Bytes {
        let kit = try self.kit
        let elements = try input.requiredElements(
            "assets", limit: self.exchange.kernel.limits.operationCountMax)
        let place = try self.exchange.requiredPlace(try self.address(input))
        let wanted = try elements.map { element throws(InputRefusal) in
            let item = try Input(element, at: "assets")
            return Token(
                recordName: try item.requiredString("recordName"),
                fieldName: try item.requiredString("fieldName"))
        }
        var names: [String] = []
        for token in wanted where !names.contains(token.recordName) {
            names.append(token.recordName)
        }
        let (items, _) = try await LookUpService(exchange: self.exchange).lookUp(
            names, at: place)
        var records: [String: LookupAnswer.Item] = [:]
        for (name, item) in zip(names, items) { records[name] = item }
        let found = wanted.map { self.asset(of: $0, in: records) }
        var draws = self.exchange.draws()
        let pins = wanted.map { _ in UploadID(draws.name()) }
        var held: [Int: HeldAsset] = [:]
        var places: [DatabaseID: [(number: Int, asset: AssetID)]] = [:]
        for (number, token) in wanted.enumerated() {
            guard case .success(let asset) = found[number] else { continue }
            places[self.database(of: token, at: place), default: []].append((number, asset))
        }
        for (database, assets) in places.sorted(by: {
            ($0.key.bucket?.number ?? 0) < ($1.key.bucket?.number ?? 0)
        }) {
            let command = HoldAssets(database) {
                $0.assets = assets.map(\.asset)
                $0.pins = assets.map { pins[$0.number] }
                $0.rules = kit.rules(of: database, self.exchange.kernel.limits)
            }
            for (one, (number, _)) in zip(try await self.hold(command), assets) {
                held[number] = one
            }
        }
        return self.answer(wanted, found, pins, held, at: place, kit)
    }

    private func asset(
        of token: Token, in records: [String: LookupAnswer.Item]
    ) -> Result<AssetID, ClientError> {
        switch records[token.recordName] {
        case .found(let record):
            let value = record.fields.first { $0.name == token.fieldName }?.value
            switch value {
            case .scalar(.asset(let asset)):
                if let name = asset.asset { return .success(name) }
            case .list(.asset, let elements):
                // One dictionary stands for the field: the first of a list.
                if case .asset(let asset)? = elements.first, let name = asset.asset {
                    return .success(name)
                }
            default: break
            }
            return .failure(
                ClientError(
                    .notFound,
                    "field '\(ClientError.quoted(token.fieldName))' holds no asset"))
        case .refused(let refusal): return .failure(ClientError(refusal))
        case .deferred, nil:
            return .failure(ClientError(RouteError.notExecuted(retryAfter: .seconds(1))))
        }
    }

    private func hold(_ hold: HoldAssets) async throws -> [HeldAsset?] {
        do throws(RecordsError) {
            let held = try await self.exchange.kernel.partitions.submit(
                hold, at: .database(hold.database), as: self.exchange.caller)
            guard held.assets.count == hold.assets.count else { throw .otherKind }
            return held.assets
        } catch { throw ClientError.told(error) }
    }

    private func answer(
        _ wanted: [Token], _ found: [Result<AssetID, ClientError>], _ pins: [UploadID],
        _ held: [Int: HeldAsset], at place: ZonePlace, _ kit: AssetKit
    ) -> Bytes {
        let expires = self.exchange.kernel.world.wallMilliseconds + AssetReceipt.lifeMilliseconds
        var writer = JSONWriter(reserving: 256 * wanted.count)
        writer.object {
            $0.key("assets")
            $0.array { array in
                for (number, token) in wanted.enumerated() {
                    var error = ClientError(RecordRefusal(.notFound))
                    switch found[number] {
                    case .failure(let failure): error = failure
                    case .success(let asset):
                        guard let one = held[number] else { break }
                        array.writeUploaded(
                            checksum: one.fileChecksum, size: one.size,
                            receipt: AssetReceipt(
                                asset: asset, pin: pins[number],
                                database: self.database(of: token, at: place),
                                user: self.exchange.sender.name, expiresMilliseconds: expires
                            ).text(sealedWith: kit.ciphers.receipts))
                        continue
                    }
                    array.object {
                        $0.member("recordName", token.recordName)
                        $0.member("fieldName", token.fieldName)
                        $0.writeMembers(of: error)
                    }
                }
            }
        }
        return writer.finish()
    }
}

extension JSONWriter {
    /// An asset's dictionary with its receipt.
    mutating func writeUploaded(checksum: String, size: UInt64, receipt: String) {
        self.object {
            $0.member("fileChecksum", checksum)
            $0.member("size", Int64(clamping: size))
            $0.member("receipt", receipt)
            $0.writeOpaque(of: checksum)
        }
    }

    /// The two keys of a file that was encrypted. Typed clients want them, and nobody here reads
    /// them: they say no more than the checksum does. No key of Stratus is in them.
    mutating func writeOpaque(of fileChecksum: String) {
        let text = Bytes(fileChecksum.utf8)
        let key = SHA256.hash(Bytes("stratus wrapping key 1".utf8) + text).prefix(16)
        let reference = SHA256.hash(Bytes("stratus reference checksum 1".utf8) + text).prefix(20)
        self.member("wrappingKey", base64: Bytes(key))
        self.member("referenceChecksum", base64: [1] + Bytes(reference))
    }
}

extension Draws {
    /// A name of 128 bits.
    mutating func name() -> UInt128 { UInt128(self.nextWord()) << 64 | UInt128(self.nextWord()) }
}

extension Exchange {
    /// Where this request's client reaches uploads and downloads.
    func assetOrigin(_ settings: AssetSettings) -> String {
        settings.url
            ?? (self.isSecure ? "https://" : "http://") + (self.head.headers["Host"] ?? "localhost")
    }

    /// What makes the links of this request's answer. Nil where there are no assets.
    var assetLinks: AssetLinks? {
        guard let kit = self.assets, !self.isShared else { return nil }
        return AssetLinks(
            ciphers: kit.ciphers, origin: self.assetOrigin(kit.settings),
            database: self.holder.database,
            layout: self.holder.layout,
            expiresMilliseconds: DownloadLink.expiry(
                at: self.kernel.world.wallMilliseconds,
                life: kit.settings.linkLifeMilliseconds))
    }
}

extension Exchange {
    /// What reads the receipts of this request. Nil where there are no assets, and in zones of
    /// others.
    var receipts: ReceiptReader? {
        guard let kit = self.assets, !self.isShared else { return nil }
        return ReceiptReader(
            ciphers: kit.ciphers, database: self.holder.database, user: self.sender.name,
            nowMilliseconds: self.kernel.world.wallMilliseconds)
    }
}

extension RecordOperation {
    /// Whether a field of it is an asset or a list of assets.
    var hasAssets: Bool { self.fields.contains { $0.value.type.scalar == .asset } }
}

/// Reads what a client saves of an asset: with a receipt, or as it was read before.
struct ReceiptReader: Sendable {
    let ciphers: AssetCiphers
    /// The caller's database; its bucket does not count.
    let database: DatabaseID
    let user: String
    let nowMilliseconds: Int64

    /// Text of a checksum that anything here has made, and a little more.
    private static let checksumLengthMax = 64

    func asset(_ value: JSONValue, field: String) throws(FieldRefusal) -> AssetReference {
        guard let object = value.object,
            let checksum = object["fileChecksum"]?.string,
            (1...Self.checksumLengthMax).contains(checksum.utf8.count),
            let size = object["size"].flatMap({ value in
                value.wholeInt64 ?? value.string.flatMap { Int64($0) }
            }), size >= 0
        else { throw .wrongShape(expected: FieldType(.asset)) }
        guard let given = object["receipt"], !given.isNull else {
            return AssetReference(fileChecksum: checksum, size: size)
        }
        guard let text = given.string else { throw .receiptUnknown(field: field) }
        let receipt: AssetReceipt
        do throws(AssetTextRefusal) {
            receipt = try AssetReceipt(
                text, openedWith: self.ciphers.receipts, at: self.nowMilliseconds)
        } catch { throw .receiptUnknown(field: field) }
        var (theirs, own) = (receipt.database, self.database)
        theirs.bucket = nil
        own.bucket = nil
        guard theirs == own, receipt.user == self.user else {
            throw .receiptUnknown(field: field)
        }
        return AssetReference(
            fileChecksum: checksum, size: size, asset: receipt.asset, receipt: receipt.pin.text)
    }
}
