import StratusCoding
import StratusModel
import StratusRows

/// Decides the operations of one command on documents, in order, over their zone.
///
/// An operation reads and decides first. One that is refused has changed nothing.
struct DocumentEdit {
    /// Free names that ` 2`, ` 3`, … are looked for.
    private static let numberMax = 1_000
    /// Files gained and lost by the operations before one that may change 2,000 more.
    private static let changedFileMax = AssetEdits.changeCountMax - 2_000
    /// Bytes of records that the removals of one command read. What passes it goes by a job.
    static let removedSizeMax = 1 << 20

    var zone: ZoneEdit
    let modify: ModifyDocuments
    let principal: Principal
    /// Bytes by which the zone may grow; nil: there is no quota.
    let room: Int64?
    /// Names that this command took or freed, by their rows' keys.
    var names: [Bytes: String?] = [:]
    /// The locks that hold, and those whose time is over: their names are free.
    var locks: [(slot: Int, lock: DocumentLock)] = []
    /// Links, once one was asked for.
    var knownPublications: [DocumentPublication]?
    private var deletedCount = 0
    /// Bytes of the records that removals have read so far.
    private var removedSize = 0
    /// Items that copies have made so far, and the bytes of their contents.
    var copied = (count: 0, size: 0)
    /// Names and items that the command has looked through so far, in search of free names, of
    /// what a folder holds and of what goes with it.
    var lookedCount = 0

    init(_ modify: ModifyDocuments, zone: ZoneEdit, principal: Principal, room: Int64?) {
        self.zone = zone
        self.modify = modify
        self.principal = principal
        self.room = room
    }

    var rules: DocumentRules { self.modify.rules }
    var bugs: PlantedBugs { self.zone.bugs }

    /// False: the command was atomic and something was refused, so the edit must be dropped.
    mutating func run(
        over rows: RowView
    ) throws(StoreError) -> (results: [DocumentResult], isKept: Bool) {
        var results: [DocumentResult] = []
        var hasRefusal = false
        self.locks = try DocumentLock.all(
            of: self.zone.zone.number, in: self.zone.id, over: rows)
        for operation in self.modify.operations {
            let result: DocumentResult
            do throws(Stop) {
                // What one entry changes of the holders of files has a bound.
                guard self.zone.assets.changeCount <= Self.changedFileMax else {
                    throw .refused(.tooManyItems, String(Self.changedFileMax))
                }
                result = try self.decide(operation, over: rows)
            } catch {
                switch error {
                case .refused(let refusal, let subject):
                    result = .refused(refusal, subject: subject)
                    hasRefusal = true
                case .store(let error): throw error
                }
            }
            results.append(result)
        }
        guard self.modify.isAtomic, hasRefusal else { return (results, true) }
        return (
            results.map {
                if case .refused = $0 { $0 } else { .refused(.atomicFailure, subject: "") }
            }, false
        )
    }

    /// Why an operation goes no further.
    enum Stop: Error {
        case refused(DocumentRefusal, String)
        case store(StoreError)
    }

    private func reading<Value>(
        _ body: () throws(StoreError) -> Value
    ) throws(Stop) -> Value {
        do throws(StoreError) { return try body() } catch { throw .store(error) }
    }

    private mutating func decide(
        _ operation: DocumentOperation, over rows: RowView
    ) throws(Stop) -> DocumentResult {
        switch operation {
        case .create(let id, let kind, let name, let folder, let clash, let content, let at):
            return try self.create(id, kind, name, folder, clash, content, at, rows)
        case .save(let id, let content, let basedOn, let ifUnchanged, let at):
            let item = try self.contentHolder(id, rows)
            try self.checkLocks(on: item, rows)
            if ifUnchanged, basedOn ?? 0 != item.contentTag {
                throw .refused(.stale, String(item.contentTag))
            }
            let ready = try self.ready(
                content, kind: item.kind, of: item, basedOn: basedOn, rows)
            return .item(try self.save(item, ready, basedOn: basedOn, at: at, rows))
        case .place(let id, let name, let folder, let clash, let tag):
            return try self.place(id, name, folder, clash, tag, rows)
        case .remove(let id, let basedOn):
            let item = try self.item(id, rows)
            // Versions that wait to be settled were never seen by whoever states only a content.
            if item.kind != .folder, let basedOn {
                if basedOn != item.contentTag { throw .refused(.stale, String(item.contentTag)) }
                if item.conflicts != 0 { throw .refused(.versionsWait, String(item.conflicts)) }
            }
            try self.checkLocks(leaving: item, rows)
            try self.remove(id, rows)
            return .removed(id: id)
        case .settle(let id, let current, let drop):
            return try self.settle(id, current, drop, rows)
        case .separate(let id, let first): return try self.separate(id, first, rows)
        case .removeData: return try self.removeData(rows)
        case .annotate(let id, let changes, let countMax, let sizeMax):
            return try self.annotate(id, changes, countMax, sizeMax, rows)
        case .copy(let copy, let tag): return try self.copy(copy, tag, rows)
        case .lock(let lock, let milliseconds, let countMax):
            return try self.lock(lock, milliseconds, countMax, rows)
        case .refresh(let token, let milliseconds):
            return try self.refresh(token, milliseconds, rows)
        case .unlock(let token): return try self.unlock(token, rows)
        case .publish(let publication, let milliseconds):
            return try self.publish(publication, milliseconds, rows)
        case .withdraw(let id): return try self.withdraw(id, rows)
        case .edit(let id, let edits, let countMax, let sizeMax):
            return try self.edit(id, edits, countMax: countMax, sizeMax: sizeMax, rows)
        case .convert(let id, let kind, let first, let countMax, let sizeMax):
            return try self.convert(
                id, to: kind, first, countMax: countMax, sizeMax: sizeMax, rows)
        }
    }

