import StratusCoding
import StratusModel
import StratusRows

/// Packages: files that are one item together.
extension DocumentEdit {
    /// Assets of contents that one operation drops or moves.
    static let movedAssetMax = 2_000
    /// Bytes of packages' lists that one removal reads.
    static let listSizeMax = 16 << 20

    /// An item that has a content: a file or a package.
    mutating func contentHolder(
        _ id: String, _ rows: RowView
    ) throws(Stop) -> DocumentItem {
        let item = try self.item(id, rows)
        guard item.kind != .folder else { throw .refused(.notAFile, id) }
        return item
    }

    /// The content as it is stored: a package in order, with the files that it names again.
    ///
    /// - Parameter item: the package that it becomes a content of; nil: a new one.
    mutating func ready(
        _ content: DocumentContent, kind: DocumentItem.Kind, of item: DocumentItem?,
        basedOn: UInt64?, _ rows: RowView
    ) throws(Stop) -> DocumentContent {
        guard case .package(var package) = content else {
            guard kind == .file else { throw .refused(.notAFile, item?.id ?? "") }
            return content
        }
        guard kind == .package else { throw .refused(.notAPackage, item?.id ?? "") }
        var current: DocumentPackage?
        if let item, case .package(let known)? = try self.content(of: item, rows) {
            current = known
        }
        var held: [DocumentFile] = current?.files ?? []
        if let item, let basedOn, basedOn != item.contentTag, basedOn != 0,
            let record = try self.record(DocumentVersion.recordName(item.id, basedOn), rows),
            case .package(let known) = try self.read(record)
        {
            held += known.files
        }
        var found: [String: DocumentFile] = [:]
        for file in held { found["\(file.size) \(file.checksum)"] = file }
        for index in package.parts.indices {
            if case .held(let checksum, let size) = package.parts[index].content {
                guard let file = found["\(size) \(checksum)"] else {
                    throw .refused(.assetMissing, "")
                }
                package.parts[index].content = .file(file)
            }
        }
        try self.orRefuse { () throws(DocumentPackage.Fault) in try package.normalise() }
        package.tag(self.zone.nextTag.raw, over: current)
        return .package(package)
    }

    private func read(_ record: Record) throws(Stop) -> DocumentContent {
        do throws(StoreError) { return try DocumentVersion.read(record).1 } catch {
            throw .store(error)
        }
    }

    private func orRefuse(_ body: () throws(DocumentPackage.Fault) -> Void) throws(Stop) {
        do throws(DocumentPackage.Fault) { try body() } catch {
            switch error {
            case .invalid(let path):
                let staysLocal = DocumentPackage.names(path).contains {
                    DocumentNames.staysLocal($0)
                }
                throw .refused(staysLocal ? .staysLocal : .nameInvalid, path)
            case .missing: throw .refused(.notFound, "")
            case .taken(let path): throw .refused(.nameTaken, path)
            case .folderMissing(let path): throw .refused(.folderNotFound, path)
            case .stale(let tag): throw .refused(.stale, String(tag))
            case .tooMany: throw .refused(.tooManyItems, String(DocumentPackage.countMax))
            case .tooLarge: throw .refused(.contentTooLarge, String(DocumentPackage.sizeMax))
            }
        }
    }

    /// Changes things within a package, all of them or none.
    mutating func edit(
        _ id: String, _ edits: [DocumentPackageEdit], countMax: Int, sizeMax: Int,
        _ rows: RowView
    ) throws(Stop) -> DocumentResult {
        let item = try self.contentHolder(id, rows)
        guard item.kind == .package else { throw .refused(.notAPackage, id) }
        try self.checkLocks(on: item, rows)
        var package = DocumentPackage([])
        if case .package(let known)? = try self.content(of: item, rows) { package = known }
        package.countMax = countMax
        package.sizeMax = sizeMax
        let tag = self.zone.nextTag.raw
        try self.orRefuse { () throws(DocumentPackage.Fault) in
            for edit in edits { try package.apply(edit, tag: tag) }
            try package.normalise()
        }
        // A folder that was only implied has no tag yet.
        for index in package.parts.indices where package.parts[index].tag == 0 {
            package.parts[index].tag = tag
        }
        return .item(
            try self.save(
                item, .package(package), basedOn: item.contentTag,
                at: self.modify.nowMilliseconds, rows))
    }

    /// Refuses where the contents hold more files than one entry changes.
    func checkAssets(_ contents: [DocumentContent]) throws(Stop) {
        var count = 0
        for case .package(let package) in contents { count += package.files.count }
        guard count <= Self.movedAssetMax else {
            throw .refused(.tooManyItems, String(Self.movedAssetMax))
        }
    }

    // MARK: Folders and packages

