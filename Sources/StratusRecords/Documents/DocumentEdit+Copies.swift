import StratusCoding
import StratusModel
import StratusRows

/// Copies and properties of items, and what is in a folder.
extension DocumentEdit {
    /// Sets and removes properties.
    mutating func annotate(
        _ id: String, _ changes: [DocumentPropertyChange], _ countMax: Int, _ sizeMax: Int,
        _ rows: RowView
    ) throws(Stop) -> DocumentResult {
        var item = try self.item(id, rows)
        try self.checkLocks(on: item, rows)
        var properties: [DocumentProperty]
        do throws(StoreError) {
            properties = try DocumentProperty.properties(item.attributes)
        } catch {
            throw .store(error)
        }
        for change in changes {
            switch change {
            case .set(let property):
                properties.removeAll { $0.name == property.name }
                properties.append(property)
            case .remove(let name): properties.removeAll { $0.name == name }
            }
        }
        properties.sort { $0.name < $1.name }
        guard properties.count <= countMax else {
            throw .refused(.tooManyItems, String(countMax))
        }
        let attributes = DocumentProperty.attributes(properties)
        guard attributes.count <= sizeMax else {
            throw .refused(.contentTooLarge, String(sizeMax))
        }
        try self.check(.inline(attributes), over: item.attributes.count, rows)
        item.attributes = attributes
        try self.write(&item, rows)
        return .item(item)
    }

    /// One item of a copy, as it was found.
    private struct Original {
        var item: DocumentItem
        var version: DocumentVersion?
        var content: DocumentContent
        /// The place of its folder among the originals; nil: it is the first.
        var parent: Int?
        var depth: Int
    }

    /// Copies an item with everything in it. All of it is read before anything is written, and no
    /// content before the items say that it is not too much.
    mutating func copy(
        _ copy: DocumentCopy, _ tag: UInt64?, _ rows: RowView
    ) throws(Stop) -> DocumentResult {
        let source = try self.item(copy.source, rows)
        if let tag, tag != source.tag { throw .refused(.stale, String(source.tag)) }
        try self.check(copy.name)
        let depth = try self.checkFolder(copy.folder, avoiding: source.id, rows)
        try self.checkLocks(onMembersOf: copy.folder, rows)
        let name = try self.free(
            copy.name, in: copy.folder, .refuse, isFile: source.kind != .folder, rows)
        var originals = try self.originals(copy, source, rows)
        for original in originals where depth + original.depth >= DocumentNames.depthMax {
            throw .refused(.tooDeep, String(DocumentNames.depthMax))
        }
        guard let first = Self.words(copy.id) else { throw .refused(.idInvalid, copy.id) }
        var ids: [String] = []
        for index in originals.indices {
            let id = Self.id(first, index)
            guard try self.record(id, rows) == nil else { throw .refused(.idInvalid, id) }
            ids.append(id)
        }
        let contentSize = try self.readContents(of: &originals, copy, rows)
        try self.checkAssets(originals.map(\.content))
        var size = contentSize
        for original in originals { size += original.item.attributes.count + Self.rowSize }
        // The quota is asked for the whole of it, before the first item.
        if let room = self.room, self.zone.grownSize + Int64(size) > room {
            throw .refused(.databaseFull, String(self.rules.databaseSizeMax))
        }
        var result: DocumentItem?
        for (index, original) in originals.enumerated() {
            var item = original.item
            item.id = ids[index]
            if let parent = original.parent {
                item.folder = ids[parent]
            } else {
                item.name = name
                item.folder = copy.folder
            }
            item.conflicts = 0
            item.device = self.modify.device
            item.editedAtMilliseconds = self.effectiveTime(self.modify.nowMilliseconds)
            if original.version != nil { item.contentTag = self.zone.nextTag.raw }
            try self.write(&item, rows)
            if var version = original.version {
                version.contentTag = item.contentTag
                version.editedAtMilliseconds = item.editedAtMilliseconds
                version.device = item.device
                try self.write(version, original.content, of: item.id, rows)
            }
            if index == 0 { result = item }
        }
        self.copied.count += originals.count
        self.copied.size += contentSize
        guard let result else { throw .refused(.notFound, "") }
        return .item(result)
    }

    /// The items alone. What they say of their contents is judged as if every file that a record
    /// can hold were in one.
    private mutating func originals(
        _ copy: DocumentCopy, _ source: DocumentItem, _ rows: RowView
    ) throws(Stop) -> [Original] {
        let own = self.ownNames
        var originals: [Original] = []
        let countMax = copy.countMax - self.copied.count
        var size = self.copied.size
        var next = 0
        func add(_ item: DocumentItem, parent: Int?, depth: Int) throws(Stop) {
            originals.append(
                Original(
                    item: item, version: nil, content: .inline([]), parent: parent, depth: depth))
            guard originals.count <= countMax else {
                throw .refused(.tooManyItems, String(copy.countMax))
            }
            if item.kind == .file, item.size <= UInt64(self.rules.contentSizeMax) {
                size += Int(item.size)
            }
            guard size <= copy.sizeMax else {
                throw .refused(.contentTooLarge, String(copy.sizeMax))
            }
        }
        try add(source, parent: nil, depth: 0)
        while next < originals.count {
            let item = originals[next].item
            if item.kind == .folder, copy.isDeep {
                let children = try self.children(
                    of: item.id, own, limit: countMax - originals.count, rows)
                guard originals.count + children.count <= countMax else {
                    throw .refused(.tooManyItems, String(copy.countMax))
                }
                try self.look(through: children.count + 1)
                let depth = originals[next].depth + 1
                for child in children {
                    guard let found = try self.stored(child.id, rows) else { continue }
                    try add(found, parent: next, depth: depth)
                }
            }
            next += 1
        }
        return originals
    }