    // MARK: Looking

    mutating func record(
        _ name: String, _ rows: RowView
    ) throws(Stop) -> Record? {
        do throws(StoreError) { return try self.zone.record(name, over: rows) } catch {
            throw .store(error)
        }
    }

    /// A live item, wherever it is.
    mutating func stored(
        _ id: String, _ rows: RowView
    ) throws(Stop) -> DocumentItem? {
        guard DocumentNames.isID(id), let record = try self.record(id, rows) else { return nil }
        do throws(StoreError) { return try DocumentItem(record) } catch { throw .store(error) }
    }

    /// An item that can be reached from a root.
    mutating func item(
        _ id: String, _ rows: RowView
    ) throws(Stop) -> DocumentItem {
        if DocumentNames.isRoot(id) { throw .refused(.isRoot, id) }
        guard let item = try self.stored(id, rows),
            try self.depth(of: item.folder, rows) != nil
        else { throw .refused(.notFound, "") }
        return item
    }

    mutating func file(
        _ id: String, _ rows: RowView
    ) throws(Stop) -> DocumentItem {
        let item = try self.item(id, rows)
        guard item.kind == .file else { throw .refused(.notAFile, id) }
        return item
    }

    /// The steps from a folder up to the root; nil: it is no folder, or one above it is gone.
    mutating func depth(
        of folder: String, avoiding id: String? = nil, _ rows: RowView
    ) throws(Stop) -> Int? {
        var depth = 0
        var at = folder
        while at != DocumentNames.root {
            if at == id, !self.bugs.contains(.folderMovedIntoItself) {
                throw .refused(.circle, "")
            }
            depth += 1
            if at == DocumentNames.documents { break }
            guard depth <= DocumentNames.depthMax, let item = try self.stored(at, rows),
                item.kind == .folder
            else { return nil }
            at = item.folder
        }
        return depth
    }

    mutating func holder(
        of name: String, in folder: String, _ rows: RowView
    ) throws(Stop) -> String? {
        let folded = DocumentNames.folded(name)
        if folder == DocumentNames.root,
            folded == DocumentNames.folded(DocumentNames.documentsName)
        {
            return DocumentNames.documents
        }
        let key = DocumentNames.key(self.zone.zone.number, folder: folder, folded: folded)
        if let known = self.names[key] { return known }
        if self.bugs.contains(.nameTakenTwice) { return nil }
        do throws(StoreError) {
            return try rows.row(.reference, key).map {
                String(decoding: $0.dropFirst(), as: UTF8.self)
            }
        } catch {
            throw .store(error)
        }
    }

    func check(_ name: String) throws(Stop) {
        guard DocumentNames.isName(name) else { throw .refused(.nameInvalid, name) }
        if DocumentNames.staysLocal(name) { throw .refused(.staysLocal, name) }
    }

    func effectiveTime(_ at: Int64) -> Int64 {
        let (span, isOverflow) = self.modify.nowMilliseconds.subtractingReportingOverflow(at)
        let age = at >= self.modify.nowMilliseconds ? 0 : isOverflow ? .max : span
        return self.zone.milliseconds - min(age, self.zone.milliseconds)
    }

    // MARK: Writing

