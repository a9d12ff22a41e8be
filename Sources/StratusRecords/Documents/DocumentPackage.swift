import StratusCoding
package import StratusModel

/// The content of a package: files and folders by their paths, which are one content together.
///
/// A package is saved, moved, removed and kept in conflicts as one item. Every folder above a file
/// is among the parts, and the parts are in the order of their folded paths.
package struct DocumentPackage: FixedLevel, Sendable, Equatable {
    package static var level: FeatureLevel { .one }

    /// Files and folders of one package. All of a package's assets change hands in one entry, and
    /// one entry changes a bounded number of holders.
    package static let countMax = 1_000
    /// Bytes of the list of one package, with the small contents that it has in it.
    package static let sizeMax = 1 << 20
    package static let pathSizeMax = 1_024
    static let listField = "parts"

    package var parts: [DocumentPart]
    /// The limits that the change is decided by. They travel in the command.
    package var countMax: Int
    package var sizeMax: Int

    package init(
        _ parts: [DocumentPart], countMax: Int = Self.countMax, sizeMax: Int = Self.sizeMax
    ) {
        self.parts = parts
        self.countMax = countMax
        self.sizeMax = sizeMax
    }

    /// Bytes of the files.
    package var size: UInt64 { self.parts.reduce(0) { $0 &+ $1.content.size } }

    var files: [DocumentFile] {
        self.parts.compactMap { if case .file(let file) = $0.content { file } else { nil } }
    }

    /// Whether both have the same files, as far as can be told without reading one.
    func isEqual(to other: DocumentPackage) -> Bool {
        self.parts.count == other.parts.count
            && zip(self.parts, other.parts).allSatisfy { one, other in
                one.path.utf8.elementsEqual(other.path.utf8)
                    && one.content.isEqual(to: other.content)
            }
    }

    // MARK: Paths

    package static func names(_ path: String) -> [String] {
        path.split(separator: "/", omittingEmptySubsequences: false).map { String($0) }
    }

    /// Two paths are one if this is equal. What is in a folder follows the folder.
    static func key(_ path: String) -> Bytes {
        var key: Bytes = []
        for (index, name) in Self.names(path).enumerated() {
            if index > 0 { key.append(0) }
            key += DocumentNames.folded(name)
        }
        return key
    }

    static func isPath(_ path: String) -> Bool {
        guard path.utf8.count <= Self.pathSizeMax else { return false }
        let names = Self.names(path)
        return names.count <= DocumentNames.depthMax
            && names.allSatisfy { DocumentNames.isName($0) && !DocumentNames.staysLocal($0) }
    }

    private static func parent(_ path: String) -> String? {
        guard let slash = path.utf8.lastIndex(of: UInt8(ascii: "/")) else { return nil }
        return String(path[..<slash])
    }

    /// The part at a path.
    package func part(_ path: String) -> DocumentPart? {
        let key = Self.key(path)
        return self.parts.first { Self.key($0.path) == key }
    }

    private func hasFolder(_ path: String?) -> Bool {
        guard let path else { return true }
        return self.part(path)?.content == .folder
    }

    /// The parts directly in a folder; an empty path is the package itself.
    package func children(of path: String) -> [DocumentPart] {
        let start = path.isEmpty ? [] : Self.key(path) + [0]
        return self.parts.filter { part in
            let key = Self.key(part.path)
            return key.starts(with: start) && !key.dropFirst(start.count).contains(0)
        }
    }

    private static func isWithin(_ key: Bytes, _ folder: Bytes) -> Bool {
        key == folder || key.starts(with: folder + [0])
    }

    // MARK: Changes

    enum Fault: Error, Equatable {
        /// No such path can be, or the package would be too large.
        case invalid(String)
        case missing(String)
        case taken(String)
        case folderMissing(String)
        case stale(UInt64)
        case tooMany
        case tooLarge
    }

    /// Brings the parts into order, with the folders that were only implied.
    mutating func normalise() throws(Fault) {
        // Each part may imply as many folders as a path has names.
        guard self.parts.count <= self.countMax else { throw .tooMany }
        var known: [Bytes: Bool] = [:]
        var all: [(key: Bytes, part: DocumentPart)] = []
        for part in self.parts {
            guard Self.isPath(part.path) else { throw .invalid(part.path) }
            let key = Self.key(part.path)
            guard known.updateValue(part.content == .folder, forKey: key) == nil else {
                throw .taken(part.path)
            }
            all.append((key, part))
        }
        for part in self.parts {
            var above = Self.parent(part.path)
            while let path = above {
                let key = Self.key(path)
                if let isFolder = known[key] {
                    guard isFolder else { throw .taken(path) }
                    // The folders above it were found with it, or will be.
                    break
                }
                known[key] = true
                all.append((key, DocumentPart(path, .folder)))
                guard all.count <= self.countMax else { throw .tooMany }
                above = Self.parent(path)
            }
        }
        all.sort { $0.key.lexicographicallyPrecedes($1.key) }
        self.parts = all.map(\.part)
        guard self.encoded().count <= self.sizeMax else { throw .tooLarge }
    }

    /// Gives every part its tag: the one that it has in `other` where it is the same there.
    mutating func tag(_ tag: UInt64, over other: DocumentPackage?) {
        var known: [Bytes: DocumentPart] = [:]
        for part in other?.parts ?? [] { known[Self.key(part.path)] = part }
        for index in self.parts.indices {
            let part = self.parts[index]
            if let same = known[Self.key(part.path)], same.content.isEqual(to: part.content) {
                self.parts[index].tag = same.tag
            } else {
                self.parts[index].tag = tag
            }
        }
    }

    /// Changes one thing, and leaves the rest as it is.
    mutating func apply(_ edit: DocumentPackageEdit, tag: UInt64) throws(Fault) {
        switch edit {
        case .put(let path, let content, let seen):
            guard Self.isPath(path) else { throw .invalid(path) }
            guard self.hasFolder(Self.parent(path)) else { throw .folderMissing(path) }
            let key = Self.key(path)
            if let index = self.parts.firstIndex(where: { Self.key($0.path) == key }) {
                let old = self.parts[index]
                guard old.content != .folder, content != .folder else { throw .taken(path) }
                guard old.tag == seen else { throw .stale(old.tag) }
                self.parts[index] = DocumentPart(old.path, content, tag: tag)
            } else {
                guard seen == nil else { throw .missing(path) }
                self.parts.append(DocumentPart(path, content, tag: tag))
            }
        case .remove(let path, let seen):
            guard let old = self.part(path) else { throw .missing(path) }
            if let seen, old.tag != seen { throw .stale(old.tag) }
            let key = Self.key(path)
            self.parts.removeAll { Self.isWithin(Self.key($0.path), key) }
        case .transfer(let from, let to, let isMove):
            guard Self.isPath(to) else { throw .invalid(to) }
            guard let source = self.part(from) else { throw .missing(from) }
            let (old, new) = (Self.key(from), Self.key(to))
            guard old == new || !Self.isWithin(new, old) else { throw .invalid(to) }
            guard self.hasFolder(Self.parent(to)) else { throw .folderMissing(to) }
            if self.part(to) != nil, !(isMove && old == new) { throw .taken(to) }
            let length = source.path.utf8.count
            var moved: [DocumentPart] = []
            for part in self.parts where Self.isWithin(Self.key(part.path), old) {
                let rest = String(decoding: Bytes(part.path.utf8).dropFirst(length), as: UTF8.self)
                moved.append(DocumentPart(to + rest, part.content, tag: tag))
            }
            if isMove { self.parts.removeAll { Self.isWithin(Self.key($0.path), old) } }
            self.parts += moved
        }
    }

    // MARK: In a record
    //
    // | bytes | the parts of a package, format 1                                               |
    // | ----- | ------------------------------------------------------------------------------ |
    // | 1     | format, 1                                                                      |
    // | count | then text path, varint tag, 1 kind: 0 folder, 1 prefixed bytes, 2 the next of  |
    // |       | the record's assets                                                            |

    func encoded() -> Bytes {
        var writer = ByteWriter(reserving: 64 * self.parts.count + 8)
        writer.write(1 as UInt8)
        writer.write(count: self.parts.count)
        for part in self.parts {
            writer.write(text: part.path)
            writer.write(varint: part.tag)
            switch part.content {
            case .folder: writer.write(0 as UInt8)
            case .inline(let bytes):
                writer.write(1 as UInt8)
                writer.write(prefixed: bytes)
            // What another content holds becomes a file before it is written.
            case .file, .held: writer.write(2 as UInt8)
            }
        }
        return writer.bytes
    }

    init(decoding bytes: Bytes, files: [DocumentFile]) throws(DecodingError) {
        var reader = ByteReader(bytes)
        try reader.format(1)
        var parts: [DocumentPart] = []
        var rest = files[...]
        for _ in 0..<(try reader.count(minimumSize: 3)) {
            let path = try reader.text()
            let tag = try reader.varint()
            let content: DocumentPart.Content
            switch try reader.byte() {
            case 0: content = .folder
            case 1: content = .inline(try reader.prefixed())
            case 2:
                guard let file = rest.popFirst() else {
                    throw DecodingError(.malformed, at: reader.offset - 1)
                }
                content = .file(file)
            default: throw DecodingError(.malformed, at: reader.offset - 1)
            }
            parts.append(DocumentPart(path, content, tag: tag))
        }
        try reader.finish()
        guard rest.isEmpty else { throw DecodingError(.malformed, at: reader.offset) }
        self.init(parts)
    }

    /// The fields of a content's record.
    var fields: [Field] {
        [
            Field(
                name: "files",
                value: .list(
                    .asset,
                    self.files.map { file in
                        .asset(
                            AssetReference(
                                fileChecksum: file.checksum, size: Int64(clamping: file.size),
                                asset: file.asset))
                    })),
            Field(name: Self.listField, value: .scalar(.bytes(self.encoded()))),
        ]
    }

    /// Nil: the record is no package's content.
    static func read(_ record: Record) throws(StoreError) -> DocumentPackage? {
        guard case .scalar(.bytes(let parts))? = record.value(of: Self.listField),
            case .list(.asset, let scalars)? = record.value(of: "files")
        else { return nil }
        var files: [DocumentFile] = []
        for case .asset(let reference) in scalars {
            guard let asset = reference.asset else {
                throw StoreError(.unreadable, "document package")
            }
            files.append(
                DocumentFile(
                    asset: asset, checksum: reference.fileChecksum,
                    size: UInt64(clamping: reference.size)))
        }
        return try decodingRow("document package") { () throws(DecodingError) in
            try DocumentPackage(decoding: parts, files: files)
        }
    }
}

