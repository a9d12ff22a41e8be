import StratusCoding
import StratusModel

// Documents in commands, outcomes, questions and answers
//
// | where     | what follows the kind                                                       |
// | --------- | --------------------------------------------------------------------------- |
// | command   | text device, signed now, 8 drawn incarnation, flag atomic, varints |
// |           | content size, versions, items of a folder, cascade, moved items, quota;     |
// |           | count of operations; count of texts: tokens of locks                        |
// | operation | 1 kind: 1 create: text id, 1 kind, texts name and folder, 1 clash, flag and  |
// |           | prefixed content, signed time; 2 save: text id, prefixed content, flag and  |
// |           | varint base, flag if unchanged, signed time; 3 place: text id, optional     |
// |           | texts name and folder, 1 clash, flag and varint tag; 4 remove: text id,      |
// |           | flag and varint base; 5 settle: text id, flag and varint current, count of  |
// |           | varints; 6 remove data; 7 annotate: text id, count of changes, varints count |
// |           | and size; 8 copy: texts source, name, folder and id, flag deep, varints      |
// |           | items and bytes, flag and varint tag; 9 lock: lock, signed span, varint      |
// |           | locks; 10 refresh: text token, signed span; 11 unlock: text token; 12 create |
// |           | and 13 save with a file: as 1 and 2, with a file where content is; 14        |
// |           | separate: texts id and first; 15 publish: publication, signed span; 16       |
// |           | withdraw: text id; 17 create and 18 save with a package: as 12 and 13, with  |
// |           | a package where the file is; 19 edit: text id, count of edits, varints parts |
// |           | and bytes; 20 convert: text id, 1 kind, text first, varints parts and bytes  |
// | package   | varints parts and bytes, count of parts                                      |
// | part      | text path, 1 kind: 0 folder, 1 prefixed bytes, 2 file, 3 held: text checksum, |
// |           | varint size; then varint tag                                                |
// | edit      | 1 put: text path, content of a part, flag and varint seen; 2 remove: text    |
// |           | path, flag and varint seen; 3 transfer: texts from and to, flag move         |
// | publication | texts id, item, secret and name, varints slot, content tag and size,       |
// |           | signed until                                                                |
// | file      | 16 asset, text checksum, varint size                                        |
// | change    | 1 and a property, or 2 and texts namespace and local                         |
// | property  | texts namespace and local, prefixed element                                  |
// | lock      | texts token and item, flags exclusive and infinite, prefixed owner, signed   |
// |           | until                                                                       |
// | outcome   | count of results: 1 item, 2 removed: text id, 3 data removed: varint count,   |
// |           | flag more, 4 refused: 1 reason, text subject, 5 a lock, 6 unlocked, 7 a       |
// |           | publication                                                                 |
// | item      | text id, 1 kind, texts name and folder, varints size and content tag, signed |
// |           | edited, text device, varints conflicts and tag                              |
// | query     | database, 1 kind: 1 list: text folder, flag and prefixed place, varint limit; |
// |           | 2 look-up: count, each 1 and a text id, or 2 and a count of texts;           |
// |           | 3 changes: flag and position, varint limit; 4 content: text id, flag and     |
// |           | varint; 5 versions: text id; 6 properties: count of texts; 7 locks; 8 chain: |
// |           | count of texts; 9 publications; 10 published: varint slot, text secret       |
// | answer    | 1 kind: 1 list: flag and count of items, flag and prefixed place; 2 look-up:  |
// |           | count, each a flag and an item; 3 changes: flag from the start, count, each  |
// |           | 1 and an item or 2 and a text id, position, flag more; 4 content: flag, item, |
// |           | version, prefixed bytes; 5 versions: flag and count of versions; 6           |
// |           | properties: count, each a count of properties; 7 locks: count of locks; 8    |
// |           | content in a file: item, version, file. A chain is answered as a look-up,    |
// |           | and what a link leads to as a content; 9 publications: count; 10 content of  |
// |           | a package: item, version, package                                           |
// | version   | varints content tag and size, signed edited, text device                     |

