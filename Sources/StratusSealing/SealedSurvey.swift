package import StratusModel

/// Looks at the header of every file of a data directory before it is used, and wraps keys anew
/// that are under an older master key.
///
/// It runs at a start, before anything else opens a file. So a missing master key is an error that
/// names the file, and nothing was read or written before it.
package struct SealedSurvey {
    package struct Refusal: Error, Sendable, Equatable, CustomStringConvertible {
        package var path: DiskPath
        package var problem: FileMasters.Problem

        package var description: String { "'\(self.path)' cannot be opened: \(self.problem)" }
    }

    /// Deeper than any file of ours.
    private static let depthMax = 4

    private let files: any Files
    private let masters: FileMasters
    private let random: () -> UInt64
    /// The files whose header is damaged. Each is refused when it is opened.
    package private(set) var damaged: [DiskPath] = []
    package private(set) var sealedCount = 0
    package private(set) var rewrappedCount = 0

    /// - Parameter files: the disk beneath ``SealedFiles``.
    package init(_ files: any Files, masters: FileMasters, random: @escaping () -> UInt64) {
        self.files = files
        self.masters = masters
        self.random = random
    }

    package mutating func run() throws {
        for path in try Self.paths(in: self.files) { try self.look(at: path) }
    }

    /// The files of a data directory that are sealed where it is sealed, in the order of their
    /// directories.
    package static func paths(in files: any Files) throws(DiskError) -> [DiskPath] {
        try Self.paths(in: files, .root, depth: 0)
    }

    private static func paths(
        in files: any Files, _ directory: DiskPath, depth: Int
    ) throws(DiskError) -> [DiskPath] {
        var paths: [DiskPath] = []
        for name in try files.list(directory) {
            let path = directory.appending(name.raw)
            guard SealedFiles.isSealed(path), Self.isOurs(path) else { continue }
            if depth < Self.depthMax, (try? files.list(path)) != nil {
                paths += try Self.paths(in: files, path, depth: depth + 1)
            } else {
                paths.append(path)
            }
        }
        return paths
    }

    /// Operators keep files of theirs in the root, and the start itself some secrets. Our own files
    /// there have names in capitals.
    private static func isOurs(_ path: DiskPath) -> Bool {
        path.parent != .root || ["log", "partitions", "assets"].contains(path.raw)
            || path.raw.utf8.allSatisfy { (0x41...0x5A).contains($0) }
    }

    private mutating func look(at path: DiskPath) throws {
        let file = try self.files.open(path, create: false)
        let length = try file.length
        if length == 0 { return }
        let finding = FileSeal.find(in: try file.start(), length: length)
        let key: SecretBytes?
        do throws(FileMasters.Problem) { key = try self.masters.key(of: finding) } catch {
            switch error {
            case .damaged: return self.damaged.append(path)
            default: throw Refusal(path: path, problem: error)
            }
        }
        guard let key, case .sealed(let slots) = finding else { return }
        self.sealedCount += 1
        let isDone =
            slots.count == FileSeal.slots.count
            && slots.allSatisfy { self.masters.isNewest($0.seal.key) }
        if isDone { return }
        try self.wrap(key, file, slots)
    }

    /// Writes the key anew into both slots. The newest sound one is written last, when the other
    /// one is synced: at any time one of them opens.
    private mutating func wrap(_ key: SecretBytes, _ file: any File, _ slots: [FileSeal.Slot])
        throws
    {
        let seal = FileSeal(
            generation: (slots.first?.seal.generation ?? 0) + 1,
            key: self.masters.wrap(key, random: self.random))
        guard let newest = slots.first(where: { (try? self.masters.open($0.seal.key)) != nil })
        else { return }
        // What was read may be in memory only: a sync of an earlier process may have failed.
        try file.write(all: newest.seal.encoded, at: UInt64(newest.offset))
        try file.sync()
        for slot in FileSeal.slots.filter({ $0 != newest.offset }) + [newest.offset] {
            try file.write(all: seal.encoded, at: UInt64(slot))
            try file.sync()
        }
        self.rewrappedCount += 1
    }
}
