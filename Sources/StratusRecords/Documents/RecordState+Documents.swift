import StratusCoding
import StratusModel
import StratusRows

extension RecordState {
    private static let documentPageMax = 200
    private static let documentPageTouchMax = 2_000

    mutating func apply(
        _ modify: ModifyDocuments, of command: Command, at time: HybridTime,
        over rows: Rows
    ) throws(StoreError) -> RecordOutcome {
        guard modify.database.scope == .private else {
            return .refused(RequestRefusal(.accessDenied))
        }
        if modify.operations.isEmpty { return .refused(RequestRefusal(.empty)) }
        guard modify.operations.count <= ModifyDocuments.operationCountMax else {
            return .refused(
                RequestRefusal(.tooManyItems, String(ModifyDocuments.operationCountMax)))
        }
        guard modify.pathCount <= ModifyDocuments.pathCountMax else {
            return .refused(
                RequestRefusal(.tooManyItems, String(ModifyDocuments.pathCountMax)))
        }
        guard modify.tokens.count <= ModifyDocuments.tokenCountMax else {
            return .refused(
                RequestRefusal(.tooManyItems, String(ModifyDocuments.tokenCountMax)))
        }
        guard KeyValueStore.isDevice(modify.device) else {
            return .refused(RequestRefusal(.queryInvalid, "device"))
        }
        var numbers = NumberDraw()
        let place = try self.place(
            of: ZoneID.documentsName, in: modify.database, drawn: modify.drawnIncarnation,
            &numbers, over: rows.view)
        var room: Int64?
        if modify.rules.databaseSizeMax != 0 {
            let held = try self.held(by: place.database, over: rows.view)
            let assets = try AssetRows.use(of: place.database.number, over: rows.view)
            room =
                Int64(clamping: modify.rules.databaseSizeMax) - Int64(clamping: held.size)
                - Int64(clamping: assets.size)
        }
        let zone = ZoneEdit(
            ZoneID.documentsName, of: modify.database, database: place.database,
            zone: place.zone, at: time, bugs: self.bugs)
        var edit = DocumentEdit(modify, zone: zone, principal: command.principal, room: room)
        let (results, isKept) = try edit.run(over: rows.view)
        guard isKept, edit.zone.hasChanges else { return .documents(results) }
        if numbers.isDrawn {
            try numbers.write(into: rows)
            try rows.put(.database, Keys.database(modify.database), place.database.encoded())
            self.cache.remember(place.database, of: modify.database)
        }
        try edit.zone.flush(
            into: rows, cache: &self.cache, schema: nil,
            tombstoneCountMin: RecordRules.standard.tombstoneCountMin)
        return .documents(results)
    }

    // MARK: Reading

    mutating func documents(
        _ ask: DocumentsAsk, over rows: RowView
    ) throws(StoreError) -> RecordAnswer {
        guard ask.database.scope == .private else {
            return .refused(RequestRefusal(.accessDenied))
        }
        var zone: ZoneRow?
        if let database = try self.cache.database(ask.database, over: rows),
            let found = try self.cache.zone(
                ZoneID.documentsName, in: database.number, over: rows), !found.isDeleted
        {
            zone = found
        }
        let reader = DocumentReader(
            zone: zone ?? .unwritten,
            id: ZoneID(name: ZoneID.documentsName, owner: ask.database.owner))
        switch ask.question {
        case .list(let folder, let after, let limit):
            return .documents(
                try reader.list(
                    folder, after: after, limit: min(max(1, limit), Self.documentPageMax),
                    over: rows))
        case .lookup(let selectors):
            guard selectors.count <= Self.operationCountMax else {
                return .refused(
                    RequestRefusal(.tooManyItems, String(Self.operationCountMax)))
            }
            var found: [DocumentItem?] = []
            for selector in selectors { found.append(try reader.item(selector, over: rows)) }
            return .documents(.lookup(found))
        case .changes(let after, let limit):
            return .documents(
                try reader.changes(
                    after, limit: min(max(1, limit), Self.documentPageMax),
                    touchMax: Self.documentPageTouchMax, over: rows))
        case .content(let id, let version):
            return .documents(try reader.content(of: id, version, over: rows))
        case .versions(let id): return .documents(try reader.versions(of: id, over: rows))
        case .properties(let ids):
            guard ids.count <= Self.operationCountMax else {
                return .refused(
                    RequestRefusal(.tooManyItems, String(Self.operationCountMax)))
            }
            var all: [[DocumentProperty]] = []
            for id in ids {
                let item = try reader.item(id, over: rows)
                all.append(try DocumentProperty.properties(item?.attributes ?? []))
            }
            return .documents(.properties(all))
        case .locks:
            return .documents(
                .locks(
                    try DocumentLock.all(of: reader.zone.number, in: reader.id, over: rows)
                        .map(\.lock)))
        case .publications:
            return .documents(
                .publications(
                    try DocumentPublication.all(
                        of: reader.zone.number, in: reader.id, over: rows)))
        case .published(let slot, let secret):
            return .documents(try reader.published(slot: slot, secret: secret, over: rows))
        case .chain(let names):
            return .documents(.lookup(try reader.chain(names, over: rows)))
        }
    }
}

