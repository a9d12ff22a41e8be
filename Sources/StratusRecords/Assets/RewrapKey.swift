package import StratusModel

/// Stratus' own: puts a key of a database that is wrapped under a newer key of its container in the
/// place of the same key, wrapped under the older one. The key itself stays.
package struct RewrapKey: Sendable, Equatable {
    package var database: DatabaseID
    package var version: UInt32
    /// The wrapped key as the row had it. A row that has changed since is left as it is.
    package var old: WrappedKey
    package var new: WrappedKey

    package init(database: DatabaseID, version: UInt32, old: WrappedKey, new: WrappedKey) {
        self.database = database
        self.version = version
        self.old = old
        self.new = new
    }
}

/// Asks a partition for keys of databases that are wrapped under one key of their container,
/// whatever their database.
package struct WrappedKeysAsk: Sendable, Equatable {
    package var container: ContainerReference
    /// The check value of the container's key.
    package var check: Bytes
    /// The end of the last page; nil: from the first row.
    package var after: Bytes?

    package init(container: ContainerReference, check: Bytes, after: Bytes? = nil) {
        self.container = container
        self.check = check
        self.after = after
    }
}

/// An answer to a ``WrappedKeysAsk``.
package struct WrappedKeysPage: Sendable, Equatable {
    package struct Item: Sendable, Equatable {
        package var database: DatabaseID
        package var version: UInt32
        package var key: WrappedKey

        package init(database: DatabaseID, version: UInt32, key: WrappedKey) {
            self.database = database
            self.version = version
            self.key = key
        }
    }

    package var items: [Item]
    /// Behind what the next page begins; nil: the partition has no more.
    package var next: Bytes?

    package init(items: [Item], next: Bytes?) {
        self.items = items
        self.next = next
    }
}
