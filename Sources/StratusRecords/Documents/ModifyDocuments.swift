package import StratusModel

/// Changes of one user's documents: files and folders with identities.
package struct ModifyDocuments: Sendable, Equatable {
    package static let operationCountMax = 200

    package var database: DatabaseID
    /// See ``KeyValueStore/isDevice(_:)``.
    package var device: String
    /// The time of sending, by the device's clock.
    package var nowMilliseconds: Int64
    package var drawnIncarnation: ZoneIncarnation
    /// All or nothing.
    package var isAtomic: Bool
    package var rules: DocumentRules
    package var operations: [DocumentOperation]
    /// Tokens of locks that the client has shown.
    package var tokens: [String]

    package static let tokenCountMax = 64
    /// Files and folders in the packages of one command: each path is folded and sorted.
    package static let pathCountMax = 4_000

    package init(
        database: DatabaseID, device: String, nowMilliseconds: Int64,
        drawnIncarnation: ZoneIncarnation, isAtomic: Bool = true,
        rules: DocumentRules = DocumentRules(), operations: [DocumentOperation],
        tokens: [String] = []
    ) {
        self.database = database
        self.device = device
        self.nowMilliseconds = nowMilliseconds
        self.drawnIncarnation = drawnIncarnation
        self.isAtomic = isAtomic
        self.rules = rules
        self.operations = operations
        self.tokens = tokens
    }

    var pathCount: Int { self.operations.reduce(0) { $0 + $1.pathCount } }
}

/// The limits that a change of documents is decided by. They travel in the command.
package struct DocumentRules: Sendable, Hashable {
    /// Bytes of one content in a record. Larger ones are files.
    package var contentSizeMax: Int
    /// Contents of one file that wait to be settled.
    package var versionCountMax: Int
    /// Items in one folder but the roots.
    package var folderCountMax: Int
    /// Records that one removal may delete in its entry; beyond, a job continues.
    package var cascadeCountMax: Int
    /// Items that are looked at below a folder that moves to a deeper place.
    package var moveCountMax: Int
    /// The quota of the private database; 0: none.
    package var databaseSizeMax: UInt64

    package init(
        contentSizeMax: Int = 512 << 10, versionCountMax: Int = 16, folderCountMax: Int = 100_000,
        cascadeCountMax: Int = 500, moveCountMax: Int = 10_000, databaseSizeMax: UInt64 = 0
    ) {
        self.contentSizeMax = contentSizeMax
        self.versionCountMax = versionCountMax
        self.folderCountMax = folderCountMax
        self.cascadeCountMax = cascadeCountMax
        self.moveCountMax = moveCountMax
        self.databaseSizeMax = databaseSizeMax
    }
}

package enum DocumentOperation: Sendable, Equatable {
    /// What happens where the name is taken.
    package enum Clash: UInt8, Sendable, Hashable, CaseIterable {
        case refuse = 1
        /// The new item gets ` 2` before its extension, or the next free number.
        case rename = 2
        /// A file's content becomes the content of the file that has the name.
        case replace = 3
    }

    case create(
        id: String, DocumentItem.Kind, name: String, folder: String, Clash,
        content: DocumentContent?, atMilliseconds: Int64)
    /// - basedOn: the content that the device had; nil: it knew of none. If it is not the current
    ///   one, both are kept.
    /// - ifUnchanged: refuses instead.
    case save(
        id: String, content: DocumentContent, basedOn: UInt64?, ifUnchanged: Bool,
        atMilliseconds: Int64)
    /// Another name, another folder, or both. `tag`: the item's, if it must be unchanged.
    case place(id: String, name: String?, folder: String?, Clash, tag: UInt64?)
    /// - basedOn: the content that the device had, if it must be unchanged.
    case remove(id: String, basedOn: UInt64?)
    /// Makes one content the current one, if `current` is not nil, and drops others.
    case settle(id: String, current: UInt64?, drop: [UInt64])
    /// Makes each content that waits to be settled a file of its own beside the item, with the next
    /// free name. The first of them gets this ID, the others the numbers that follow.
    case separate(id: String, first: String)
    /// Everything outside the folder `Documents`.
    case removeData
    /// Sets and removes properties, in their order.
    case annotate(id: String, [DocumentPropertyChange], countMax: Int, sizeMax: Int)
    /// - tag: the source's, if it must be unchanged.
    case copy(DocumentCopy, tag: UInt64?)
    /// A lock with this token, for so long from now on.
    case lock(DocumentLock, milliseconds: Int64, countMax: Int)
    case refresh(token: String, milliseconds: Int64)
    case unlock(token: String)
    /// A link to the current content, for so long from now on.
    case publish(DocumentPublication, milliseconds: Int64)
    /// Ends a link.
    case withdraw(id: String)
    /// Changes things within a package.
    case edit(id: String, [DocumentPackageEdit], countMax: Int, sizeMax: Int)
    /// Makes a package of a folder, or a folder of a package. The items that come of its files have
    /// IDs from `first` on.
    case convert(id: String, DocumentItem.Kind, first: String, countMax: Int, sizeMax: Int)
}

extension DocumentOperation {
    /// Files and folders in the package that it brings.
    package var pathCount: Int {
        switch self {
        case .create(_, _, _, _, _, .package(let package)?, _),
            .save(_, .package(let package), _, _, _):
            package.parts.count
        default: 0
        }
    }
}