    mutating func write(
        _ name: String, _ type: String, _ fields: [Field], over known: Record?,
        _ rows: RowView
    ) throws(Stop) {
        let stamp = ChangeStamp(
            milliseconds: self.zone.milliseconds, userRecordName: self.principal.userRecordName,
            deviceID: self.modify.device)
        let record = Record(
            name: name, type: type, zone: self.zone.id, tag: self.zone.nextTag,
            created: known?.created ?? stamp, modified: stamp, fields: fields)
        let before = known?.actingReferences ?? []
        let after = record.actingReferences
        var writer = ByteWriter(reserving: 512)
        writer.write(recordBody: record)
        do throws(StoreError) {
            try self.zone.save(
                record, encoded: writer.bytes,
                addedReferences: ActingReference.subtract(before, from: after),
                removedReferences: ActingReference.subtract(after, from: before),
                restatedReferences: [], reservations: [:], over: rows)
        } catch {
            throw .store(error)
        }
    }

    /// Writes an item, and notes its name.
    mutating func write(
        _ item: inout DocumentItem, _ rows: RowView
    ) throws(Stop) {
        let known = try self.record(item.id, rows)
        let number = self.zone.zone.number
        if let known, let row = DocumentNames.row(of: known, in: number) {
            self.names[row.key] = .some(nil)
        }
        item.tag = self.zone.nextTag.raw
        try self.write(
            item.id, DocumentItem.type, item.fields(in: self.zone.id), over: known, rows)
        let key = DocumentNames.key(
            number, folder: item.folder, folded: DocumentNames.folded(item.name))
        self.names[key] = item.id
    }

    // MARK: Operations

    private mutating func create(
        _ id: String, _ kind: DocumentItem.Kind, _ name: String, _ folder: String,
        _ clash: DocumentOperation.Clash, _ content: DocumentContent?, _ at: Int64,
        _ rows: RowView
    ) throws(Stop) -> DocumentResult {
        guard DocumentNames.isID(id), try self.record(id, rows) == nil else {
            throw .refused(.idInvalid, id)
        }
        try self.check(name)
        if kind == .folder, content != nil { throw .refused(.notAFile, id) }
        var content = content
        if let given = content {
            content = try self.ready(given, kind: kind, of: nil, basedOn: nil, rows)
        }
        // What was in a removed one, or its contents, may still be on its way out: it would come
        // back, and go.
        let left: Int
        do throws(StoreError) {
            left = Int(try self.zone.referrerCounts(of: id, over: rows).deleteSelf)
        } catch {
            throw .store(error)
        }
        guard left == 0 else { throw .refused(.idInvalid, id) }
        try self.checkFolder(folder, rows)
        try self.checkLocks(onMembersOf: folder, rows)
        if clash == .replace, kind == .file,
            let holder = try self.holder(of: name, in: folder, rows),
            !DocumentNames.isRoot(holder), let known = try self.stored(holder, rows),
            known.kind == .file
        {
            // The content follows by a save; until then the old one stays.
            guard let content else { return .item(known) }
            try self.checkLocks(on: known, rows)
            return .item(
                try self.save(known, content, basedOn: known.contentTag, at: at, rows))
        }
        let free = try self.free(name, in: folder, clash, isFile: kind != .folder, rows)
        try self.check(content ?? .inline([]), rows)
        var item = DocumentItem(
            id: id, kind: kind, name: free, folder: folder,
            editedAtMilliseconds: self.effectiveTime(at), device: self.modify.device)
        if let content {
            item.contentTag = self.zone.nextTag.raw
            item.size = content.size
        }
        try self.write(&item, rows)
        if let content {
            try self.write(
                DocumentVersion(
                    contentTag: item.contentTag, size: item.size,
                    editedAtMilliseconds: item.editedAtMilliseconds, device: item.device),
                content, of: id, rows)
        }
        return .item(item)
    }

    /// Refuses a folder that is not there, too deep for something in it, or full.
    @discardableResult
    mutating func checkFolder(
        _ folder: String, avoiding id: String? = nil, _ rows: RowView
    ) throws(Stop) -> Int {
        guard let depth = try self.depth(of: folder, avoiding: id, rows) else {
            throw .refused(.folderNotFound, folder)
        }
        guard depth < DocumentNames.depthMax else {
            throw .refused(.tooDeep, String(DocumentNames.depthMax))
        }
        guard !DocumentNames.isRoot(folder) else { return depth }
        let count: UInt64
        do throws(StoreError) {
            count = UInt64(try self.zone.referrerCounts(of: folder, over: rows).deleteSelf)
        } catch {
            throw .store(error)
        }
        guard count < UInt64(self.rules.folderCountMax) else {
            throw .refused(.tooManyItems, String(self.rules.folderCountMax))
        }
        return depth
    }

