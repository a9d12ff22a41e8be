import StratusAssets
import StratusCluster
package import StratusContainers
import StratusHTTP
import StratusIdentity
package import StratusModel
import StratusRecords
import StratusRuntime

/// Copies records of a public database into the other environment, by the commands of any client's
/// save: it draws names, reserves what is referred to in other buckets, and counts quotas.
package struct RecordCopier: RecordCopying {
    /// The names under which a copy shares the memory of transfers with users. Reading and writing
    /// wait for each other, so each has a part of its own.
    private static let reader = PlaceHolder(nil, "a copy of a container, reading")
    private static let writer = "a copy of a container, writing"

    /// After so long, files of further records wait for the next round: a page shall end.
    private static let patience = Duration.seconds(20)

    private let kernel: GatewayKernel
    private let assets: AssetSurface?
    private let work = LongWork()

    package init(_ kernel: GatewayKernel, assets: AssetSurface?) {
        self.kernel = kernel
        self.assets = assets
    }

    package func copy(
        _ records: [Record], of source: DatabaseID, to container: ContainerReference,
        layout: ContainerLayout
    ) async throws -> [CopiedRecord] {
        var results: [String: CopiedRecord] = [:]
        for creator in Set(records.map(\.created.userRecordName)).sorted() {
            let own = records.filter { $0.created.userRecordName == creator }
            let exchange = self.exchange(for: creator, in: container, layout)
            defer { exchange.turn.leave() }
            let copied = try await self.copy(own, of: source, by: exchange)
            for (record, result) in zip(own, copied) { results[record.name] = result }
        }
        return records.map { record in
            guard let result = results[record.name] else { preconditionFailure("a record is lost") }
            return result
        }
    }

    /// A request of Stratus itself, on behalf of whoever shall have made the records.
    private func exchange(
        for creator: String, in container: ContainerReference, _ layout: ContainerLayout
    ) -> Exchange {
        var authentication = Authentication(
            principal: Principal(kind: .system, userRecordName: creator))
        authentication.layout = layout
        let route = Route(container, .public, "copy")
        return Exchange(
            kernel: self.kernel, assets: self.assets?.kit, route: route,
            authentication: authentication,
            head: RequestHead(method: "POST", path: "/"), body: [], isSecure: true,
            room: AnswerRoom(of: self.kernel.answers),
            turn: LongWork.Turn(at: self.work, for: route.tenant))
    }

    private func copy(
        _ records: [Record], of source: DatabaseID, by exchange: Exchange
    ) async throws -> [CopiedRecord] {
        let service = ModifyService(exchange: exchange)
        let end = self.kernel.world.now + Self.patience
        let place = try exchange.requiredPlace(.defaultZone)
        // Files of records that are there already are not copied for nothing.
        let (known, _) = try await service.lookUps.lookUp(records.map(\.name), at: place)
        var results: [CopiedRecord?] = known.map { item in
            if case .found = item { .there } else { nil }
        }
        var operations: [RecordOperation] = []
        var sizes: [UInt64] = []
        for (position, record) in records.enumerated() where results[position] == nil {
            if !operations.isEmpty, self.kernel.world.now > end {
                results[position] = .waits(reason: "there was no time for it yet")
                continue
            }
            do {
                let database =
                    place.buckets.map { place.database(in: $0.sibling(of: record.name)) }
                    ?? place.database
                let (fields, size) = try await self.fields(of: record, in: source, to: database)
                operations.append(
                    RecordOperation(
                        .create, recordName: record.name, recordType: record.type, fields: fields,
                        parent: record.parent.map { .set($0) } ?? .unmentioned))
                sizes.append(size)
            } catch {
                switch AssetFailure(error) {
                case .later(let reason, _): results[position] = .waits(reason: reason)
                case let failure: results[position] = .refused(reason: failure.error.reason)
                }
            }
        }
        if !operations.isEmpty {
            // Files take as long as they are large. The save has a time of its own.
            let saving = exchange.again()
            defer { saving.turn.leave() }
            let schema = try await saving.schema(fresh: true)
            let saved = try await ModifyService(exchange: saving)
                .create(operations, at: place, schema: schema)
            var next = zip(saved, sizes).makeIterator()
            for position in results.indices where results[position] == nil {
                guard let (result, size) = next.next() else { break }
                results[position] = Self.copied(result, size)
            }
        }
        return results.map { $0 ?? .waits(reason: "it is not known whether it was made") }
    }

    private static func copied(
        _ result: ModifyService.OperationResult, _ size: UInt64
    ) -> CopiedRecord {
        switch result {
        case .success(.saved): return .made(fileSize: size)
        case .success(.deleted), .success(.left): preconditionFailure("nothing is deleted")
        case .success(.refused(let refusal)):
            let reason = ClientError(refusal).reason
            switch refusal.reason {
            case .exists: return .there
            case .referenceTargetMissing, .referencePending, .parentMissing, .treeParentMissing,
                .deferred,
                .notReserved, .outboxFull:
                return .waits(reason: reason)
            default: return .refused(reason: reason)
            }
        case .failure(let error):
            return error.code == .tryAgainLater
                ? .waits(reason: error.reason) : .refused(reason: error.reason)
        }
    }

    // MARK: Files

    /// The fields of a record, with files of their own, and how large those are.
    private func fields(
        of record: Record, in source: DatabaseID, to database: DatabaseID
    ) async throws -> (fields: [Field], size: UInt64) {
        var fields = record.fields
        var size: UInt64 = 0
        for position in fields.indices {
            switch fields[position].value {
            case .scalar(.asset(let reference)):
                let copy = try await self.file(reference, in: source, to: database)
                size += UInt64(clamping: copy.size)
                fields[position].value = .scalar(.asset(copy))
            case .list(.asset, let elements):
                var copies: [Scalar] = []
                for case .asset(let reference) in elements {
                    let copy = try await self.file(reference, in: source, to: database)
                    size += UInt64(clamping: copy.size)
                    copies.append(.asset(copy))
                }
                fields[position].value = .list(.asset, copies)
            default: break
            }
        }
        return (fields, size)
    }

    /// A file that holds the same bytes, under a key of the other database.
    private func file(
        _ reference: AssetReference, in source: DatabaseID, to database: DatabaseID
    ) async throws -> AssetReference {
        guard let surface = self.assets else {
            throw AssetFailure.gone("this node keeps no files")
        }
        let kit = surface.kit
        try await kit.keepUp()
        guard let asset = reference.asset,
            let stored = try await surface.stored(asset, in: source), !stored.body.isLost
        else { throw AssetFailure.gone("a file is lost") }
        let world = self.kernel.world
        let size = stored.body.size
        let (body, share) = try await surface.begin(stored, 0..<size, by: Self.reader)
        defer { withExtendedLifetime(share) {} }
        let ticket = surface.ticket(for: database, by: Self.writer, sizeMax: size)
        let (pinned, _) = try await surface.store(
            PacedBody(
                body, rate: kit.settings.resealingRate, now: { world.now }, sleep: kit.sleep),
            of: size, ticket)
        guard pinned.fileChecksum == stored.fileChecksum else { throw AssetFailure.broken }
        return AssetReference(
            fileChecksum: pinned.fileChecksum, size: reference.size, asset: pinned.asset,
            receipt: UploadID(ticket.upload).text)
    }
}
