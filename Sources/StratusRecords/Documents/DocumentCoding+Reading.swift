import StratusCoding
import StratusModel

// Reads what `DocumentCoding.swift` writes; its table says which bytes follow which.

extension ByteReader {
    private mutating func optionalNumber() throws(DecodingError) -> UInt64? {
        try self.flag() ? try self.varint() : nil
    }

    private mutating func documentKind() throws(DecodingError) -> DocumentItem.Kind {
        guard let kind = DocumentItem.Kind(rawValue: try self.byte()) else {
            throw DecodingError(.malformed, at: self.offset - 1)
        }
        return kind
    }

    private mutating func clash() throws(DecodingError) -> DocumentOperation.Clash {
        guard let clash = DocumentOperation.Clash(rawValue: try self.byte()) else {
            throw DecodingError(.malformed, at: self.offset - 1)
        }
        return clash
    }

    mutating func documentOperation() throws(DecodingError) -> DocumentOperation {
        switch try self.byte() {
        case 1:
            let id = try self.text()
            let kind = try self.documentKind()
            let name = try self.text()
            let folder = try self.text()
            let clash = try self.clash()
            let content =
                try self.flag() ? DocumentContent.inline(try self.prefixed()) : nil
            return .create(
                id: id, kind, name: name, folder: folder, clash, content: content,
                atMilliseconds: try self.signed())
        case 2:
            let id = try self.text()
            let content = DocumentContent.inline(try self.prefixed())
            let basedOn = try self.optionalNumber()
            let ifUnchanged = try self.flag()
            return .save(
                id: id, content: content, basedOn: basedOn, ifUnchanged: ifUnchanged,
                atMilliseconds: try self.signed())
        case 3:
            let id = try self.text()
            let name = try self.optionalText()
            let folder = try self.optionalText()
            let clash = try self.clash()
            return .place(id: id, name: name, folder: folder, clash, tag: try self.optionalNumber())
        case 4:
            let id = try self.text()
            return .remove(id: id, basedOn: try self.optionalNumber())
        case 5:
            let id = try self.text()
            let current = try self.optionalNumber()
            var drop: [UInt64] = []
            for _ in 0..<(try self.count()) { drop.append(try self.varint()) }
            return .settle(id: id, current: current, drop: drop)
        case 6: return .removeData
        case 7:
            let id = try self.text()
            var changes: [DocumentPropertyChange] = []
            for _ in 0..<(try self.count(minimumSize: 3)) {
                switch try self.byte() {
                case 1: changes.append(.set(try self.documentProperty()))
                case 2:
                    let namespace = try self.text()
                    changes.append(
                        .remove(.init(namespace: namespace, local: try self.text())))
                default: throw DecodingError(.malformed, at: self.offset - 1)
                }
            }
            let countMax = try self.boundedInt()
            return .annotate(
                id: id, changes, countMax: countMax, sizeMax: try self.boundedInt())
        case 8:
            let source = try self.text()
            let name = try self.text()
            let folder = try self.text()
            let id = try self.text()
            let isDeep = try self.flag()
            let countMax = try self.boundedInt()
            let copy = DocumentCopy(
                source: source, name: name, folder: folder, id: id, isDeep: isDeep,
                countMax: countMax, sizeMax: try self.boundedInt())
            return .copy(copy, tag: try self.optionalNumber())
        case 9:
            let lock = try self.documentLock()
            let milliseconds = try self.signed()
            return .lock(lock, milliseconds: milliseconds, countMax: try self.boundedInt())
        case 10:
            let token = try self.text()
            return .refresh(token: token, milliseconds: try self.signed())
        case 11: return .unlock(token: try self.text())
        case 12:
            let id = try self.text()
            let kind = try self.documentKind()
            let name = try self.text()
            let folder = try self.text()
            let clash = try self.clash()
            let file = try self.documentFile()
            return .create(
                id: id, kind, name: name, folder: folder, clash, content: .file(file),
                atMilliseconds: try self.signed())
        case 13:
            let id = try self.text()
            let file = try self.documentFile()
            let basedOn = try self.optionalNumber()
            let ifUnchanged = try self.flag()
            return .save(
                id: id, content: .file(file), basedOn: basedOn, ifUnchanged: ifUnchanged,
                atMilliseconds: try self.signed())
        case 14:
            let id = try self.text()
            return .separate(id: id, first: try self.text())
        case 15:
            let publication = try self.documentPublication()
            return .publish(publication, milliseconds: try self.signed())
        case 16: return .withdraw(id: try self.text())
        case 17:
            let id = try self.text()
            let kind = try self.documentKind()
            let name = try self.text()
            let folder = try self.text()
            let clash = try self.clash()
            let package = try self.documentPackage()
            return .create(
                id: id, kind, name: name, folder: folder, clash, content: .package(package),
                atMilliseconds: try self.signed())
        case 18:
            let id = try self.text()
            let package = try self.documentPackage()
            let basedOn = try self.optionalNumber()
            let ifUnchanged = try self.flag()
            return .save(
                id: id, content: .package(package), basedOn: basedOn, ifUnchanged: ifUnchanged,
                atMilliseconds: try self.signed())
        case 19:
            let id = try self.text()
            var edits: [DocumentPackageEdit] = []
            for _ in 0..<(try self.count(minimumSize: 3)) {
                edits.append(try self.documentPackageEdit())
            }
            let countMax = try self.boundedInt()
            return .edit(id: id, edits, countMax: countMax, sizeMax: try self.boundedInt())
        case 20:
            let id = try self.text()
            let kind = try self.documentKind()
            let first = try self.text()
            let countMax = try self.boundedInt()
            return .convert(
                id: id, kind, first: first, countMax: countMax, sizeMax: try self.boundedInt())
        default: throw DecodingError(.malformed, at: self.offset - 1)
        }
    }