/// A copy of an item: its content and properties, and of a folder what is in it.
package struct DocumentCopy: Sendable, Equatable {
    /// What one entry copies in a few milliseconds.
    package static let entryCountMax = 250
    package static let entrySizeMax = 1 << 20

    package var source: String
    package var name: String
    package var folder: String
    /// The copy's ID, 32 hexadecimal digits. The items below it have the numbers that follow.
    package var id: String
    /// Otherwise a folder is copied without what is in it.
    package var isDeep: Bool
    /// Items, and bytes of contents in records, that the copies of one command may have. Files are
    /// shared. One larger copy is made by several commands.
    package var countMax: Int
    package var sizeMax: Int

    package init(
        source: String, name: String, folder: String, id: String, isDeep: Bool,
        countMax: Int = Self.entryCountMax, sizeMax: Int = Self.entrySizeMax
    ) {
        self.source = source
        self.name = name
        self.folder = folder
        self.id = id
        self.isDeep = isDeep
        self.countMax = countMax
        self.sizeMax = sizeMax
    }
}

/// What became of one operation.
package enum DocumentResult: Sendable, Equatable {
    /// The item as the operation left it.
    case item(DocumentItem)
    case removed(id: String)
    /// How many items directly below the root went, and whether more are left.
    case dataRemoved(count: Int, hasMore: Bool)
    case lock(DocumentLock)
    case unlocked
    case published(DocumentPublication)
    case refused(DocumentRefusal, subject: String)
}

/// The raw value is in stored outcomes for ever.
package enum DocumentRefusal: UInt8, Sendable, Hashable, CaseIterable {
    /// There is no such item, or its folder is gone.
    case notFound = 1
    case nameInvalid = 2
    /// The name stays on its device.
    case staysLocal = 3
    /// Subject: the item that has the name.
    case nameTaken = 4
    case folderNotFound = 5
    case notAFile = 6
    /// The roots cannot be changed.
    case isRoot = 7
    /// A folder would be in itself.
    case circle = 8
    case tooDeep = 9
    /// Subject: the limit.
    case tooManyItems = 10
    /// The content or the item has changed. Subject: its tag now.
    case stale = 11
    /// Subject: the limit.
    case tooManyVersions = 12
    /// Subject: the limit.
    case contentTooLarge = 13
    /// The database would hold more than its quota. Subject: the quota.
    case databaseFull = 14
    /// The given ID is no ID, or it is taken.
    case idInvalid = 15
    /// Subject: the tag.
    case versionNotFound = 16
    /// Another operation of the atomic batch was refused.
    case atomicFailure = 17
    /// A lock forbids it whose token was not shown, or excludes the wanted one. Subject: the item
    /// that is locked.
    case locked = 18
    /// There is no such lock, or its time is over.
    case lockNotFound = 19
    /// The uploaded file is not there, or is not the one that the receipt was for.
    case assetMissing = 20
    /// Only a package has such a content.
    case notAPackage = 21
    /// Versions wait to be settled, which whoever removes a content has not seen. Subject: how
    /// many.
    case versionsWait = 22
}

/// A read of documents.
package struct DocumentsAsk: Sendable, Equatable {
    package enum Question: Sendable, Equatable {
        /// What is in a folder, by name; `after`: the place that the last page ended at.
        case list(folder: String, after: Bytes?, limit: Int)
        case lookup([Selector])
        case changes(after: FeedPosition?, limit: Int)
        /// `version` nil: the current content.
        case content(id: String, version: UInt64?)
        case versions(id: String)
        /// The properties of items.
        case properties(ids: [String])
        /// Every lock of the store.
        case locks
        /// The root and what each name of a path leads to, of which nothing may be there.
        case chain([String])
        /// Every link of the store.
        case publications
        /// What a link leads to.
        case published(slot: Int, secret: String)
    }

    package enum Selector: Sendable, Hashable {
        case id(String)
        /// Names from the root on. Empty: the root.
        case path([String])
    }

    package var database: DatabaseID
    package var question: Question

    package init(database: DatabaseID, _ question: Question) {
        self.database = database
        self.question = question
    }
}

package enum DocumentsAnswer: Sendable, Equatable {
    /// Nil: there is no such folder.
    case list([DocumentItem]?, next: Bytes?)
    /// In the order asked; nil: there is none.
    case lookup([DocumentItem?])
    case changes(DocumentChangesPage)
    /// Nil: there is none.
    case content(DocumentItem?, DocumentVersion?, DocumentContent)
    /// The current one first; nil: there is no such file.
    case versions([DocumentVersion]?)
    /// In the order asked; of an item that is not there none.
    case properties([[DocumentProperty]])
    /// Those whose time is over are among them.
    case locks([DocumentLock])
    /// Those whose time is over are among them.
    case publications([DocumentPublication])
}

package struct DocumentChangesPage: Sendable, Equatable {
    package enum Change: Sendable, Equatable {
        case changed(DocumentItem)
        /// What was below it is gone too.
        case removed(id: String)
    }

    package var isFromStart: Bool
    package var changes: [Change]
    package var position: FeedPosition
    package var moreComing: Bool

    package init(
        isFromStart: Bool, changes: [Change], position: FeedPosition, moreComing: Bool
    ) {
        self.isFromStart = isFromStart
        self.changes = changes
        self.position = position
        self.moreComing = moreComing
    }
}
