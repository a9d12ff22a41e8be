package import StratusCoding
package import StratusModel

// Identity command, format 1: the body of a `Command` of kind `.identity`.
//
// | bytes | what                                                                           |
// | ----- | ------------------------------------------------------------------------------ |
// | 1     | format, 1                                                                      |
// | count | edits, each: key, condition, change                                            |
//
// Key: 1 kind, prefixed home, prefixed name.
// Condition: 0 any, 1 absent, 2 present, 3 and a varint revision.
// Change: 1 put: signed expiry, prefixed body; 2 remove; 3 require; 4 count: varint limit, signed
// milliseconds.
//
// Outcome, format 1: 1 format; 1 done and a count of varints; 2 conflict and a varint place;
// 3 limited and signed milliseconds; 4 refused.
//
// Query, format 1, never stored: 1 format; 1 rows and a count of keys; 2 list: 1 kind, prefixed
// home, flag and prefixed name, varint limit, flag descending. Answer, format 1, never stored: 1
// format; 1 and a count of flags with rows; 2 and a count of prefixed names with rows; 3 refused.
//
// A row in Table.identity, format 1: 1 format, varint revision, signed expiry, and the body as the
// rest. A counter's body: varint tries, signed milliseconds of the first.

extension IdentityCommand {
    package func encoded() -> Bytes {
        var writer = ByteWriter(reserving: 256)
        writer.write(1 as UInt8)
        writer.write(count: self.edits.count)
        for edit in self.edits {
            writer.write(edit.key)
            switch edit.condition {
            case .any: writer.write(0 as UInt8)
            case .absent: writer.write(1 as UInt8)
            case .present: writer.write(2 as UInt8)
            case .revision(let revision):
                writer.write(3 as UInt8)
                writer.write(varint: revision)
            }
            switch edit.change {
            case .put(let body, let expiry):
                writer.write(1 as UInt8)
                writer.write(signed: expiry)
                writer.write(prefixed: body)
            case .remove: writer.write(2 as UInt8)
            case .require: writer.write(3 as UInt8)
            case .count(let limit, let milliseconds):
                writer.write(4 as UInt8)
                writer.write(varint: limit)
                writer.write(signed: milliseconds)
            }
        }
        return writer.bytes
    }

    package init(decoding bytes: Bytes) throws(DecodingError) {
        var reader = ByteReader(bytes)
        try reader.format(1)
        var edits: [Edit] = []
        for _ in 0..<(try reader.count(minimumSize: 5)) { edits.append(try reader.identityEdit()) }
        try reader.finish()
        self.init(edits)
    }
}

extension IdentityOutcome {
    package func encoded() -> Bytes {
        var writer = ByteWriter(reserving: 16)
        writer.write(1 as UInt8)
        switch self {
        case .done(let revisions):
            writer.write(1 as UInt8)
            writer.write(count: revisions.count)
            for revision in revisions { writer.write(varint: revision) }
        case .conflict(let place):
            writer.write(2 as UInt8)
            writer.write(count: place)
        case .limited(let milliseconds):
            writer.write(3 as UInt8)
            writer.write(signed: milliseconds)
        case .refused: writer.write(4 as UInt8)
        }
        return writer.bytes
    }

    package init(decoding bytes: Bytes) throws(DecodingError) {
        var reader = ByteReader(bytes)
        try reader.format(1)
        switch try reader.byte() {
        case 1:
            var revisions: [UInt64] = []
            for _ in 0..<(try reader.count()) { revisions.append(try reader.varint()) }
            self = .done(revisions)
        case 2: self = .conflict(try reader.boundedInt())
        case 3: self = .limited(retryAfterMilliseconds: try reader.signed())
        case 4: self = .refused
        default: throw DecodingError(.malformed, at: reader.offset - 1)
        }
        try reader.finish()
    }
}

extension IdentityQuery {
    package func encoded() -> Bytes {
        var writer = ByteWriter(reserving: 128)
        writer.write(1 as UInt8)
        switch self {
        case .rows(let keys):
            writer.write(1 as UInt8)
            writer.write(count: keys.count)
            for key in keys { writer.write(key) }
        case .list(let kind, let home, let after, let limit, let descending):
            writer.write(2 as UInt8)
            writer.write(kind.rawValue)
            writer.write(prefixed: home)
            writer.write(flag: after != nil)
            if let after { writer.write(prefixed: after) }
            writer.write(count: max(0, limit))
            writer.write(flag: descending)
        }
        return writer.bytes
    }