    /// The name itself where nobody else has it, or one with a number.
    mutating func free(
        _ name: String, in folder: String, _ clash: DocumentOperation.Clash, isFile: Bool,
        except id: String? = nil, _ rows: RowView
    ) throws(Stop) -> String {
        guard let holder = try self.holder(of: name, in: folder, rows), holder != id else {
            return name
        }
        guard clash == .rename else { throw .refused(.nameTaken, holder) }
        for number in 2...Self.numberMax {
            try self.look(through: 1)
            let other = DocumentNames.numbered(name, number, isFile: isFile)
            guard DocumentNames.isName(other) else { throw .refused(.nameInvalid, other) }
            if try self.holder(of: other, in: folder, rows) == nil { return other }
        }
        throw .refused(.nameTaken, holder)
    }

    /// Keeps both contents where the device did not know the current one.
    mutating func save(
        _ known: DocumentItem, _ content: DocumentContent, basedOn: UInt64?, at: Int64,
        _ rows: RowView
    ) throws(Stop) -> DocumentItem {
        var item = known
        let current = try self.content(of: known, rows)
        // Of two equal contents one is enough: a device may have saved one twice.
        let isEqual = current?.isEqual(to: content) == true
        let isOutdated = known.contentTag != 0 && basedOn != known.contentTag
        let isConflict = isOutdated && !isEqual
        let freed = current.map { $0.inlineSize + Self.rowSize } ?? 0
        try self.check(content, over: isConflict ? 0 : freed, rows)
        if isConflict, known.conflicts >= UInt64(self.rules.versionCountMax) {
            throw .refused(.tooManyVersions, String(self.rules.versionCountMax))
        }
        let tag = self.zone.nextTag.raw
        let version = DocumentVersion(
            contentTag: tag, size: content.size,
            editedAtMilliseconds: self.effectiveTime(at), device: self.modify.device)
        let isLater =
            (version.editedAtMilliseconds, version.device)
            > (known.editedAtMilliseconds, known.device)
        // What an older edit says is there already, by a later one.
        if isOutdated, isEqual, !isLater { return known }
        if !isConflict || isLater {
            item.contentTag = tag
            item.size = version.size
            item.editedAtMilliseconds = version.editedAtMilliseconds
            item.device = version.device
        }
        if isConflict { item.conflicts += 1 }
        try self.write(&item, rows)
        try self.write(version, content, of: item.id, rows)
        if !isConflict || self.bugs.contains(.losingContentDropped) {
            try self.drop(known.contentTag, of: item.id, rows)
        }
        return item
    }

    private mutating func place(
        _ id: String, _ name: String?, _ folder: String?, _ clash: DocumentOperation.Clash,
        _ tag: UInt64?, _ rows: RowView
    ) throws(Stop) -> DocumentResult {
        var item = try self.item(id, rows)
        if let tag, tag != item.tag { throw .refused(.stale, String(item.tag)) }
        let wanted = name ?? item.name
        let target = folder ?? item.folder
        try self.check(wanted)
        try self.checkLocks(leaving: item, rows)
        try self.checkLocks(onMembersOf: target, rows)
        if target != item.folder {
            let depth = try self.checkFolder(target, avoiding: id, rows)
            let before = try self.depth(of: item.folder, rows) ?? 0
            if item.kind == .folder, depth > before {
                try self.checkHeight(of: id, below: depth + 1, rows)
            }
        }
        item.name = try self.free(
            wanted, in: target, clash, isFile: item.kind != .folder, except: id, rows)
        item.folder = target
        try self.write(&item, rows)
        // A lock is on an address, which the item has left.
        try self.dropLocks(withIn: id, rows)
        return .item(item)
    }

    /// Refuses a folder whose contents would be too deep, or that holds too much to know.
    private mutating func checkHeight(
        of id: String, below depth: Int, _ rows: RowView
    ) throws(Stop) {
        let own = self.ownNames
        var open = [(id: id, depth: depth)]
        var count = 0
        while let next = open.popLast() {
            let children = try self.children(
                of: next.id, own, limit: self.rules.moveCountMax - count, rows)
            count += children.count
            guard count <= self.rules.moveCountMax else {
                throw .refused(.tooManyItems, String(self.rules.moveCountMax))
            }
            try self.look(through: children.count + 1)
            if !children.isEmpty, next.depth + 1 > DocumentNames.depthMax {
                throw .refused(.tooDeep, String(DocumentNames.depthMax))
            }
            for child in children where child.isFolder { open.append((child.id, next.depth + 1)) }
        }
    }