    /// Reads what is copied, up to the bound: only packages do not say before what their records
    /// hold.
    ///
    /// - Returns: the bytes in records.
    private mutating func readContents(
        of originals: inout [Original], _ copy: DocumentCopy, _ rows: RowView
    ) throws(Stop) -> Int {
        var size = 0
        for index in originals.indices {
            let item = originals[index].item
            guard item.kind != .folder, item.contentTag != 0,
                let record = try self.record(
                    DocumentVersion.recordName(item.id, item.contentTag), rows)
            else { continue }
            do throws(StoreError) {
                (originals[index].version, originals[index].content) =
                    try DocumentVersion.read(record)
            } catch {
                throw .store(error)
            }
            size += originals[index].content.inlineSize
            guard self.copied.size + size <= copy.sizeMax else {
                throw .refused(.contentTooLarge, String(copy.sizeMax))
            }
        }
        return size
    }

    /// Makes files of the contents that wait to be settled. Nothing of them is lost, and nothing of
    /// the current content changes.
    mutating func separate(
        _ id: String, _ firstID: String, _ rows: RowView
    ) throws(Stop) -> DocumentResult {
        var item = try self.contentHolder(id, rows)
        try self.checkLocks(on: item, rows)
        try self.checkLocks(onMembersOf: item.folder, rows)
        if item.conflicts == 0 { return .item(item) }
        try self.checkFolder(item.folder, rows)
        guard let first = Self.words(firstID) else { throw .refused(.idInvalid, firstID) }
        var waiting: [(version: DocumentVersion, content: DocumentContent)] = []
        do throws(StoreError) {
            let limit =
                self.rules.versionCountMax + DocumentLock.countMax
                + 2 * DocumentPublication.itemCountMax + 2
            for referrer in try self.zone.referrers(of: id, .deleteSelf, limit: limit, over: rows) {
                guard let record = try self.zone.record(referrer.name, over: rows),
                    record.type == DocumentItem.contentType, record.name.hasPrefix(id)
                else { continue }
                let (version, content) = try DocumentVersion.read(record)
                if version.contentTag != item.contentTag { waiting.append((version, content)) }
            }
        } catch {
            throw .store(error)
        }
        // Each is let go by one record and taken by another.
        try self.checkAssets(waiting.map(\.content) + waiting.map(\.content))
        waiting.sort { $0.version.contentTag < $1.version.contentTag }
        for index in waiting.indices {
            let other = Self.id(first, index)
            guard try self.record(other, rows) == nil else { throw .refused(.idInvalid, other) }
        }
        for (index, (version, content)) in waiting.enumerated() {
            var other = DocumentItem(
                id: Self.id(first, index), kind: item.kind,
                name: try self.free(item.name, in: item.folder, .rename, isFile: true, rows),
                folder: item.folder, editedAtMilliseconds: version.editedAtMilliseconds,
                device: version.device)
            other.contentTag = self.zone.nextTag.raw
            other.size = version.size
            try self.write(&other, rows)
            var moved = version
            moved.contentTag = other.contentTag
            try self.write(moved, content, of: other.id, rows)
            try self.drop(version.contentTag, of: id, rows)
        }
        item.conflicts = 0
        try self.write(&item, rows)
        return .item(item)
    }

    /// The two words of an ID.
    static func words(_ id: String) -> (high: UInt64, low: UInt64)? {
        guard DocumentNames.isID(id), let high = UInt64(id.prefix(16), radix: 16),
            let low = UInt64(id.suffix(16), radix: 16)
        else { return nil }
        return (high, low)
    }

    static func id(_ first: (high: UInt64, low: UInt64), _ index: Int) -> String {
        RequestIdentity(high: first.high, low: first.low &+ UInt64(index)).description
    }

    // MARK: Folders

    /// What this very command put somewhere, by the keys of names: it is in no row yet.
    var ownNames: [(key: Bytes, id: String)] {
        var own: [(key: Bytes, id: String)] = []
        for (key, holder) in self.names { if let holder { own.append((key, holder)) } }
        own.sort { $0.key.lexicographicallyPrecedes($1.key) }
        return own
    }

    /// What is in a folder; more than `limit` items where there are more.
    mutating func children(
        of folder: String, _ own: [(key: Bytes, id: String)], limit: Int,
        _ rows: RowView
    ) throws(Stop) -> [(id: String, isFolder: Bool)] {
        let start = DocumentNames.keys(self.zone.zone.number, folder: folder)
        let end = Keys.end(of: start)
        let found: [(key: Bytes, row: Bytes)]
        do throws(StoreError) {
            // Those that this command took away are among the rows.
            found = try rows.rows(
                .reference, from: start, to: end, limit: limit + 1 + self.names.count)
        } catch {
            throw .store(error)
        }
        let isFolder = DocumentItem.Kind.folder.rawValue
        var children: [(id: String, isFolder: Bool)] = []
        for (key, row) in found where self.names[key] == nil {
            children.append(
                (String(decoding: row.dropFirst(), as: UTF8.self), row.first == isFolder))
        }
        var (low, high) = (0, own.count)
        while low < high {
            let middle = (low + high) / 2
            if own[middle].key.lexicographicallyPrecedes(start) {
                low = middle + 1
            } else {
                high = middle
            }
        }
        while low < own.count, own[low].key.lexicographicallyPrecedes(end) {
            let child = own[low].id
            children.append((child, try self.stored(child, rows)?.kind == .folder))
            low += 1
        }
        return children
    }
}
