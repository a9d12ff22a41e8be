package import StratusModel

/// Seals the files of a data directory that was used without sealing, or the other way round.
///
/// Promises:
/// - Until the stamp changes, the directory is what it was: the new files are made in `conversion/`
///   beside the old ones, synced, and compared with them. A process that ends meanwhile leaves a
///   directory that a node can use, and the next conversion begins anew.
/// - From then on no node uses the directory until every new file is in its place. A process that
///   ends meanwhile leaves a directory in which the next conversion goes on.
/// - The old files are kept, below ``kept(from:)``, until ``removeKept()``.
///
/// Files that are written as they are in both forms stay where they are: packs among them, so a
/// conversion needs no room for files of records.
package struct DirectoryConversion {
    package enum Refusal: Error, Sendable, Equatable, CustomStringConvertible {
        /// The old files of an earlier conversion are there.
        case isKept(DiskPath)
        case isTooFull(needed: UInt64, free: UInt64)
        /// What was read back is not what was written.
        case differs(DiskPath)
        /// A file of the directory cannot be read.
        case unreadable(DiskPath, DiskError)
        case disk(DiskError)

        package var description: String {
            switch self {
            case .isKept(let path):
                "the directory has '\(path)', the old files of an earlier conversion: remove them, or "
                    + "move them elsewhere, and run the command again"
            case .isTooFull(let needed, let free):
                "the new files need \(DirectoryConversion.mebibytes(needed)) beside the old ones, and the disk has "
                    + "\(DirectoryConversion.mebibytes(free)) free: make room. Nothing was changed"
            case .differs(let path):
                "'\(path)' was read back, and is not what was written. The directory is as it was"
            case .unreadable(let path, let error):
                "'\(path)' cannot be read: \(error). The directory is as it was"
            case .disk(let error): "\(error)"
            }
        }
    }

    package struct Report: Sendable, Equatable {
        package var fileCount = 0
        /// Of their contents.
        package var size: UInt64 = 0
        /// Whether an earlier process had made the files.
        package var isResumed = false
    }

    /// Where the new files are made. No node looks there.
    package static let unfinished: DiskPath = "conversion"
    /// Where the old files are kept.
    package static func kept(from form: DataDirectory.Form) -> DiskPath {
        switch form {
        case .clear: "before-sealing"
        case .sealed: "before-unsealing"
        }
    }

    /// As operators read it.
    package static func mebibytes(_ size: UInt64) -> String {
        "\((size + (1 << 20) - 1) >> 20) MiB"
    }

    private static let pieceSize = 1 << 20
    /// More than a file or a directory takes beside its content: a header, its last block, its name.
    private static let overheadMax: UInt64 = 3 * 4_096

    private let directory: DataDirectory
    private let form: DataDirectory.Form
    private let disk: any Files
    private let old: any Files
    private let new: () -> any Files
    private let listed: () throws(DiskError) -> [DiskPath]
    private let progress: (_ done: UInt64, _ all: UInt64) -> Void
    private var kept: DiskPath { Self.kept(from: self.form == .sealed ? .clear : .sealed) }

    /// - Parameters:
    ///   - directory: locked. It is whole in the other form, or on its way to this one.
    ///   - form: what it becomes.
    ///   - disk: the files as they are on the disk.
    ///   - old: the files as a node reads them that uses the directory now.
    ///   - new: the files as a node reads them that uses it afterwards. Each call gives new ones,
    ///     which know nothing of what was written before.
    ///   - listed: the files that are to be converted.
    ///   - progress: hears how many bytes of all are done.
    package init(
        of directory: DataDirectory, to form: DataDirectory.Form, disk: any Files, old: any Files,
        new: @escaping () -> any Files, listed: @escaping () throws(DiskError) -> [DiskPath],
        progress: @escaping (_ done: UInt64, _ all: UInt64) -> Void = { _, _ in }
    ) {
        self.directory = directory
        self.form = form
        self.disk = disk
        self.old = old
        self.new = new
        self.listed = listed
        self.progress = progress
    }

    /// Converts the directory, or finishes what an earlier process began.
    ///
    /// When this throws before the stamp has changed, the new files are removed.
    package func run() throws(Refusal) -> Report {
        precondition(
            self.directory.state != .whole(self.form), "the directory has this form already")
        var report = Report()
        if self.directory.state == .converting(to: self.form) {
            report.isResumed = true
        } else {
            do throws(Refusal) { report = try self.prepare() } catch {
                // What cannot be removed now is removed by the next conversion.
                _ = try? self.removeTree(Self.unfinished)
                throw error
            }
        }
        do throws(DiskError) { try self.exchange() } catch { throw .disk(error) }
        return report
    }

    /// Removes the old files. The directory has its new form.
    ///
    /// - Returns: whether there were any.
    package func removeKept() throws(DiskError) -> Bool { try self.removeTree(self.kept) }

    /// Removes the new files of a conversion that ended before it exchanged any. The directory has
    /// one form throughout.
    package func removeUnfinished() throws(DiskError) { try self.removeTree(Self.unfinished) }

    /// The directories that conversions have left behind, finished or not.
    package static func remains(in files: any Files) throws(DiskError) -> [DiskPath] {
        var remains: [DiskPath] = []
        for path in [Self.unfinished, Self.kept(from: .clear), Self.kept(from: .sealed)]
        where try files.exists(path) { remains.append(path) }
        return remains
    }

    // MARK: Making the new files

    private struct Original {
        var path: DiskPath
        var size: UInt64
    }

    private func prepare() throws(Refusal) -> Report {
        let isKept = try self.onDisk { () throws(DiskError) in try self.disk.exists(self.kept) }
        if isKept { throw .isKept(self.kept) }
        try self.onDisk { () throws(DiskError) in _ = try self.removeTree(Self.unfinished) }
        let originals = try self.look()
        try self.onDisk { () throws(DiskError) in try self.makeDirectories(for: originals) }
        let size = originals.reduce(0) { $0 + $1.size }
        var done: UInt64 = 0
        // A file is written and read back: each counts once.
        func tell(_ count: Int) {
            done += UInt64(count)
            self.progress(done, 2 * size)
        }
        let written = self.new()
        for original in originals { try self.copy(original, to: written, tell) }
        try self.onDisk { () throws(DiskError) in try self.sync(self.walk(Self.unfinished)) }
        let read = self.new()
        for original in originals { try self.compare(original, with: read, tell) }
        return Report(fileCount: originals.count, size: size)
    }

    /// The files to convert, each opened once, and whether the disk has room for new ones.
    private func look() throws(Refusal) -> [Original] {
        var originals: [Original] = []
        var needed: UInt64 = 0
        let listed = try self.onDisk { () throws(DiskError) in try self.listed() }
        for path in listed {
            let size: UInt64
            do throws(DiskError) { size = try self.old.open(path, create: false).length } catch {
                throw .unreadable(path, error)
            }
            originals.append(Original(path: path, size: size))
            needed += size + Self.overheadMax
        }
        let free = try self.onDisk { () throws(DiskError) in try self.disk.space().free }
        if needed > free { throw .isTooFull(needed: needed, free: free) }
        return originals
    }

    private func makeDirectories(for originals: [Original]) throws(DiskError) {
        try self.disk.makeDirectory(Self.unfinished)
        for original in originals {
            try self.disk.makeDirectory(Self.unfinished.appending(original.path).parent)
        }
    }

    private func copy(
        _ original: Original, to files: any Files, _ tell: (Int) -> Void
    ) throws(Refusal) {
        let target = try self.open(original, in: files, create: true)
        try self.read(original, tell) { (piece, offset) throws(Refusal) in
            try self.onDisk { () throws(DiskError) in try target.write(piece, at: offset) }
        }
        try self.onDisk { () throws(DiskError) in try target.sync() }
    }

    private func compare(
        _ original: Original, with files: any Files, _ tell: (Int) -> Void
    ) throws(Refusal) {
        let target = try self.open(original, in: files, create: false)
        let size = try self.onDisk { () throws(DiskError) in try target.length }
        guard size == original.size else { throw .differs(original.path) }
        try self.read(original, tell) { (piece, offset) throws(Refusal) in
            let found = try self.onDisk { () throws(DiskError) in
                try target.bytes(piece.count, at: offset)
            }
            guard found == piece else { throw .differs(original.path) }
        }
    }

    /// The new file of an old one.
    private func open(
        _ original: Original, in files: any Files, create: Bool
    ) throws(Refusal) -> any File {
        try self.onDisk { () throws(DiskError) in
            try files.open(Self.unfinished.appending(original.path), create: create)
        }
    }

    /// Reads an old file piece by piece.
    private func read(
        _ original: Original, _ tell: (Int) -> Void,
        _ body: (Bytes, UInt64) throws(Refusal) -> Void
    ) throws(Refusal) {
        let source: any File
        do throws(DiskError) { source = try self.old.open(original.path, create: false) } catch {
            throw .unreadable(original.path, error)
        }
        var offset: UInt64 = 0
        while offset < original.size {
            let piece = try self.piece(of: source, original, at: offset)
            try body(piece, offset)
            offset += UInt64(piece.count)
            tell(piece.count)
        }
    }

    /// The next piece of a file, which is as long as it was.
    private func piece(
        of file: any File, _ original: Original, at offset: UInt64
    ) throws(Refusal) -> Bytes {
        let count = Int(min(UInt64(Self.pieceSize), original.size - offset))
        let piece: Bytes
        do throws(DiskError) { piece = try file.bytes(count, at: offset) } catch {
            throw .unreadable(original.path, error)
        }
        guard piece.count == count else { throw .differs(original.path) }
        return piece
    }

    // MARK: Taking their places

    /// Moves the old files out of the way and the new ones into their places. Each step is durable
    /// before the next one begins, so what is below ``unfinished`` says which step it is:
    /// while a new file is there, a file in its place is the old one.
    private func exchange() throws(DiskError) {
        if self.directory.state != .converting(to: self.form) {
            try self.directory.note(.converting(to: self.form), in: self.disk)
        }
        let names = try self.walk(Self.unfinished).files.map { $0.below(Self.unfinished) }
        let leaving = try names + self.leftovers()
        try self.disk.makeDirectory(self.kept)
        for name in leaving {
            try self.disk.makeDirectory(self.kept.appending(name).parent)
        }
        try self.sync(self.walk(self.kept))
        for name in leaving where try self.disk.exists(name) {
            try self.disk.rename(name, to: self.kept.appending(name))
        }
        try self.syncBoth(self.kept)
        for name in names {
            try self.disk.rename(Self.unfinished.appending(name), to: name)
        }
        // An earlier process may have moved files and not have synced their directories. Each of
        // them has an old file.
        try self.syncBoth(self.kept)
        try self.sync(self.walk(Self.unfinished))
        _ = try self.removeTree(Self.unfinished)
        try self.directory.note(.whole(self.form), in: self.disk)
    }

    /// Files of our own that an earlier process did not finish. They have a meaning to nobody, and
    /// would be of the wrong form.
    private func leftovers() throws(DiskError) -> [DiskPath] {
        let suffix = ".new"
        return try self.disk.list(.root).filter { name in
            guard name.raw.hasSuffix(suffix), name.raw != DataDirectory.stamp.raw + suffix,
                name.raw != "MASTER" + suffix
            else { return false }
            return name.raw.utf8.dropLast(suffix.utf8.count).allSatisfy {
                (0x41...0x5A).contains($0)
            }
        }
    }

    // MARK: Directories

    private struct Tree {
        var directories: [DiskPath] = []
        var files: [DiskPath] = []
    }

    /// All below a path, and the path itself; nothing if it is not there.
    private func walk(_ path: DiskPath) throws(DiskError) -> Tree {
        var tree = Tree()
        guard let names = try self.names(in: path) else { return tree }
        tree.directories.append(path)
        for name in names {
            let path = path.appending(name.raw)
            let below = try self.walk(path)
            if below.directories.isEmpty { tree.files.append(path) }
            tree.directories += below.directories
            tree.files += below.files
        }
        return tree
    }

    /// Nil: it is not a directory.
    private func names(in path: DiskPath) throws(DiskError) -> [DiskPath]? {
        do throws(DiskError) { return try self.disk.list(path) } catch {
            if error.kind == .notFound { return nil }
            throw error
        }
    }

    /// Makes the names in a tree durable, and its own.
    private func sync(_ tree: Tree) throws(DiskError) {
        for path in tree.directories { try self.disk.syncDirectory(path) }
        try self.disk.syncDirectory(.root)
    }

    /// Makes the names in a tree durable, and those in the directories of the same names outside.
    private func syncBoth(_ path: DiskPath) throws(DiskError) {
        let tree = try self.walk(path)
        try self.sync(tree)
        for directory in tree.directories where directory != path {
            try self.disk.syncDirectory(directory.below(path))
        }
    }

    /// - Returns: whether it was there.
    @discardableResult private func removeTree(_ path: DiskPath) throws(DiskError) -> Bool {
        let tree = try self.walk(path)
        guard !tree.directories.isEmpty else { return false }
        for file in tree.files { try self.disk.remove(file) }
        for directory in tree.directories.reversed() { try self.disk.remove(directory) }
        try self.disk.syncDirectory(.root)
        return true
    }

    private func onDisk<Result>(
        _ body: () throws(DiskError) -> Result
    ) throws(Refusal) -> Result {
        do throws(DiskError) { return try body() } catch { throw .disk(error) }
    }
}

extension DiskPath {
    fileprivate func appending(_ path: DiskPath) -> DiskPath { self.appending(path.raw) }
    /// This path without the directory at its beginning.
    fileprivate func below(_ directory: DiskPath) -> DiskPath {
        DiskPath(String(self.raw.utf8.dropFirst(directory.raw.utf8.count + 1))!)
    }
}
