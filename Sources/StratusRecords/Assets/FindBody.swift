import StratusCoding
package import StratusModel
import StratusRows

/// Stratus' own: nodes have stored every chunk of a body that is called lost, as copies from
/// another disk brought them. The row calls it lost no more.
///
/// Like a pin it is appended only where the storers are enough, and does nothing in an entry that is
/// later than ``orphanAfterMilliseconds``.
package struct FindBody: Sendable, Equatable {
    package var body: BodyID
    /// As it was said to the nodes that stored copies.
    package var orphanAfterMilliseconds: Int64
    /// Nodes that have all of the body.
    package var storers: [CopyHolding]

    package init(body: BodyID, orphanAfterMilliseconds: Int64, storers: [CopyHolding]) {
        self.body = body
        self.orphanAfterMilliseconds = orphanAfterMilliseconds
        self.storers = storers
    }
}

extension FindBody {
    func write(to writer: inout ByteWriter) {
        writer.write(body: self.body)
        writer.write(signed: self.orphanAfterMilliseconds)
        writer.write(self.storers)
    }

    init(from reader: inout ByteReader) throws(DecodingError) {
        let body = try reader.body()
        let orphanAfter = try reader.signed()
        let start = reader.offset
        self.init(
            body: body, orphanAfterMilliseconds: orphanAfter,
            storers: try reader.storers())
        guard self.storers.count <= PinAsset.storerCountMax else {
            throw DecodingError(.malformed, at: start)
        }
    }
}

/// The rows of bodies, by their names. For Stratus itself.
package struct BodiesAsk: Sendable, Equatable {
    /// Bodies that one question names.
    package static let countMax = 256

    package var bodies: [BodyID]

    package init(_ bodies: [BodyID]) { self.bodies = bodies }
}

/// Bodies as the rows of one partition have them, in the order of the question.
package struct FoundBodies: Sendable, Equatable {
    /// Chunks that one answer lists, once it has one body.
    package static let chunkCountMax = 100_000

    /// Nil: no row names it. Fewer than were asked for: the others are to be asked for anew.
    package var bodies: [BodyManifest?]

    package init(_ bodies: [BodyManifest?]) { self.bodies = bodies }
}

extension RecordState {
    func bodies(
        _ ask: BodiesAsk, _ principal: Principal, over rows: RowView
    ) throws(StoreError) -> RecordAnswer {
        guard principal.isStratus else { return .refused(RequestRefusal(.accessDenied)) }
        guard ask.bodies.count <= BodiesAsk.countMax else {
            return .refused(RequestRefusal(.tooManyItems, String(BodiesAsk.countMax)))
        }
        var (found, chunkCount) = (FoundBodies([]), 0)
        for body in ask.bodies {
            let manifest = try AssetRows.body(body, over: rows)
            chunkCount += manifest?.chunks.count ?? 0
            if chunkCount > FoundBodies.chunkCountMax, !found.bodies.isEmpty { break }
            found.bodies.append(manifest)
        }
        return .bodies(found)
    }

    mutating func apply(
        _ find: FindBody, of command: Command, at position: EntryPosition,
        over rows: Rows
    ) throws(StoreError) -> RecordOutcome {
        guard command.principal.isStratus else { return .refused(RequestRefusal(.accessDenied)) }
        if position.time.milliseconds > find.orphanAfterMilliseconds {
            return .refused(RequestRefusal(.pinTooLate))
        }
        guard var body = try AssetRows.body(find.body, over: rows.view) else {
            return .bodyFound(false)
        }
        guard body.isLost else { return .bodyFound(true) }
        body.isLost = false
        // From here on it is to be held, as if it were named for the first time.
        body.namedAt = position.index
        try AssetRows.write(body, into: rows)
        self.bodyChanges.append(.found(body))
        return .bodyFound(true)
    }
}

extension ByteWriter {
    mutating func write(_ found: FoundBodies) {
        self.write(count: found.bodies.count)
        for manifest in found.bodies {
            self.write(flag: manifest != nil)
            if let manifest { self.write(manifest) }
        }
    }
}

extension ByteReader {
    mutating func foundBodies() throws(DecodingError) -> FoundBodies {
        let start = self.offset
        let count = try self.count()
        guard count <= BodiesAsk.countMax else { throw DecodingError(.malformed, at: start) }
        var found = FoundBodies([])
        for _ in 0..<count {
            found.bodies.append(try self.flag() ? try self.bodyManifest() : nil)
        }
        return found
    }
}
