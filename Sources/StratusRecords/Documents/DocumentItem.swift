import StratusCoding
package import StratusModel

/// A file, a folder or a package, without content.
package struct DocumentItem: Sendable, Hashable {
    package enum Kind: UInt8, Sendable, Hashable, CaseIterable {
        case file = 1
        case folder = 2
        /// Files that are one item together, see ``DocumentPackage``.
        case package = 3

        /// The name that clients and administrators read.
        package var name: String {
            switch self {
            case .file: "file"
            case .folder: "folder"
            case .package: "package"
            }
        }
    }

    static let type = "_Document"
    static let contentType = "_DocumentContent"

    package var id: String
    package var kind: Kind
    package var name: String
    package var folder: String
    /// Bytes of the content.
    package var size: UInt64 = 0
    /// Changes with the content: the tag of the change that brought it. 0: there is none yet.
    package var contentTag: UInt64 = 0
    /// The effective time of the last edit, and the device that made it.
    package var editedAtMilliseconds: Int64
    package var device: String
    /// Contents that wait to be settled, beside the current one.
    package var conflicts: UInt64 = 0
    /// The change tag of the item. 0: a root.
    package var tag: UInt64 = 0
    /// The properties of ``DocumentProperty``, as a record has them. They do not go with the item
    /// to clients; empty there.
    var attributes: Bytes = []

    package init(
        id: String, kind: Kind, name: String, folder: String, editedAtMilliseconds: Int64,
        device: String
    ) {
        self.id = id
        self.kind = kind
        self.name = name
        self.folder = folder
        self.editedAtMilliseconds = editedAtMilliseconds
        self.device = device
    }

    /// One of the two roots.
    package static func root(_ id: String) -> DocumentItem {
        DocumentItem(
            id: id, kind: .folder,
            name: id == DocumentNames.documents ? DocumentNames.documentsName : "",
            folder: id == DocumentNames.documents ? DocumentNames.root : "",
            editedAtMilliseconds: 0, device: "")
    }

    func fields(in zone: ZoneID) -> [Field] {
        // Deleting a folder deletes what is in it. The roots cannot be deleted.
        let folder: FieldValue =
            DocumentNames.isRoot(self.folder)
            ? .scalar(.string(self.folder))
            : .scalar(
                .reference(Reference(recordName: self.folder, zone: zone, action: .deleteSelf)))
        let attributes =
            self.attributes.isEmpty
            ? [] : [Field(name: "attributes", value: .scalar(.bytes(self.attributes)))]
        return attributes + [
            Field(name: "conflicts", value: .scalar(.int64(Int64(clamping: self.conflicts)))),
            Field(name: "contentTag", value: .scalar(.int64(Int64(clamping: self.contentTag)))),
            Field(name: "device", value: .scalar(.string(self.device))),
            Field(name: "editedAt", value: .scalar(.timestamp(self.editedAtMilliseconds))),
            Field(name: "folder", value: folder),
            Field(name: "kind", value: .scalar(.int64(Int64(self.kind.rawValue)))),
            Field(name: "name", value: .scalar(.string(self.name))),
            Field(name: "size", value: .scalar(.int64(Int64(clamping: self.size)))),
        ]
    }

    init(_ record: Record) throws(StoreError) {
        func number(_ field: String) -> UInt64? {
            guard case .scalar(.int64(let number))? = record.value(of: field) else { return nil }
            return UInt64(clamping: number)
        }
        guard record.type == Self.type, let conflicts = number("conflicts"),
            let contentTag = number("contentTag"), let size = number("size"),
            let kind = number("kind").flatMap({ Kind(rawValue: UInt8(clamping: $0)) }),
            case .scalar(.string(let name))? = record.value(of: "name"),
            case .scalar(.string(let device))? = record.value(of: "device"),
            case .scalar(.timestamp(let editedAt))? = record.value(of: "editedAt")
        else { throw StoreError(.unreadable, "document") }
        let folder: String
        switch record.value(of: "folder") {
        case .scalar(.string(let root)): folder = root
        case .scalar(.reference(let reference)): folder = reference.recordName
        default: throw StoreError(.unreadable, "document")
        }
        self.init(
            id: record.name, kind: kind, name: name, folder: folder,
            editedAtMilliseconds: editedAt, device: device)
        self.size = size
        self.contentTag = contentTag
        self.conflicts = conflicts
        self.tag = record.tag.raw
        if case .scalar(.bytes(let attributes))? = record.value(of: "attributes") {
            self.attributes = attributes
        }
    }
}