extension ModifyDocuments {
    func write(to writer: inout ByteWriter) {
        writer.write(text: self.device)
        writer.write(signed: self.nowMilliseconds)
        writer.write(fixed: self.drawnIncarnation.raw)
        writer.write(flag: self.isAtomic)
        writer.write(count: max(0, self.rules.contentSizeMax))
        writer.write(count: max(0, self.rules.versionCountMax))
        writer.write(count: max(0, self.rules.folderCountMax))
        writer.write(count: max(0, self.rules.cascadeCountMax))
        writer.write(count: max(0, self.rules.moveCountMax))
        writer.write(varint: self.rules.databaseSizeMax)
        writer.write(count: self.operations.count)
        for operation in self.operations { writer.write(operation) }
        writer.write(texts: self.tokens)
    }

    init(from reader: inout ByteReader, in database: DatabaseID) throws(DecodingError) {
        let device = try reader.text()
        let now = try reader.signed()
        let incarnation = ZoneIncarnation(try reader.fixed64())
        let isAtomic = try reader.flag()
        var rules = DocumentRules()
        rules.contentSizeMax = try reader.boundedInt()
        rules.versionCountMax = try reader.boundedInt()
        rules.folderCountMax = try reader.boundedInt()
        rules.cascadeCountMax = try reader.boundedInt()
        rules.moveCountMax = try reader.boundedInt()
        rules.databaseSizeMax = try reader.varint()
        var operations: [DocumentOperation] = []
        for _ in 0..<(try reader.count()) { operations.append(try reader.documentOperation()) }
        self.init(
            database: database, device: device, nowMilliseconds: now,
            drawnIncarnation: incarnation, isAtomic: isAtomic, rules: rules,
            operations: operations, tokens: try reader.texts())
    }
}

extension DocumentContent {
    /// The kind of an operation, by what it brings.
    fileprivate func kind(inline: UInt8, file: UInt8, package: UInt8) -> UInt8 {
        switch self {
        case .inline: inline
        case .file: file
        case .package: package
        }
    }
}

extension ByteWriter {
    private mutating func write(optional number: UInt64?) {
        self.write(flag: number != nil)
        if let number { self.write(varint: number) }
    }

    fileprivate mutating func write(_ operation: DocumentOperation) {
        switch operation {
        case .create(let id, let kind, let name, let folder, let clash, let content, let at):
            let number = content?.kind(inline: 1, file: 12, package: 17) ?? 1
            self.write(number)
            self.write(text: id)
            self.write(kind.rawValue)
            self.write(text: name)
            self.write(text: folder)
            self.write(clash.rawValue)
            if number == 1 { self.write(flag: content != nil) }
            if let content { self.write(content) }
            self.write(signed: at)
        case .save(let id, let content, let basedOn, let ifUnchanged, let at):
            self.write(content.kind(inline: 2, file: 13, package: 18))
            self.write(text: id)
            self.write(content)
            self.write(optional: basedOn)
            self.write(flag: ifUnchanged)
            self.write(signed: at)
        case .place(let id, let name, let folder, let clash, let tag):
            self.write(3 as UInt8)
            self.write(text: id)
            self.write(optionalText: name)
            self.write(optionalText: folder)
            self.write(clash.rawValue)
            self.write(optional: tag)
        case .remove(let id, let basedOn):
            self.write(4 as UInt8)
            self.write(text: id)
            self.write(optional: basedOn)
        case .settle(let id, let current, let drop):
            self.write(5 as UInt8)
            self.write(text: id)
            self.write(optional: current)
            self.write(count: drop.count)
            for tag in drop { self.write(varint: tag) }
        case .removeData: self.write(6 as UInt8)
        case .separate(let id, let first):
            self.write(14 as UInt8)
            self.write(text: id)
            self.write(text: first)
        case .publish(let publication, let milliseconds):
            self.write(15 as UInt8)
            self.write(publication)
            self.write(signed: milliseconds)
        case .withdraw(let id):
            self.write(16 as UInt8)
            self.write(text: id)
        case .edit(let id, let edits, let countMax, let sizeMax):
            self.write(19 as UInt8)
            self.write(text: id)
            self.write(count: edits.count)
            for edit in edits { self.write(edit) }
            self.write(count: max(0, countMax))
            self.write(count: max(0, sizeMax))
        case .convert(let id, let kind, let first, let countMax, let sizeMax):
            self.write(20 as UInt8)
            self.write(text: id)
            self.write(kind.rawValue)
            self.write(text: first)
            self.write(count: max(0, countMax))
            self.write(count: max(0, sizeMax))
        case .annotate(let id, let changes, let countMax, let sizeMax):
            self.write(7 as UInt8)
            self.write(text: id)
            self.write(count: changes.count)
            for change in changes {
                switch change {
                case .set(let property):
                    self.write(1 as UInt8)
                    self.write(property)
                case .remove(let name):
                    self.write(2 as UInt8)
                    self.write(text: name.namespace)
                    self.write(text: name.local)
                }
            }
            self.write(count: max(0, countMax))
            self.write(count: max(0, sizeMax))
        case .copy(let copy, let tag):
            self.write(8 as UInt8)
            self.write(text: copy.source)
            self.write(text: copy.name)
            self.write(text: copy.folder)
            self.write(text: copy.id)
            self.write(flag: copy.isDeep)
            self.write(count: max(0, copy.countMax))
            self.write(count: max(0, copy.sizeMax))
            self.write(optional: tag)
        case .lock(let lock, let milliseconds, let countMax):
            self.write(9 as UInt8)
            self.write(lock)
            self.write(signed: milliseconds)
            self.write(count: max(0, countMax))
        case .refresh(let token, let milliseconds):
            self.write(10 as UInt8)
            self.write(text: token)
            self.write(signed: milliseconds)
        case .unlock(let token):
            self.write(11 as UInt8)
            self.write(text: token)
        }
    }