    private mutating func documentFile() throws(DecodingError) -> DocumentFile {
        let asset = AssetID(try self.name())
        let checksum = try self.text()
        return DocumentFile(asset: asset, checksum: checksum, size: try self.varint())
    }

    private mutating func documentPackage() throws(DecodingError) -> DocumentPackage {
        let countMax = try self.boundedInt()
        let sizeMax = try self.boundedInt()
        var parts: [DocumentPart] = []
        for _ in 0..<(try self.count(minimumSize: 3)) {
            let path = try self.text()
            let content = try self.documentPartContent()
            parts.append(DocumentPart(path, content, tag: try self.varint()))
        }
        return DocumentPackage(parts, countMax: countMax, sizeMax: sizeMax)
    }

    private mutating func documentPartContent() throws(DecodingError) -> DocumentPart.Content {
        switch try self.byte() {
        case 0: return .folder
        case 1: return .inline(try self.prefixed())
        case 2: return .file(try self.documentFile())
        case 3:
            let checksum = try self.text()
            return .held(checksum: checksum, size: try self.varint())
        default: throw DecodingError(.malformed, at: self.offset - 1)
        }
    }

    private mutating func documentPackageEdit() throws(DecodingError) -> DocumentPackageEdit {
        switch try self.byte() {
        case 1:
            let path = try self.text()
            let content = try self.documentPartContent()
            return .put(path: path, content, seen: try self.optionalNumber())
        case 2:
            let path = try self.text()
            return .remove(path: path, seen: try self.optionalNumber())
        case 3:
            let from = try self.text()
            let to = try self.text()
            return .transfer(from: from, to: to, isMove: try self.flag())
        default: throw DecodingError(.malformed, at: self.offset - 1)
        }
    }

    private mutating func documentProperty() throws(DecodingError) -> DocumentProperty {
        let namespace = try self.text()
        let local = try self.text()
        return DocumentProperty(
            .init(namespace: namespace, local: local), element: try self.prefixed())
    }

    mutating func documentProperties() throws(DecodingError) -> [DocumentProperty] {
        var properties: [DocumentProperty] = []
        for _ in 0..<(try self.count(minimumSize: 3)) {
            properties.append(try self.documentProperty())
        }
        return properties
    }

    private mutating func documentLock() throws(DecodingError) -> DocumentLock {
        let token = try self.text()
        let item = try self.text()
        let isExclusive = try self.flag()
        let isInfinite = try self.flag()
        let owner = try self.prefixed()
        return DocumentLock(
            token: token, item: item, isExclusive: isExclusive, isInfinite: isInfinite,
            owner: owner, untilMilliseconds: try self.signed())
    }

    private mutating func documentPublication() throws(DecodingError) -> DocumentPublication {
        let id = try self.text()
        let item = try self.text()
        var publication = DocumentPublication(id: id, item: item, secret: try self.text())
        publication.name = try self.text()
        publication.slot = try self.boundedInt()
        publication.contentTag = try self.varint()
        publication.size = try self.varint()
        publication.untilMilliseconds = try self.signed()
        return publication
    }

    mutating func documentResults() throws(DecodingError) -> [DocumentResult] {
        var results: [DocumentResult] = []
        for _ in 0..<(try self.count()) {
            switch try self.byte() {
            case 1: results.append(.item(try self.documentItem()))
            case 2: results.append(.removed(id: try self.text()))
            case 3:
                let count = try self.boundedInt()
                results.append(.dataRemoved(count: count, hasMore: try self.flag()))
            case 4:
                guard let reason = DocumentRefusal(rawValue: try self.byte()) else {
                    throw DecodingError(.malformed, at: self.offset - 1)
                }
                results.append(.refused(reason, subject: try self.text()))
            case 5: results.append(.lock(try self.documentLock()))
            case 6: results.append(.unlocked)
            case 7: results.append(.published(try self.documentPublication()))
            default: throw DecodingError(.malformed, at: self.offset - 1)
            }
        }
        return results
    }

