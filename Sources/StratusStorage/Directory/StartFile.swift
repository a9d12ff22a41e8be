package import StratusCoding
package import StratusModel

// The file STARTS in a data directory, version 1: two slots of 4096 bytes, each with
//
// | bytes   | what                                                                          |
// | ------- | ----------------------------------------------------------------------------- |
// | 8       | "STRATUSL"                                                                    |
// | 1       | version, 1                                                                    |
// | 8       | starts there have been                                                        |
// | 256 × 8 | the incarnations of the last ones, oldest first; zeros behind fewer           |
// | 4       | CRC-32C of the bytes before                                                   |

/// The starts that a data directory has seen.
///
/// Promises:
/// - The result of ``begin(in:as:bugs:)`` is on disk, in both slots. A start that was announced is
///   in the directory ever after, however the process ends and whichever one slot rots.
/// - A slot is written only while the other one holds every announced start. It is written in
///   place: once the file is there, a full disk keeps no node from starting.
package struct StartFile: Sendable {
    package enum Refusal: Error, Sendable, Equatable, CustomStringConvertible {
        case damaged
        case disk(DiskError)

        package var description: String {
            switch self {
            case .damaged:
                "the file STARTS in the data directory is damaged: without it this node's peers cannot "
                    + "tell it from an older copy, so remove the node and let it join anew"
            case .disk(let error): "the file STARTS in the data directory: \(error)"
            }
        }
    }

    package static let path: DiskPath = "STARTS"
    private static let frame = FileFrame("STRATUSL")
    private static let slotSize = 4_096
    private static let slots: [UInt64] = [0, UInt64(slotSize)]
    private static let encodedSize = 8 + 1 + 8 + 8 * NodeStarts.keptMax + 4

    /// Counts a start.
    package static func begin(
        in world: any World, as incarnation: NodeIncarnation, bugs: PlantedBugs = PlantedBugs()
    ) throws(Refusal) -> NodeStarts {
        do {
            guard try world.files.exists(Self.path) else {
                let starts = NodeStarts(first: incarnation)
                let slot = Self.encode(starts)
                let padding = Bytes(repeating: 0, count: Self.slotSize - slot.count)
                try world.files.replace(Self.path, with: slot + padding + slot + padding)
                return starts
            }
            let file = try world.files.open(Self.path, create: false)
            guard let (newest, offset) = try Self.read(file) else { throw Refusal.damaged }
            var starts = newest
            starts.add(incarnation)
            // The content just read may be in memory only, and the slot it came from must be
            // written last: the end of an earlier process may have torn the other.
            if !bugs.contains(.startToldUnsynced) { try file.sync() }
            let slot = Self.encode(starts)
            for offset in Self.slots.filter({ $0 != offset }) + [offset] {
                try file.write(slot, at: offset)
                if !bugs.contains(.startToldUnsynced) { try file.sync() }
            }
            // An earlier process may have died between renaming it and this.
            try world.files.syncDirectory(.root)
            return starts
        } catch let error as DiskError {
            throw .disk(error)
        } catch let refusal as Refusal {
            throw refusal
        } catch { preconditionFailure("\(error)") }
    }

    /// Reads the newest of the two slots. Either is sound: if a process ended between the two
    /// writes, nobody was told of the start that only one holds.
    private static func read(_ file: any File) throws(DiskError)
        -> (newest: NodeStarts, offset: UInt64)?
    {
        var found: (newest: NodeStarts, offset: UInt64)?
        var failure: DiskError?
        for offset in Self.slots {
            do {
                let starts = try Self.decode(try file.bytes(Self.encodedSize, at: offset))
                if starts.count > found?.newest.count ?? 0 { found = (starts, offset) }
            } catch { failure = failure ?? error as? DiskError }
        }
        if found == nil, let failure { throw failure }
        return found
    }

    package static func encode(_ starts: NodeStarts) -> Bytes {
        Self.frame.encode { writer in
            writer.write(fixed: starts.count)
            for index in 0..<NodeStarts.keptMax {
                let isKept = index < starts.incarnations.count
                writer.write(fixed: isKept ? starts.incarnations[index].raw : 0)
            }
        }
    }

    package static func decode(_ bytes: Bytes) throws(DecodingError) -> NodeStarts {
        try Self.frame.decode(bytes) { (reader, _) throws(DecodingError) in
            let count = try reader.fixed64()
            var incarnations: [NodeIncarnation] = []
            for index in 0..<NodeStarts.keptMax {
                let incarnation = NodeIncarnation(try reader.fixed64())
                if UInt64(index) < count { incarnations.append(incarnation) }
            }
            guard let starts = NodeStarts(count: count, incarnations: incarnations) else {
                throw DecodingError(.malformed, at: 9)
            }
            return starts
        }
    }
}