    package init(decoding bytes: Bytes) throws(DecodingError) {
        var reader = ByteReader(bytes)
        try reader.format(1)
        switch try reader.byte() {
        case 1:
            var keys: [IdentityKey] = []
            for _ in 0..<(try reader.count(minimumSize: 3)) {
                keys.append(try reader.identityKey())
            }
            self = .rows(keys)
        case 2:
            let kind = try reader.identityKind()
            let home = try reader.prefixed()
            let after = try reader.flag() ? try reader.prefixed() : nil
            let limit = try reader.boundedInt()
            self = .list(
                kind, home: home, after: after, limit: limit, descending: try reader.flag())
        default: throw DecodingError(.malformed, at: reader.offset - 1)
        }
        try reader.finish()
    }
}

extension IdentityAnswer {
    package func encoded() -> Bytes {
        var writer = ByteWriter(reserving: 256)
        writer.write(1 as UInt8)
        switch self {
        case .rows(let rows):
            writer.write(1 as UInt8)
            writer.write(count: rows.count)
            for row in rows {
                writer.write(flag: row != nil)
                if let row { writer.write(prefixed: row.encoded()) }
            }
        case .list(let listed):
            writer.write(2 as UInt8)
            writer.write(count: listed.count)
            for entry in listed {
                writer.write(prefixed: entry.name)
                writer.write(prefixed: entry.row.encoded())
            }
        case .refused: writer.write(3 as UInt8)
        }
        return writer.bytes
    }

    package init(decoding bytes: Bytes) throws(DecodingError) {
        var reader = ByteReader(bytes)
        try reader.format(1)
        switch try reader.byte() {
        case 1:
            var rows: [IdentityRow?] = []
            for _ in 0..<(try reader.count()) {
                rows.append(
                    try reader.flag() ? try IdentityRow(decoding: try reader.prefixed()) : nil)
            }
            self = .rows(rows)
        case 2:
            var listed: [Listed] = []
            for _ in 0..<(try reader.count(minimumSize: 2)) {
                let name = try reader.prefixed()
                listed.append(
                    Listed(name: name, row: try IdentityRow(decoding: try reader.prefixed())))
            }
            self = .list(listed)
        case 3: self = .refused
        default: throw DecodingError(.malformed, at: reader.offset - 1)
        }
        try reader.finish()
    }
}

extension IdentityRow {
    func encoded() -> Bytes {
        var writer = ByteWriter(reserving: self.body.count + 24)
        writer.write(1 as UInt8)
        writer.write(varint: self.revision)
        writer.write(signed: self.expiresAtMilliseconds)
        writer.write(raw: self.body)
        return writer.bytes
    }

    init(decoding bytes: Bytes) throws(DecodingError) {
        var reader = ByteReader(bytes)
        try reader.format(1)
        let revision = try reader.varint()
        let expiry = try reader.signed()
        self.init(
            revision: revision, expiresAtMilliseconds: expiry,
            body: try reader.raw(reader.remaining))
    }
}

extension ByteWriter {
    fileprivate mutating func write(_ key: IdentityKey) {
        self.write(key.kind.rawValue)
        self.write(prefixed: key.home)
        self.write(prefixed: key.name)
    }
}

extension ByteReader {
    fileprivate mutating func identityKind() throws(DecodingError) -> IdentityKey.Kind {
        let number = try self.byte()
        guard let kind = IdentityKey.Kind(rawValue: number) else {
            throw DecodingError(
                number == 0
                    ? .malformed
                    : .unknownNumber(family: NumberFamily.identityRow.name, number),
                at: self.offset - 1)
        }
        return kind
    }

    fileprivate mutating func identityKey() throws(DecodingError) -> IdentityKey {
        let kind = try self.identityKind()
        let home = try self.prefixed()
        guard home.count <= 4_096 else { throw DecodingError(.malformed, at: self.offset) }
        return IdentityKey(kind, of: home, try self.prefixed())
    }

    fileprivate mutating func identityEdit() throws(DecodingError) -> IdentityCommand.Edit {
        let key = try self.identityKey()
        let condition: IdentityCommand.Condition
        switch try self.byte() {
        case 0: condition = .any
        case 1: condition = .absent
        case 2: condition = .present
        case 3: condition = .revision(try self.varint())
        default: throw DecodingError(.malformed, at: self.offset - 1)
        }
        let change: IdentityCommand.Change
        switch try self.byte() {
        case 1:
            let expiry = try self.signed()
            change = .put(body: try self.prefixed(), expiresAtMilliseconds: expiry)
        case 2: change = .remove
        case 3: change = .require
        case 4:
            let limit = try self.varint()
            change = .count(limit: limit, milliseconds: try self.signed())
        default: throw DecodingError(.malformed, at: self.offset - 1)
        }
        return IdentityCommand.Edit(key, if: condition, change)
    }
}