    private mutating func write(_ content: DocumentContent) {
        switch content {
        case .inline(let bytes): self.write(prefixed: bytes)
        case .file(let file):
            self.write(file)
        case .package(let package):
            self.write(count: max(0, package.countMax))
            self.write(count: max(0, package.sizeMax))
            self.write(count: package.parts.count)
            for part in package.parts {
                self.write(text: part.path)
                self.write(part.content)
                self.write(varint: part.tag)
            }
        }
    }

    private mutating func write(_ file: DocumentFile) {
        self.write(name: file.asset.raw)
        self.write(text: file.checksum)
        self.write(varint: file.size)
    }

    private mutating func write(_ content: DocumentPart.Content) {
        switch content {
        case .folder: self.write(0 as UInt8)
        case .inline(let bytes):
            self.write(1 as UInt8)
            self.write(prefixed: bytes)
        case .file(let file):
            self.write(2 as UInt8)
            self.write(file)
        case .held(let checksum, let size):
            self.write(3 as UInt8)
            self.write(text: checksum)
            self.write(varint: size)
        }
    }

    private mutating func write(_ edit: DocumentPackageEdit) {
        switch edit {
        case .put(let path, let content, let seen):
            self.write(1 as UInt8)
            self.write(text: path)
            self.write(content)
            self.write(optional: seen)
        case .remove(let path, let seen):
            self.write(2 as UInt8)
            self.write(text: path)
            self.write(optional: seen)
        case .transfer(let from, let to, let isMove):
            self.write(3 as UInt8)
            self.write(text: from)
            self.write(text: to)
            self.write(flag: isMove)
        }
    }

    private mutating func write(_ property: DocumentProperty) {
        self.write(text: property.name.namespace)
        self.write(text: property.name.local)
        self.write(prefixed: property.element)
    }

    mutating func write(_ properties: [DocumentProperty]) {
        self.write(count: properties.count)
        for property in properties { self.write(property) }
    }

    private mutating func write(_ lock: DocumentLock) {
        self.write(text: lock.token)
        self.write(text: lock.item)
        self.write(flag: lock.isExclusive)
        self.write(flag: lock.isInfinite)
        self.write(prefixed: lock.owner)
        self.write(signed: lock.untilMilliseconds)
    }

    private mutating func write(_ publication: DocumentPublication) {
        self.write(text: publication.id)
        self.write(text: publication.item)
        self.write(text: publication.secret)
        self.write(text: publication.name)
        self.write(count: max(0, publication.slot))
        self.write(varint: publication.contentTag)
        self.write(varint: publication.size)
        self.write(signed: publication.untilMilliseconds)
    }

    mutating func write(_ results: [DocumentResult]) {
        self.write(count: results.count)
        for result in results {
            switch result {
            case .item(let item):
                self.write(1 as UInt8)
                self.write(item)
            case .removed(let id):
                self.write(2 as UInt8)
                self.write(text: id)
            case .dataRemoved(let count, let hasMore):
                self.write(3 as UInt8)
                self.write(count: count)
                self.write(flag: hasMore)
            case .refused(let reason, let subject):
                self.write(4 as UInt8)
                self.write(reason.rawValue)
                self.write(text: subject)
            case .lock(let lock):
                self.write(5 as UInt8)
                self.write(lock)
            case .unlocked: self.write(6 as UInt8)
            case .published(let publication):
                self.write(7 as UInt8)
                self.write(publication)
            }
        }
    }