/// Reads one zone of documents.
struct DocumentReader {
    let zone: ZoneRow
    let id: ZoneID

    func record(
        _ name: String, over rows: RowView
    ) throws(StoreError) -> Record? {
        try StoredRows.record(name, of: self.zone.number, in: self.id, over: rows).row?.live
    }

    /// A live item that can be reached from a root.
    func item(_ id: String, over rows: RowView) throws(StoreError)
        -> DocumentItem?
    {
        if DocumentNames.isRoot(id) { return .root(id) }
        guard let item = try self.stored(id, over: rows) else { return nil }
        var folder = item.folder
        for _ in 0...DocumentNames.depthMax {
            if DocumentNames.isRoot(folder) { return item }
            guard let above = try self.stored(folder, over: rows), above.kind == .folder else {
                return nil
            }
            folder = above.folder
        }
        return nil
    }

    private func stored(_ id: String, over rows: RowView) throws(StoreError)
        -> DocumentItem?
    {
        guard DocumentNames.isID(id), let record = try self.record(id, over: rows) else {
            return nil
        }
        return try DocumentItem(record)
    }

    func item(_ selector: DocumentsAsk.Selector, over rows: RowView)
        throws(StoreError) -> DocumentItem?
    {
        switch selector {
        case .id(let id): return try self.item(id, over: rows)
        case .path(let names):
            guard names.count <= DocumentNames.depthMax else { return nil }
            var at = DocumentNames.root
            for name in names {
                guard let next = try self.id(of: name, in: at, over: rows) else { return nil }
                at = next
            }
            return try self.item(at, over: rows)
        }
    }

    private func id(
        of name: String, in folder: String, over rows: RowView
    ) throws(StoreError) -> String? {
        let folded = DocumentNames.folded(name)
        if folder == DocumentNames.root,
            folded == DocumentNames.folded(DocumentNames.documentsName)
        {
            return DocumentNames.documents
        }
        return try rows.row(
            .reference, DocumentNames.key(self.zone.number, folder: folder, folded: folded)
        ).map { String(decoding: $0.dropFirst(), as: UTF8.self) }
    }

    /// The root and what is at each part of a path; nil from where nothing is.
    func chain(
        _ names: [String], over rows: RowView
    ) throws(StoreError) -> [DocumentItem?] {
        var chain: [DocumentItem?] = [.root(DocumentNames.root)]
        guard names.count <= DocumentNames.depthMax else {
            return chain + names.map { _ in nil }
        }
        var at: String? = DocumentNames.root
        for name in names {
            if let folder = at { at = try self.id(of: name, in: folder, over: rows) }
            // Each folder above was found on the way, so the item can be reached.
            var item: DocumentItem?
            if let id = at {
                item = DocumentNames.isRoot(id) ? .root(id) : try self.stored(id, over: rows)
            }
            if item == nil { at = nil }
            chain.append(item)
        }
        return chain
    }