/// The bytes of a content: in its record, or a file that was uploaded before.
package enum DocumentContent: Sendable, Equatable {
    case inline(Bytes)
    case file(DocumentFile)
    case package(DocumentPackage)

    package var size: UInt64 {
        switch self {
        case .inline(let bytes): UInt64(bytes.count)
        case .file(let file): file.size
        case .package(let package): package.size
        }
    }

    /// Whether both are the same bytes, as far as can be told without reading a file.
    func isEqual(to other: DocumentContent) -> Bool {
        if case .file(let file) = self, case .file(let other) = other {
            return file.checksum == other.checksum && file.size == other.size
        }
        if case .package(let package) = self, case .package(let other) = other {
            return package.isEqual(to: other)
        }
        return self == other
    }

    var fields: [Field] {
        switch self {
        case .inline(let bytes): [Field(name: "content", value: .scalar(.bytes(bytes)))]
        case .file(let file):
            [
                Field(
                    name: "content",
                    value: .scalar(
                        .asset(
                            AssetReference(
                                fileChecksum: file.checksum, size: Int64(clamping: file.size),
                                asset: file.asset))))
            ]
        case .package(let package): package.fields
        }
    }

    /// The bytes that a record has of it.
    var inlineSize: Int {
        switch self {
        case .inline(let bytes): bytes.count
        case .file: 0
        case .package(let package): package.encoded().count
        }
    }
}

/// An asset that is, or becomes, a content.
package struct DocumentFile: Sendable, Hashable {
    package var asset: AssetID
    package var checksum: String
    package var size: UInt64

    package init(asset: AssetID, checksum: String, size: UInt64) {
        self.asset = asset
        self.checksum = checksum
        self.size = size
    }
}

/// One content of a file: the current one, or one that waits to be settled.
package struct DocumentVersion: Sendable, Hashable {
    package var contentTag: UInt64
    package var size: UInt64
    package var editedAtMilliseconds: Int64
    package var device: String

    package init(
        contentTag: UInt64, size: UInt64, editedAtMilliseconds: Int64, device: String
    ) {
        self.contentTag = contentTag
        self.size = size
        self.editedAtMilliseconds = editedAtMilliseconds
        self.device = device
    }

    static func recordName(_ item: String, _ contentTag: UInt64) -> String {
        "\(item)-\(contentTag)"
    }

    func fields(of item: String, _ content: DocumentContent, in zone: ZoneID) -> [Field] {
        let reference = Reference(recordName: item, zone: zone, action: .deleteSelf)
        let own = [
            Field(name: "device", value: .scalar(.string(self.device))),
            Field(name: "editedAt", value: .scalar(.timestamp(self.editedAtMilliseconds))),
            Field(name: "item", value: .scalar(.reference(reference))),
        ]
        return (content.fields + own).sorted {
            $0.name.utf8.lexicographicallyPrecedes($1.name.utf8)
        }
    }

    static func read(_ record: Record) throws(StoreError) -> (DocumentVersion, DocumentContent) {
        guard record.type == DocumentItem.contentType,
            let dash = record.name.utf8.lastIndex(of: UInt8(ascii: "-")),
            let tag = UInt64(record.name[record.name.index(after: dash)...]),
            let content = try DocumentPackage.read(record).map({ DocumentContent.package($0) })
                ?? Self.content(record.value(of: "content")),
            case .scalar(.string(let device))? = record.value(of: "device"),
            case .scalar(.timestamp(let editedAt))? = record.value(of: "editedAt")
        else { throw StoreError(.unreadable, "document content") }
        return (
            DocumentVersion(
                contentTag: tag, size: content.size, editedAtMilliseconds: editedAt,
                device: device), content
        )
    }

    static func content(_ value: FieldValue?) -> DocumentContent? {
        switch value {
        case .scalar(.bytes(let bytes)): return .inline(bytes)
        case .scalar(.asset(let reference)):
            guard let asset = reference.asset else { return nil }
            return .file(
                DocumentFile(
                    asset: asset, checksum: reference.fileChecksum,
                    size: UInt64(clamping: reference.size)))
        default: return nil
        }
    }
}
