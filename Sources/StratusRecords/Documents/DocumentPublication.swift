import StratusCoding
import StratusModel
import StratusRows

/// A link by which anybody may read one content of a file.
///
/// The content is the one of the moment it was published, and is kept for the link. Like a lock it
/// takes the first free of ``countMax`` names. One whose time is over opens nothing; its name and
/// its content go with the next change of links in the store, or with the file.
package struct DocumentPublication: Sendable, Hashable {
    /// Links in one store, and of one item.
    package static let countMax = 256
    package static let itemCountMax = 8
    /// The longest time that one may be good for.
    package static let spanMilliseconds: Int64 = 30 * 86_400_000

    static let type = "_DocumentPublication"
    /// Their records follow those of contents and locks.
    static let namePrefix = "publication-"
    /// The records with what was published.
    static let contentPrefix = "published-"

    /// 32 hexadecimal digits. It names the link for its owner, and opens nothing.
    package var id: String
    /// The place of its record.
    package var slot: Int = 0
    package var item: String
    /// 32 hexadecimal digits, which only the link has.
    package var secret: String
    /// The file's name and content when it was published.
    package var name: String = ""
    package var contentTag: UInt64 = 0
    package var size: UInt64 = 0
    package var untilMilliseconds: Int64 = 0

    package init(id: String, item: String, secret: String) {
        self.id = id
        self.item = item
        self.secret = secret
    }

    static func recordName(_ slot: Int) -> String { Self.namePrefix + Self.digits(slot) }
    static func contentName(_ slot: Int) -> String { Self.contentPrefix + Self.digits(slot) }

    private static func digits(_ slot: Int) -> String {
        let digits = String(slot)
        return String(repeating: "0", count: max(0, 3 - digits.utf8.count)) + digits
    }

    private func reference(in zone: ZoneID) -> FieldValue {
        .scalar(.reference(Reference(recordName: self.item, zone: zone, action: .deleteSelf)))
    }

    func fields(in zone: ZoneID) -> [Field] {
        [
            Field(
                name: "contentTag", value: .scalar(.int64(Int64(clamping: self.contentTag)))),
            Field(name: "id", value: .scalar(.string(self.id))),
            Field(name: "item", value: self.reference(in: zone)),
            Field(name: "name", value: .scalar(.string(self.name))),
            Field(name: "secret", value: .scalar(.string(self.secret))),
            Field(name: "size", value: .scalar(.int64(Int64(clamping: self.size)))),
            Field(name: "until", value: .scalar(.timestamp(self.untilMilliseconds))),
        ]
    }

    func contentFields(_ content: DocumentContent, in zone: ZoneID) -> [Field] {
        content.fields + [Field(name: "item", value: self.reference(in: zone))]
    }

    init(_ record: Record, slot: Int) throws(StoreError) {
        guard record.type == Self.type,
            case .scalar(.string(let id))? = record.value(of: "id"),
            case .scalar(.reference(let item))? = record.value(of: "item"),
            case .scalar(.string(let name))? = record.value(of: "name"),
            case .scalar(.string(let secret))? = record.value(of: "secret"),
            case .scalar(.int64(let contentTag))? = record.value(of: "contentTag"),
            case .scalar(.int64(let size))? = record.value(of: "size"),
            case .scalar(.timestamp(let until))? = record.value(of: "until")
        else { throw StoreError(.unreadable, "document publication") }
        self.init(id: id, item: item.recordName, secret: secret)
        self.slot = slot
        self.name = name
        self.contentTag = UInt64(clamping: contentTag)
        self.size = UInt64(clamping: size)
        self.untilMilliseconds = until
    }

    /// The links of a store, by their records; those whose time is over are among them.
    static func all(
        of zone: ZoneNumber, in id: ZoneID, over rows: RowView
    ) throws(StoreError) -> [DocumentPublication] {
        let start = Keys.record(zone, Self.namePrefix)
        var found: [DocumentPublication] = []
        for key in try rows.keys(
            .record, from: start, to: Keys.end(of: start), limit: Self.countMax)
        {
            let digits = String(decoding: key.dropFirst(start.count), as: UTF8.self)
            guard let slot = Int(digits) else {
                throw StoreError(.corrupt, "document publication")
            }
            guard
                let record = try StoredRows.record(
                    Self.recordName(slot), of: zone, in: id, over: rows
                ).row?.live
            else { continue }
            found.append(try DocumentPublication(record, slot: slot))
        }
        return found
    }
}

