import StratusCoding
import StratusModel
import StratusProcess

/// The copies of one partition in the packs of another disk. They are found without their index,
/// and nothing is written.
struct FoundPacks: Sendable {
    /// A partition's folder.
    struct Folder: Equatable {
        var group: GroupID
        var path: String
    }

    private struct Place {
        var file: Int
        var record: PackRecord
    }

    /// Places that are kept of one copy: compaction may have left it in two packs.
    private static let placeCountMax = 3

    let group: GroupID
    /// Packs, or parts of them, that cannot be read.
    private(set) var troubles: [String] = []
    private var files: [ReadOnlyFile] = []
    private var places: [BodyID: [UInt32: [Place]]] = [:]

    /// - Parameter directory: a node's data directory, its folder `assets`, or one partition's
    ///   folder in that.
    /// - Returns: empty where it is none of these.
    static func folders(in directory: String) throws(SmallFile.Failure) -> [Folder] {
        let names = try ReadOnlyFile.names(in: directory)
        if names.contains("assets") { return try Self.folders(in: directory + "/assets") }
        if names.contains(where: { $0.hasSuffix(".pack") }) {
            let parts = directory.split(separator: "/")
            return (parts.last.flatMap { Self.group(String($0)) }).map {
                [Folder(group: $0, path: directory)]
            } ?? []
        }
        return names.compactMap { name in
            Self.group(name).map { Folder(group: $0, path: "\(directory)/\(name)") }
        }
    }

    private static func group(_ name: String) -> GroupID? {
        guard name.utf8.count >= 5, name.utf8.allSatisfy({ (0x30...0x39).contains($0) }),
            let number = UInt16(name), number > 0
        else { return nil }
        return GroupID(number)
    }

    /// Reads the heads of all copies in a folder.
    init(in folder: Folder) throws(SmallFile.Failure) {
        self.group = folder.group
        for name in try ReadOnlyFile.names(in: folder.path) {
            guard name.hasSuffix(".pack"), let number = UInt64(name.dropLast(5)) else { continue }
            let path = "\(folder.path)/\(name)"
            do throws(SmallFile.Failure) {
                let file = try ReadOnlyFile(path)
                let start = try file.bytes(PackScan.startSize, at: 0)
                guard let header = PackScan.header(start, of: folder.group, number: number) else {
                    if start.count > PackFormat.headerSize {
                        self.troubles.append("'\(path)' does not begin as a pack")
                    }
                    continue
                }
                try self.add(file, header)
            } catch { self.troubles.append("\(error)") }
        }
    }

    private mutating func add(_ file: ReadOnlyFile, _ header: PackHeader)
        throws(SmallFile.Failure)
    {
        let (records, _) = try PackScan.records(
            in: header, from: UInt64(PackFormat.headerSize), to: try file.length,
            read: { (count, position) throws(SmallFile.Failure) in
                try file.bytes(count, at: position)
            }, isSound: { _ throws(SmallFile.Failure) in true })
        for record in records {
            let name = record.copy.name
            var known = self.places[name.body]?[name.ordinal] ?? []
            guard known.count < Self.placeCountMax else { continue }
            known.append(Place(file: self.files.count, record: record))
            self.places[name.body, default: [:]][name.ordinal] = known
        }
        self.files.append(file)
    }

    var bodies: [BodyID] { self.places.keys.sorted() }

    /// The chunks of a body that are here, ascending.
    func ordinals(of body: BodyID) -> [UInt32] { (self.places[body] ?? [:]).keys.sorted() }

    /// The bytes of a copy, as they were written. Nil: no copy of the chunk is sound.
    func copy(_ body: BodyID, _ ordinal: UInt32) -> Bytes? {
        for place in self.places[body]?[ordinal] ?? [] {
            let copy = place.record.copy
            let start = place.record.position + UInt64(PackFormat.recordHeaderSize)
            let bytes = try? self.files[place.file].bytes(Int(copy.storedSize), at: start)
            if let bytes, bytes.count == Int(copy.storedSize), CRC32C.of(bytes) == copy.crc {
                return bytes
            }
        }
        return nil
    }
}