    func list(
        _ folder: String, after: Bytes?, limit: Int, over rows: RowView
    ) throws(StoreError) -> DocumentsAnswer {
        guard let item = try self.item(folder, over: rows), item.kind == .folder else {
            return .list(nil, next: nil)
        }
        let start = DocumentNames.keys(self.zone.number, folder: folder)
        var items: [DocumentItem] = []
        // The folder that people see is there without a row.
        if folder == DocumentNames.root, after == nil {
            items.append(.root(DocumentNames.documents))
        }
        let found = try rows.rows(
            .reference, from: after.map { start + $0 + [0] } ?? start, to: Keys.end(of: start),
            limit: limit + 1)
        for (_, row) in found.prefix(limit) {
            let id = String(decoding: row.dropFirst(), as: UTF8.self)
            guard let item = try self.stored(id, over: rows) else {
                throw StoreError(.corrupt, "a name without its document")
            }
            items.append(item)
        }
        var next: Bytes?
        if found.count > limit { next = Bytes(found[limit - 1].key.dropFirst(start.count)) }
        return .list(items, next: next)
    }

    func changes(
        _ given: FeedPosition?, limit: Int, touchMax: Int, over rows: RowView
    ) throws(StoreError) -> DocumentsAnswer {
        var after = given
        let hasSeenNone = given?.incarnation.raw == 0
        if let position = given,
            position.incarnation != self.zone.incarnation
                || position.tag.raw > self.zone.lastTag || !self.zone.honours(position)
        {
            after = nil
        }
        let start = Keys.zoneStart(self.zone.number)
        let found =
            self.zone.incarnation.raw == 0
            ? []
            : try rows.rows(
                .feed,
                from: after.map { Keys.feed(self.zone.number, ChangeTag($0.tag.raw + 1)) } ?? start,
                to: Keys.end(of: start), limit: touchMax + 1)
        var page = DocumentChangesPage(
            isFromStart: after == nil && !hasSeenNone, changes: [],
            position: FeedPosition(incarnation: self.zone.incarnation, tag: ChangeTag(0)),
            moreComing: false)
        var last = after?.tag ?? ChangeTag(self.zone.baseTag)
        var takenCount = 0
        for (key, row) in found.prefix(touchMax) where page.changes.count < limit {
            takenCount += 1
            last = ChangeTag(try Keys.number(key, at: 4))
            let feed = try decodingRow("feed") { () throws(DecodingError) in
                try FeedRow(decoding: row)
            }
            // Contents come with their items.
            guard DocumentNames.isID(feed.name) else { continue }
            if feed.isDeletion {
                if after != nil { page.changes.append(.removed(id: feed.name)) }
            } else if let item = try self.stored(feed.name, over: rows) {
                page.changes.append(.changed(item))
            }
        }
        page.moreComing = takenCount < found.count
        if !page.moreComing { last = ChangeTag(self.zone.lastTag) }
        var floor = after?.floor ?? ChangeTag(self.zone.lastTag)
        if floor <= last { floor = ChangeTag(0) }
        page.position = FeedPosition(incarnation: self.zone.incarnation, tag: last, floor: floor)
        return .changes(page)
    }

    func content(
        of id: String, _ version: UInt64?, over rows: RowView
    ) throws(StoreError) -> DocumentsAnswer {
        guard let item = try self.item(id, over: rows), item.kind != .folder,
            let record = try self.record(
                DocumentVersion.recordName(id, version ?? item.contentTag), over: rows)
        else { return .content(nil, nil, .inline([])) }
        let (found, content) = try DocumentVersion.read(record)
        return .content(item, found, content)
    }

    func versions(of id: String, over rows: RowView) throws(StoreError)
        -> DocumentsAnswer
    {
        guard let item = try self.item(id, over: rows), item.kind != .folder else {
            return .versions(nil)
        }
        let prefix = Keys.references(self.zone.number, target: id, .deleteSelf)
        var versions: [DocumentVersion] = []
        for key in try rows.keys(
            .reference, from: prefix, to: Keys.end(of: prefix),
            limit: Int(clamping: item.conflicts) + 1)
        {
            let name = String(decoding: key.dropFirst(prefix.count), as: UTF8.self)
            // Locks and links come after all contents.
            guard name.hasPrefix(id) else { break }
            guard let record = try self.record(name, over: rows) else {
                throw StoreError(.corrupt, "a content without its record")
            }
            versions.append(try DocumentVersion.read(record).0)
        }
        versions.sort {
            ($0.contentTag == item.contentTag ? 0 : 1, $0.contentTag)
                < ($1.contentTag == item.contentTag ? 0 : 1, $1.contentTag)
        }
        return .versions(versions)
    }
}