    private mutating func documentItem() throws(DecodingError) -> DocumentItem {
        let id = try self.text()
        let kind = try self.documentKind()
        let name = try self.text()
        let folder = try self.text()
        let size = try self.varint()
        let contentTag = try self.varint()
        let editedAt = try self.signed()
        var item = DocumentItem(
            id: id, kind: kind, name: name, folder: folder, editedAtMilliseconds: editedAt,
            device: try self.text())
        item.size = size
        item.contentTag = contentTag
        item.conflicts = try self.varint()
        item.tag = try self.varint()
        return item
    }

    private mutating func documentVersion() throws(DecodingError) -> DocumentVersion {
        let contentTag = try self.varint()
        let size = try self.varint()
        let editedAt = try self.signed()
        return DocumentVersion(
            contentTag: contentTag, size: size, editedAtMilliseconds: editedAt,
            device: try self.text())
    }

    mutating func documentsAsk() throws(DecodingError) -> DocumentsAsk {
        let database = try self.database()
        switch try self.byte() {
        case 1:
            let folder = try self.text()
            let after = try self.flag() ? try self.prefixed() : nil
            return DocumentsAsk(
                database: database,
                .list(folder: folder, after: after, limit: try self.boundedInt()))
        case 2:
            var selectors: [DocumentsAsk.Selector] = []
            for _ in 0..<(try self.count(minimumSize: 2)) {
                switch try self.byte() {
                case 1: selectors.append(.id(try self.text()))
                case 2: selectors.append(.path(try self.texts()))
                default: throw DecodingError(.malformed, at: self.offset - 1)
                }
            }
            return DocumentsAsk(database: database, .lookup(selectors))
        case 3:
            let after = try self.flag() ? try self.feedPosition() : nil
            return DocumentsAsk(
                database: database, .changes(after: after, limit: try self.boundedInt()))
        case 4:
            let id = try self.text()
            return DocumentsAsk(
                database: database, .content(id: id, version: try self.optionalNumber()))
        case 5: return DocumentsAsk(database: database, .versions(id: try self.text()))
        case 6: return DocumentsAsk(database: database, .properties(ids: try self.texts()))
        case 7: return DocumentsAsk(database: database, .locks)
        case 8: return DocumentsAsk(database: database, .chain(try self.texts()))
        case 9: return DocumentsAsk(database: database, .publications)
        case 10:
            let slot = try self.boundedInt()
            return DocumentsAsk(
                database: database, .published(slot: slot, secret: try self.text()))
        default: throw DecodingError(.malformed, at: self.offset - 1)
        }
    }

    mutating func documentsAnswer() throws(DecodingError) -> DocumentsAnswer {
        switch try self.byte() {
        case 1:
            let isThere = try self.flag()
            var items: [DocumentItem] = []
            for _ in 0..<(try self.count(minimumSize: 10)) { items.append(try self.documentItem()) }
            return .list(
                isThere ? items : nil, next: try self.flag() ? try self.prefixed() : nil)
        case 2:
            var items: [DocumentItem?] = []
            for _ in 0..<(try self.count()) {
                items.append(try self.flag() ? try self.documentItem() : nil)
            }
            return .lookup(items)
        case 3:
            let isFromStart = try self.flag()
            var changes: [DocumentChangesPage.Change] = []
            for _ in 0..<(try self.count(minimumSize: 2)) {
                switch try self.byte() {
                case 1: changes.append(.changed(try self.documentItem()))
                case 2: changes.append(.removed(id: try self.text()))
                default: throw DecodingError(.malformed, at: self.offset - 1)
                }
            }
            let position = try self.feedPosition()
            return .changes(
                DocumentChangesPage(
                    isFromStart: isFromStart, changes: changes, position: position,
                    moreComing: try self.flag()))
        case 4:
            guard try self.flag() else { return .content(nil, nil, .inline([])) }
            let item = try self.documentItem()
            let version = try self.documentVersion()
            return .content(item, version, .inline(try self.prefixed()))
        case 8:
            let item = try self.documentItem()
            let version = try self.documentVersion()
            return .content(item, version, .file(try self.documentFile()))
        case 5:
            let isThere = try self.flag()
            var versions: [DocumentVersion] = []
            for _ in 0..<(try self.count(minimumSize: 4)) {
                versions.append(try self.documentVersion())
            }
            return .versions(isThere ? versions : nil)
        case 6:
            var all: [[DocumentProperty]] = []
            for _ in 0..<(try self.count()) { all.append(try self.documentProperties()) }
            return .properties(all)
        case 7:
            var locks: [DocumentLock] = []
            for _ in 0..<(try self.count(minimumSize: 6)) {
                locks.append(try self.documentLock())
            }
            return .locks(locks)
        case 10:
            let item = try self.documentItem()
            let version = try self.documentVersion()
            return .content(item, version, .package(try self.documentPackage()))
        case 9:
            var publications: [DocumentPublication] = []
            for _ in 0..<(try self.count(minimumSize: 8)) {
                publications.append(try self.documentPublication())
            }
            return .publications(publications)
        default: throw DecodingError(.malformed, at: self.offset - 1)
        }
    }
}