    /// Bounds what one command may look through, so that no command holds up its partition.
    mutating func look(through count: Int) throws(Stop) {
        self.lookedCount += count
        guard self.lookedCount <= 2 * self.rules.moveCountMax else {
            throw .refused(.tooManyItems, String(self.rules.moveCountMax))
        }
    }

    /// Removes an item with everything in it, or with as much as one entry may; a job goes on.
    mutating func remove(
        _ id: String, _ rows: RowView
    ) throws(Stop) {
        var victims = [id]
        var known: Set<String> = [id]
        var next = 0
        let limit = max(1, self.rules.cascadeCountMax - self.deletedCount)
        var isWhole =
            self.lookedCount <= 2 * self.rules.moveCountMax
            && self.removedSize < Self.removedSizeMax
        do throws(StoreError) {
            while next < victims.count, isWhole {
                let referrers = try self.zone.referrers(
                    of: victims[next], .deleteSelf, limit: limit + 1, over: rows)
                self.lookedCount += referrers.count
                next += 1
                for referrer in referrers where known.insert(referrer.name).inserted {
                    victims.append(referrer.name)
                }
                isWhole = victims.count <= limit
            }
            // Packages may hold more files than one entry lets go: a job goes on.
            var assetCount = 0
            var listSize = 0
            for name in victims where isWhole {
                let before = self.zone.touchedSize
                let record = try self.zone.record(name, over: rows)
                self.removedSize += self.zone.touchedSize - before
                isWhole = self.removedSize <= Self.removedSizeMax
                guard let record, isWhole else { continue }
                assetCount += record.assets.count
                if case .scalar(.bytes(let list))? = record.value(of: DocumentPackage.listField) {
                    listSize += list.count
                }
                isWhole = assetCount <= Self.movedAssetMax && listSize <= Self.listSizeMax
            }
            if self.bugs.contains(.subtreeLeftBehind) { victims = [id] }
            var tag = ChangeTag(0)
            for name in isWhole ? victims : [id] {
                guard let record = try self.zone.record(name, over: rows) else { continue }
                if let row = DocumentNames.row(of: record, in: self.zone.zone.number) {
                    self.names[row.key] = .some(nil)
                }
                let deleted = try self.zone.delete(record, over: rows)
                if name == id { tag = deleted }
                self.deletedCount += 1
            }
            if !isWhole {
                self.zone.enqueue(
                    .cascade(
                        self.zone.zone.number, self.zone.place, target: id, before: tag,
                        cursor: ""))
            }
        } catch {
            throw .store(error)
        }
    }

    private mutating func settle(
        _ id: String, _ current: UInt64?, _ drop: [UInt64], _ rows: RowView
    ) throws(Stop) -> DocumentResult {
        var item = try self.contentHolder(id, rows)
        try self.checkLocks(on: item, rows)
        let next = current ?? item.contentTag
        var dropped: Set<UInt64> = []
        if item.kind == .package {
            var contents: [DocumentContent] = []
            for tag in drop {
                if let content = try self.content(tag, of: id, rows) { contents.append(content) }
            }
            try self.checkAssets(contents)
        }
        for tag in drop {
            guard tag != next, dropped.insert(tag).inserted,
                try self.version(tag, of: id, rows) != nil
            else { throw .refused(.versionNotFound, String(tag)) }
        }
        guard let version = try self.version(next, of: id, rows) else {
            throw .refused(.versionNotFound, String(next))
        }
        item.contentTag = next
        item.size = version.size
        item.editedAtMilliseconds = version.editedAtMilliseconds
        item.device = version.device
        item.conflicts -= min(item.conflicts, UInt64(dropped.count))
        try self.write(&item, rows)
        for tag in dropped.sorted() { try self.drop(tag, of: id, rows) }
        return .item(item)
    }

    /// Removes items directly below the root, as many as one command takes.
    private mutating func removeData(_ rows: RowView) throws(Stop)
        -> DocumentResult
    {
        let start = DocumentNames.keys(self.zone.zone.number, folder: DocumentNames.root)
        let found: [(key: Bytes, row: Bytes)]
        do throws(StoreError) {
            found = try rows.rows(
                .reference, from: start, to: Keys.end(of: start),
                limit: ModifyDocuments.operationCountMax + 1)
        } catch {
            throw .store(error)
        }
        var count = 0
        for (key, row) in found.prefix(ModifyDocuments.operationCountMax)
        where self.names[key] == nil {
            let id = String(decoding: row.dropFirst(), as: UTF8.self)
            if let item = try self.stored(id, rows) { try self.checkLocks(leaving: item, rows) }
            try self.remove(id, rows)
            count += 1
        }
        return .dataRemoved(
            count: count, hasMore: found.count > ModifyDocuments.operationCountMax)
    }
}
