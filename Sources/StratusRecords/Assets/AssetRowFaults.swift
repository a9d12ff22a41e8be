import StratusCoding
package import StratusModel

/// Asks a partition whether what its rows say of files agrees, whatever their database.
package struct AssetRowsAsk: Sendable, Equatable {
    /// Where the last answer ended; nil: from the beginning.
    package var after: Bytes?

    package init(after: Bytes? = nil) { self.after = after }
}

/// Rows that say different things of one file.
package struct AssetRowFault: Sendable, Equatable {
    package enum Kind: UInt8, Sendable, Equatable, CaseIterable {
        /// The row of its body is not there, or is that of another file.
        case noBody = 1
        /// No record holds it, and no time is set at which it is removed.
        case neverEnds = 2
        /// The row of the time at which it is removed is not there.
        case noEnd = 3
        /// It says that a record holds it, and none does; or the other way.
        case heldWrongly = 4
        /// A record, or the row that says so, holds a file that is not there.
        case noAsset = 5
        /// A row says that a record holds it, and the record does not.
        case notInRecord = 6
        /// A record holds it, and no row says so.
        case noHolder = 7

        package var text: String {
            switch self {
            case .noBody: "has no body of its own"
            case .neverEnds: "is held by no record, and never ends"
            case .noEnd: "has no row of its end"
            case .heldWrongly: "says wrongly whether records hold it"
            case .noAsset: "is named, and is not there"
            case .notInRecord: "is held by a record that does not name it"
            case .noHolder: "is named by a record, and no row says so"
            }
        }
    }

    package var kind: Kind
    package var asset: AssetID
    /// The database, and its zone where a record is concerned. Nil: it is not there any more.
    package var database: DatabaseID?
    package var zone: String?
    package var record: String?

    package init(
        _ kind: Kind, of asset: AssetID, database: DatabaseID? = nil, zone: String? = nil,
        record: String? = nil
    ) {
        self.kind = kind
        self.asset = asset
        self.database = database
        self.zone = zone
        self.record = record
    }
}

/// An answer to an ``AssetRowsAsk``.
package struct AssetRowFaults: Sendable, Equatable {
    package var faults: [AssetRowFault]
    /// Where to go on; nil: everything has been looked at.
    package var next: Bytes?

    package init(faults: [AssetRowFault] = [], next: Bytes? = nil) {
        self.faults = faults
        self.next = next
    }
}

extension ByteWriter {
    mutating func write(_ page: AssetRowFaults) {
        self.write(count: page.faults.count)
        for fault in page.faults {
            self.write(fault.kind.rawValue)
            self.write(name: fault.asset.raw)
            self.write(flag: fault.database != nil)
            if let database = fault.database { self.write(database) }
            for text in [fault.zone, fault.record] {
                self.write(flag: text != nil)
                if let text { self.write(text: text) }
            }
        }
        self.write(flag: page.next != nil)
        if let next = page.next { self.write(prefixed: next) }
    }
}

extension ByteReader {
    mutating func assetRowFaults() throws(DecodingError) -> AssetRowFaults {
        var page = AssetRowFaults()
        for _ in 0..<(try self.count(minimumSize: 20)) {
            let start = self.offset
            guard let kind = AssetRowFault.Kind(rawValue: try self.byte()) else {
                throw DecodingError(.malformed, at: start)
            }
            var fault = AssetRowFault(kind, of: AssetID(try self.name()))
            if try self.flag() { fault.database = try self.database() }
            if try self.flag() { fault.zone = try self.text() }
            if try self.flag() { fault.record = try self.text() }
            page.faults.append(fault)
        }
        if try self.flag() { page.next = try self.prefixed() }
        return page
    }
}