extension DocumentEdit {
    /// The links of the store, with those of this command.
    private mutating func publications(
        _ rows: RowView
    ) throws(Stop) -> [DocumentPublication] {
        if let known = self.knownPublications { return known }
        do throws(StoreError) {
            let all = try DocumentPublication.all(
                of: self.zone.zone.number, in: self.zone.id, over: rows)
            self.knownPublications = all
            return all
        } catch {
            throw .store(error)
        }
    }

    private mutating func drop(
        _ publication: DocumentPublication, _ rows: RowView
    ) throws(Stop) {
        self.knownPublications?.removeAll { $0.slot == publication.slot }
        for name in [
            DocumentPublication.recordName(publication.slot),
            DocumentPublication.contentName(publication.slot),
        ] {
            guard let record = try self.record(name, rows) else { continue }
            do throws(StoreError) { try self.zone.delete(record, over: rows) } catch {
                throw .store(error)
            }
        }
    }

    /// Whether a link is good: its time is not over, and its file was not removed by this command.
    private mutating func isLive(
        _ publication: DocumentPublication, _ rows: RowView
    ) throws(Stop) -> Bool {
        try self.record(DocumentPublication.recordName(publication.slot), rows) != nil
            && publication.untilMilliseconds > self.zone.milliseconds
    }

    mutating func publish(
        _ wanted: DocumentPublication, _ milliseconds: Int64, _ rows: RowView
    ) throws(Stop) -> DocumentResult {
        let item = try self.file(wanted.item, rows)
        guard let content = try self.content(of: item, rows) else {
            throw .refused(.versionNotFound, "")
        }
        for id in [wanted.id, wanted.secret] where !DocumentNames.isID(id) {
            throw .refused(.idInvalid, id)
        }
        var live: [DocumentPublication] = []
        for known in try self.publications(rows) {
            if try self.isLive(known, rows) {
                live.append(known)
            } else {
                try self.drop(known, rows)
            }
        }
        guard !live.contains(where: { $0.id == wanted.id }) else {
            throw .refused(.idInvalid, wanted.id)
        }
        guard live.count < DocumentPublication.countMax else {
            throw .refused(.tooManyItems, String(DocumentPublication.countMax))
        }
        guard live.count(where: { $0.item == item.id }) < DocumentPublication.itemCountMax else {
            throw .refused(.tooManyItems, String(DocumentPublication.itemCountMax))
        }
        try self.check(content, rows)
        let taken = Set(live.map(\.slot))
        var publication = wanted
        publication.slot = (0..<DocumentPublication.countMax).first { !taken.contains($0) } ?? 0
        publication.name = item.name
        publication.contentTag = item.contentTag
        publication.size = item.size
        publication.untilMilliseconds =
            self.zone.milliseconds
            + min(max(1_000, milliseconds), DocumentPublication.spanMilliseconds)
        for (name, type, fields) in [
            (
                DocumentPublication.recordName(publication.slot), DocumentPublication.type,
                publication.fields(in: self.zone.id)
            ),
            (
                DocumentPublication.contentName(publication.slot), DocumentItem.contentType,
                publication.contentFields(content, in: self.zone.id)
            ),
        ] {
            let known = try self.record(name, rows)
            try self.write(name, type, fields, over: known, rows)
        }
        self.knownPublications = live + [publication]
        return .published(publication)
    }

    mutating func withdraw(
        _ id: String, _ rows: RowView
    ) throws(Stop) -> DocumentResult {
        guard let known = try self.publications(rows).first(where: { $0.id == id }),
            try self.record(DocumentPublication.recordName(known.slot), rows) != nil
        else { throw .refused(.notFound, "") }
        try self.drop(known, rows)
        return .removed(id: id)
    }
}

extension DocumentReader {
    /// What a link leads to; nothing where the secret is another one.
    func published(
        slot: Int, secret: String, over rows: RowView
    ) throws(StoreError) -> DocumentsAnswer {
        let none = DocumentsAnswer.content(nil, nil, .inline([]))
        guard (0..<DocumentPublication.countMax).contains(slot),
            let record = try self.record(DocumentPublication.recordName(slot), over: rows)
        else { return none }
        let publication = try DocumentPublication(record, slot: slot)
        // A file below a removed folder is gone, although a job has not come to it yet.
        guard publication.secret == secret,
            var item = try self.item(publication.item, over: rows),
            let stored = try self.record(DocumentPublication.contentName(slot), over: rows),
            let content = DocumentVersion.content(stored.value(of: "content"))
        else { return none }
        item.name = publication.name
        return .content(
            item,
            DocumentVersion(
                contentTag: publication.contentTag, size: publication.size,
                editedAtMilliseconds: item.editedAtMilliseconds, device: ""), content)
    }
}