    /// Makes a package of a folder, or a folder of a package. It keeps its identity and its place.
    mutating func convert(
        _ id: String, to kind: DocumentItem.Kind, _ firstID: String, countMax: Int, sizeMax: Int,
        _ rows: RowView
    ) throws(Stop) -> DocumentResult {
        let item = try self.item(id, rows)
        guard item.kind != .file, kind != .file else { throw .refused(.notAFile, id) }
        if item.kind == kind { return .item(item) }
        // Versions would have no place.
        guard item.conflicts == 0 else { throw .refused(.tooManyVersions, "0") }
        try self.checkLocks(leaving: item, rows)
        try self.dropLocks(withIn: id, rows)
        return kind == .package
            ? try self.pack(item, countMax: countMax, sizeMax: sizeMax, rows)
            : try self.unpack(item, firstID, rows)
    }

    private mutating func pack(
        _ folder: DocumentItem, countMax: Int, sizeMax: Int, _ rows: RowView
    ) throws(Stop) -> DocumentResult {
        let own = self.ownNames
        var package = DocumentPackage([], countMax: countMax, sizeMax: sizeMax)
        var open: [(id: String, path: String)] = [(folder.id, "")]
        var tops: [String] = []
        var size = 0
        while let next = open.popLast() {
            let children = try self.children(
                of: next.id, own, limit: countMax - package.parts.count, rows)
            guard package.parts.count + children.count <= countMax else {
                throw .refused(.tooManyItems, String(countMax))
            }
            try self.look(through: children.count + 1)
            for child in children {
                guard let item = try self.stored(child.id, rows) else { continue }
                let path = next.path.isEmpty ? item.name : "\(next.path)/\(item.name)"
                if next.path.isEmpty { tops.append(item.id) }
                guard item.conflicts == 0, item.kind != .package else {
                    throw .refused(.tooManyVersions, "0")
                }
                if item.kind == .folder {
                    package.parts.append(DocumentPart(path, .folder))
                    open.append((item.id, path))
                    continue
                }
                switch try self.content(of: item, rows) {
                case .inline(let bytes)?:
                    size += bytes.count
                    guard size <= sizeMax else {
                        throw .refused(.contentTooLarge, String(sizeMax))
                    }
                    package.parts.append(DocumentPart(path, .inline(bytes)))
                case .file(let file)?: package.parts.append(DocumentPart(path, .file(file)))
                case .package?, nil: throw .refused(.versionNotFound, item.id)
                }
            }
        }
        try self.orRefuse { () throws(DocumentPackage.Fault) in try package.normalise() }
        try self.check(.package(package), rows)
        for top in tops { try self.remove(top, rows) }
        var item = folder
        item.kind = .package
        item.contentTag = self.zone.nextTag.raw
        item.size = package.size
        item.editedAtMilliseconds = self.effectiveTime(self.modify.nowMilliseconds)
        item.device = self.modify.device
        package.tag(item.contentTag, over: nil)
        try self.write(&item, rows)
        try self.write(
            DocumentVersion(
                contentTag: item.contentTag, size: item.size,
                editedAtMilliseconds: item.editedAtMilliseconds, device: item.device),
            .package(package), of: item.id, rows)
        return .item(item)
    }

    private mutating func unpack(
        _ known: DocumentItem, _ firstID: String, _ rows: RowView
    ) throws(Stop) -> DocumentResult {
        guard let above = try self.depth(of: known.folder, rows),
            let first = Self.words(firstID)
        else { throw .refused(.idInvalid, firstID) }
        var package = DocumentPackage([])
        if case .package(let found)? = try self.content(of: known, rows) { package = found }
        var ids: [Bytes: String] = [:]
        for (index, part) in package.parts.enumerated() {
            let id = Self.id(first, index)
            guard try self.record(id, rows) == nil else { throw .refused(.idInvalid, id) }
            ids[DocumentPackage.key(part.path)] = id
            guard above + 1 + DocumentPackage.names(part.path).count <= DocumentNames.depthMax
            else { throw .refused(.tooDeep, String(DocumentNames.depthMax)) }
        }
        let growth = Int64(package.parts.count * 2 * Self.rowSize)
        if let room = self.room, self.zone.grownSize + growth > room {
            throw .refused(.databaseFull, String(self.rules.databaseSizeMax))
        }
        var item = known
        item.kind = .folder
        item.contentTag = 0
        item.size = 0
        try self.write(&item, rows)
        try self.drop(known.contentTag, of: known.id, rows)
        for part in package.parts {
            let names = DocumentPackage.names(part.path)
            let folder = ids[DocumentPackage.key(names.dropLast().joined(separator: "/"))]
            var member = DocumentItem(
                id: ids[DocumentPackage.key(part.path)] ?? "", kind: .file,
                name: names.last ?? "", folder: names.count == 1 ? known.id : folder ?? known.id,
                editedAtMilliseconds: known.editedAtMilliseconds, device: known.device)
            let content: DocumentContent
            switch part.content {
            case .folder, .held:
                member.kind = .folder
                try self.write(&member, rows)
                continue
            case .inline(let bytes): content = .inline(bytes)
            case .file(let file): content = .file(file)
            }
            member.contentTag = self.zone.nextTag.raw
            member.size = content.size
            try self.write(&member, rows)
            try self.write(
                DocumentVersion(
                    contentTag: member.contentTag, size: member.size,
                    editedAtMilliseconds: member.editedAtMilliseconds, device: member.device),
                content, of: member.id, rows)
        }
        return .item(item)
    }
}