/// A file or a folder in a package.
package struct DocumentPart: Sendable, Equatable {
    package enum Content: Sendable, Equatable {
        case folder
        case inline(Bytes)
        case file(DocumentFile)
        /// A file that a content of the package holds already. Only in commands.
        case held(checksum: String, size: UInt64)

        package var size: UInt64 {
            switch self {
            case .folder: 0
            case .inline(let bytes): UInt64(bytes.count)
            case .file(let file): file.size
            case .held(_, let size): size
            }
        }

        func isEqual(to other: Content) -> Bool {
            if case .file(let file) = self, case .file(let other) = other {
                return file.checksum == other.checksum && file.size == other.size
            }
            return self == other
        }
    }

    /// Names with slashes between them, from the package on.
    package var path: String
    package var content: Content
    /// The tag of the change of the package that brought the content to this path. 0 in commands.
    package var tag: UInt64

    package init(_ path: String, _ content: Content, tag: UInt64 = 0) {
        self.path = path
        self.content = content
        self.tag = tag
    }
}

/// One change within a package. Everything else in it stays.
package enum DocumentPackageEdit: Sendable, Equatable {
    /// A file, or a folder that nothing is in. `seen`: the tag of the file whose place it takes;
    /// nil: nothing may be there.
    case put(path: String, DocumentPart.Content, seen: UInt64?)
    /// With everything in it. `seen`: the tag that the part must have.
    case remove(path: String, seen: UInt64?)
    /// To a path where nothing is.
    case transfer(from: String, to: String, isMove: Bool)
}