    private mutating func write(_ item: DocumentItem) {
        self.write(text: item.id)
        self.write(item.kind.rawValue)
        self.write(text: item.name)
        self.write(text: item.folder)
        self.write(varint: item.size)
        self.write(varint: item.contentTag)
        self.write(signed: item.editedAtMilliseconds)
        self.write(text: item.device)
        self.write(varint: item.conflicts)
        self.write(varint: item.tag)
    }

    private mutating func write(_ version: DocumentVersion) {
        self.write(varint: version.contentTag)
        self.write(varint: version.size)
        self.write(signed: version.editedAtMilliseconds)
        self.write(text: version.device)
    }

    mutating func write(_ ask: DocumentsAsk) {
        self.write(ask.database)
        switch ask.question {
        case .list(let folder, let after, let limit):
            self.write(1 as UInt8)
            self.write(text: folder)
            self.write(flag: after != nil)
            if let after { self.write(prefixed: after) }
            self.write(count: max(0, limit))
        case .lookup(let selectors):
            self.write(2 as UInt8)
            self.write(count: selectors.count)
            for selector in selectors {
                switch selector {
                case .id(let id):
                    self.write(1 as UInt8)
                    self.write(text: id)
                case .path(let names):
                    self.write(2 as UInt8)
                    self.write(texts: names)
                }
            }
        case .changes(let after, let limit):
            self.write(3 as UInt8)
            self.write(flag: after != nil)
            if let after { self.write(after) }
            self.write(count: max(0, limit))
        case .content(let id, let version):
            self.write(4 as UInt8)
            self.write(text: id)
            self.write(optional: version)
        case .versions(let id):
            self.write(5 as UInt8)
            self.write(text: id)
        case .properties(let ids):
            self.write(6 as UInt8)
            self.write(texts: ids)
        case .locks: self.write(7 as UInt8)
        case .chain(let names):
            self.write(8 as UInt8)
            self.write(texts: names)
        case .publications: self.write(9 as UInt8)
        case .published(let slot, let secret):
            self.write(10 as UInt8)
            self.write(count: max(0, slot))
            self.write(text: secret)
        }
    }

    mutating func write(_ answer: DocumentsAnswer) {
        switch answer {
        case .list(let items, let next):
            self.write(1 as UInt8)
            self.write(flag: items != nil)
            self.write(count: items?.count ?? 0)
            for item in items ?? [] { self.write(item) }
            self.write(flag: next != nil)
            if let next { self.write(prefixed: next) }
        case .lookup(let items):
            self.write(2 as UInt8)
            self.write(count: items.count)
            for item in items {
                self.write(flag: item != nil)
                if let item { self.write(item) }
            }
        case .changes(let page):
            self.write(3 as UInt8)
            self.write(flag: page.isFromStart)
            self.write(count: page.changes.count)
            for change in page.changes {
                switch change {
                case .changed(let item):
                    self.write(1 as UInt8)
                    self.write(item)
                case .removed(let id):
                    self.write(2 as UInt8)
                    self.write(text: id)
                }
            }
            self.write(page.position)
            self.write(flag: page.moreComing)
        case .content(let item, let version, let content):
            let isThere = item != nil && version != nil
            let number = isThere ? content.kind(inline: 4, file: 8, package: 10) : 4
            self.write(number)
            if number == 4 { self.write(flag: isThere) }
            if let item, let version {
                self.write(item)
                self.write(version)
                self.write(content)
            }
        case .versions(let versions):
            self.write(5 as UInt8)
            self.write(flag: versions != nil)
            self.write(count: versions?.count ?? 0)
            for version in versions ?? [] { self.write(version) }
        case .properties(let all):
            self.write(6 as UInt8)
            self.write(count: all.count)
            for properties in all { self.write(properties) }
        case .locks(let locks):
            self.write(7 as UInt8)
            self.write(count: locks.count)
            for lock in locks { self.write(lock) }
        case .publications(let publications):
            self.write(9 as UInt8)
            self.write(count: publications.count)
            for publication in publications { self.write(publication) }
        }
    }
}
