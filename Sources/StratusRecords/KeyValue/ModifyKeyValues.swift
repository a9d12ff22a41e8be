package import StratusModel

/// A batch of changes that one device made to the key-value store of its user.
///
/// A device says when each change was made and what time it is now, both by its own clock. Only the
/// difference counts, so the clock itself may be wrong by years.
package struct ModifyKeyValues: Sendable, Equatable {
    package struct Change: Sendable, Equatable {
        package var key: String
        /// When it was made, by the device's clock.
        package var atMilliseconds: Int64
        /// An encoded property list; nil removes the key.
        package var value: Bytes?

        package init(key: String, atMilliseconds: Int64, value: Bytes?) {
            self.key = key
            self.atMilliseconds = atMilliseconds
            self.value = value
        }
    }

    /// Of the user whose store it is.
    package var database: DatabaseID
    /// See ``KeyValueStore/isDevice(_:)``.
    package var device: String
    /// Grows with every batch of the device. One that does not is a repeat.
    package var batch: UInt64
    /// The time of sending, by the device's clock.
    package var nowMilliseconds: Int64
    /// The device has not heard anything of the store yet: keys that have a value keep it.
    package var isFirst: Bool
    /// The incarnation of the zone, should this be its first write.
    package var drawnIncarnation: ZoneIncarnation
    package var rules: KeyValueRules
    package var changes: [Change]

    package init(
        database: DatabaseID, device: String, batch: UInt64, nowMilliseconds: Int64,
        isFirst: Bool = false, drawnIncarnation: ZoneIncarnation,
        rules: KeyValueRules = KeyValueRules(), changes: [Change]
    ) {
        self.database = database
        self.device = device
        self.batch = batch
        self.nowMilliseconds = nowMilliseconds
        self.isFirst = isFirst
        self.drawnIncarnation = drawnIncarnation
        self.rules = rules
        self.changes = changes
    }
}

/// The limits that a batch is decided by. They travel in the command, as ``RecordRules`` do.
package struct KeyValueRules: Sendable, Hashable {
    /// Keys that have a value.
    package var keyCountMax: Int
    /// Bytes of all values, and of one.
    package var sizeMax: Int
    /// Keys that were removed and are remembered, and as many tombstones of older ones.
    package var removedCountMax: Int
    /// Devices whose batches are remembered.
    package var deviceCountMax: Int

    package init(
        keyCountMax: Int = 1_024, sizeMax: Int = 1 << 20, removedCountMax: Int = 4_096,
        deviceCountMax: Int = 64
    ) {
        self.keyCountMax = keyCountMax
        self.sizeMax = sizeMax
        self.removedCountMax = removedCountMax
        self.deviceCountMax = deviceCountMax
    }
}

/// What the store makes of a batch.
package struct ModifiedKeyValues: Sendable, Equatable {
    package enum Result: Sendable, Equatable {
        /// The change stands.
        case taken
        /// The store has a newer one.
        case superseded
        /// The key keeps its value.
        case refused(KeyValueRefusal)
    }

    /// The batch was decided before, and has changed nothing now. `results` is then empty, and
    /// `refused` names what was refused when it was decided.
    package var isRepeat: Bool
    /// In the order of the changes.
    package var results: [Result]
    /// The keys that were refused.
    package var refused: [Refused]

    package struct Refused: Sendable, Equatable {
        package var key: String
        package var reason: KeyValueRefusal

        package init(key: String, reason: KeyValueRefusal) {
            self.key = key
            self.reason = reason
        }
    }

    package init(isRepeat: Bool, results: [Result], refused: [Refused]) {
        self.isRepeat = isRepeat
        self.results = results
        self.refused = refused
    }
}

/// The reason why a key keeps its value. The raw value is in stored outcomes for ever.
package enum KeyValueRefusal: UInt8, Sendable, Hashable, CaseIterable {
    case keyInvalid = 1
    case valueTooLarge = 2
    case storeFull = 3
    case tooManyKeys = 4
}

/// The names that the store accepts.
package enum KeyValueStore {
    /// The record type of what the store keeps.
    package static let type = "_KeyValue"
    /// Bytes of a key.
    package static let keySizeMax = 64
    /// Changes in one batch.
    package static let changeCountMax = 1_024

    /// 1 to 64 bytes.
    package static func isKey(_ key: String) -> Bool {
        (1...Self.keySizeMax).contains(key.utf8.count)
    }

    /// 1 to 64 letters, digits, and `-`, `_`, `.`, `:`.
    package static func isDevice(_ device: String) -> Bool {
        (1...64).contains(device.utf8.count)
            && device.utf8.allSatisfy { byte in
                switch byte {
                case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                    UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"),
                    UInt8(ascii: "."), UInt8(ascii: ":"):
                    true
                default: false
                }
            }
    }
}

/// A read of the store: what has changed since a position.
package struct KeyValuesAsk: Sendable, Equatable {
    package var database: DatabaseID
    /// Nil: from the beginning. So is a position that has expired.
    package var after: FeedPosition?
    /// Rows that one page passes over.
    package var limit: Int
    /// Keys whose state the page tells in any case, behind what has changed.
    package var keys: [String]

    package init(
        database: DatabaseID, after: FeedPosition? = nil, limit: Int = 500, keys: [String] = []
    ) {
        self.database = database
        self.after = after
        self.limit = limit
        self.keys = keys
    }
}

/// Part of the answer to a ``KeyValuesAsk``.
package struct KeyValuesPage: Sendable, Equatable {
    package struct Entry: Sendable, Equatable {
        package var key: String
        /// Nil: it was removed.
        package var value: Bytes?
        /// The batch that it came with; the device is empty where nobody remembers it.
        package var device: String
        package var batch: UInt64

        package init(key: String, value: Bytes?, device: String, batch: UInt64) {
            self.key = key
            self.value = value
            self.device = device
            self.batch = batch
        }
    }

    /// The page begins at the store's beginning. Then it tells of no removed keys.
    package var isFromStart: Bool
    package var entries: [Entry]
    package var position: FeedPosition
    package var moreComing: Bool
    package var use: KeyValueUse

    package init(
        isFromStart: Bool, entries: [Entry], position: FeedPosition, moreComing: Bool,
        use: KeyValueUse
    ) {
        self.isFromStart = isFromStart
        self.entries = entries
        self.position = position
        self.moreComing = moreComing
        self.use = use
    }
}

/// One device that has sent changes.
package struct KeyValueDevice: Sendable, Equatable {
    package var device: String
    package var lastBatch: UInt64
    package var lastSeenMilliseconds: Int64
}
