package import StratusCoding
package import StratusModel
package import StratusRows

/// Both ends of the references that leave the buckets of one database, as the rows of one partition
/// have them. For those who check that partitions agree.
package struct LinkEnds: Sendable, Equatable {
    package struct End: Sendable, Hashable {
        package var target: String
        package var action: Reference.Action
        package var referrer: String
        package var identity: RequestIdentity
    }

    package struct Ask: Sendable, Equatable {
        package var container: ContainerReference
        package var bucketCount: Int
        /// The names of the records to look for, in all buckets.
        package var names: [String]

        package init(_ container: ContainerReference, bucketCount: Int, names: [String]) {
            self.container = container
            self.bucketCount = bucketCount
            self.names = names
        }
    }

    /// The references as their targets' buckets store them.
    package var inbound: [End] = []
    /// The references as their referrers' buckets store them.
    package var outbound: [End] = []
    /// The number of inbound references that are reserved and not yet confirmed.
    package var unconfirmedCount = 0

    package init(_ ask: Ask, over rows: RowView) throws(StoreError) {
        for number in 0..<ask.bucketCount {
            let bucket = Bucket(number, of: ask.bucketCount)
            let database = DatabaseID(
                container: ask.container, scope: .public, owner: "", bucket: bucket)
            guard let row = try StoredRows.database(database, over: rows),
                let zone = try StoredRows.zone(ZoneID.defaultName, in: row.number, over: rows)
            else { continue }
            let links = LinkRows(zone: zone.number)
            for name in ask.names where bucket.holds(name) {
                for action in [Reference.Action.deleteSelf, .validate] {
                    for found in try links.inbound(to: name, action, limit: .max, over: rows) {
                        self.inbound.append(End(found.link))
                        if found.state.state != .confirmed { self.unconfirmedCount += 1 }
                    }
                    for target in ask.names where !bucket.holds(target) {
                        let reference = ActingReference(target: target, action: action)
                        if let identity = try links.outbound(reference, of: name, over: rows) {
                            self.outbound.append(
                                End(
                                    Link(
                                        target: target, action: action, referrer: name,
                                        identity: identity)))
                        }
                    }
                }
            }
        }
    }
}

extension LinkEnds.End {
    init(_ link: Link) {
        self.init(
            target: link.target, action: link.action, referrer: link.referrer,
            identity: link.identity)
    }
}

// Between a checker and a partition of one process; never stored, never sent.

extension LinkEnds.Ask {
    package func encoded() -> Bytes {
        var writer = ByteWriter()
        writer.write(text: self.container.container)
        writer.write(self.container.environment.rawValue)
        writer.write(count: self.bucketCount)
        writer.write(count: self.names.count)
        for name in self.names { writer.write(text: name) }
        return writer.bytes
    }

    package init(decoding bytes: Bytes) throws(DecodingError) {
        var reader = ByteReader(bytes)
        let name = try reader.text()
        guard let environment = Environment(rawValue: try reader.byte()) else {
            throw DecodingError(.malformed, at: 0)
        }
        self.container = ContainerReference(container: name, environment: environment)
        self.bucketCount = Int(try reader.varint())
        self.names = []
        for _ in 0..<(try reader.varint()) { self.names.append(try reader.text()) }
    }
}

extension LinkEnds {
    package func encoded() -> Bytes {
        var writer = ByteWriter()
        for ends in [self.inbound, self.outbound] {
            writer.write(count: ends.count)
            for end in ends {
                writer.write(text: end.target)
                writer.write(end.action.rawValue)
                writer.write(text: end.referrer)
                writer.write(end.identity)
            }
        }
        writer.write(count: self.unconfirmedCount)
        return writer.bytes
    }

    package init(decoding bytes: Bytes) throws(DecodingError) {
        var reader = ByteReader(bytes)
        self.inbound = try Self.ends(&reader)
        self.outbound = try Self.ends(&reader)
        self.unconfirmedCount = Int(try reader.varint())
    }

    private static func ends(_ reader: inout ByteReader) throws(DecodingError) -> [End] {
        var ends: [End] = []
        for _ in 0..<(try reader.varint()) {
            let target = try reader.text()
            guard let action = Reference.Action(rawValue: try reader.byte()) else {
                throw DecodingError(.malformed, at: 0)
            }
            ends.append(
                End(
                    target: target, action: action, referrer: try reader.text(),
                    identity: try reader.identity()))
        }
        return ends
    }
}
