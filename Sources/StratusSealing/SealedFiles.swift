package import StratusModel
import Synchronization

/// A disk that seals what is written to it: any ``Files``, and a key of its own for each file.
///
/// Promises:
/// - Bytes keep their places: a write changes the sectors that it would change without sealing,
///   and one more sector at most where the file grows. So power cuts, recycled segments and
///   reading back mean what they meant.
/// - What was never written reads as zeros, as it does without sealing.
/// - A file that is not sealed, or whose key cannot be had, is refused. It is never read as it is.
///
/// One object serves one life of a process: files are written through nothing else meanwhile.
package final class SealedFiles: Files {
    private struct Weak { weak var state: SealedFileState? }

    private let files: any Files
    private let masters: FileMasters
    private let random: @Sendable () -> UInt64
    /// The open files by their names.
    private let states = Mutex<[DiskPath: Weak]>([:])

    /// - Parameter random: unpredictable.
    package init(
        _ files: any Files, masters: FileMasters, random: @escaping @Sendable () -> UInt64
    ) {
        self.files = files
        self.masters = masters
        self.random = random
    }

    /// The files that are written as they are: the lock, the stamp that says whether the directory
    /// is sealed, the master value, which the cluster's secret seals, and packs, whose copies are
    /// sealed.
    package static func isSealed(_ path: DiskPath) -> Bool {
        switch path.raw {
        case "LOCK", "STRATUS", "STRATUS.new", "MASTER", "MASTER.new": false
        default: !(path.raw.hasPrefix("assets/") && path.raw.contains(".pack"))
        }
    }

    package func open(_ path: DiskPath, create: Bool) throws(DiskError) -> any File {
        guard Self.isSealed(path) else { return try self.files.open(path, create: create) }
        var opened: (any File)?
        // Under the lock, so that nobody moves another file to this name meanwhile.
        let state = try self.states.withLock { states throws(DiskError) -> SealedFileState in
            let file = try self.files.open(path, create: create)
            opened = file
            if let state = states[path]?.state { return state }
            let state = try SealedFileState(file, path, self.masters, self.random)
            if states.count >= Self.sweptCountMin {
                states = states.filter { $0.value.state != nil }
            }
            states[path] = Weak(state: state)
            return state
        }
        guard let opened else { preconditionFailure("'\(path)' was not opened") }
        return SealedFile(opened, state)
    }

    /// Beyond so many names those of closed files are forgotten.
    private static let sweptCountMin = 64

    package func rename(_ from: DiskPath, to: DiskPath) throws(DiskError) {
        precondition(
            Self.isSealed(from) == Self.isSealed(to), "a rename from or to what is not sealed")
        try self.states.withLock { states throws(DiskError) in
            try self.files.rename(from, to: to)
            states[to] = states.removeValue(forKey: from)
        }
    }

    package func remove(_ path: DiskPath) throws(DiskError) {
        try self.states.withLock { states throws(DiskError) in
            try self.files.remove(path)
            states[path] = nil
        }
    }

    package func exists(_ path: DiskPath) throws(DiskError) -> Bool {
        try self.files.exists(path)
    }
    package func makeDirectory(_ path: DiskPath) throws(DiskError) {
        try self.files.makeDirectory(path)
    }
    package func syncDirectory(_ path: DiskPath) throws(DiskError) {
        try self.files.syncDirectory(path)
    }
    package func list(_ path: DiskPath) throws(DiskError) -> [DiskPath] {
        try self.files.list(path)
    }
    package func lock(_ path: DiskPath) throws(DiskError) -> any DiskLock {
        try self.files.lock(path)
    }
    package func space() throws(DiskError) -> DiskSpace { try self.files.space() }
}

/// One open file of a ``SealedFiles``.
private final class SealedFile: File {
    private let file: any File
    private let state: SealedFileState

    init(_ file: any File, _ state: SealedFileState) {
        self.file = file
        self.state = state
    }

    func read(_ into: UnsafeMutableRawBufferPointer, at offset: UInt64) throws(DiskError) -> Int {
        try self.state.read(into, at: offset, through: self.file)
    }
    func write(_ from: UnsafeRawBufferPointer, at offset: UInt64) throws(DiskError) {
        try self.state.write(from, at: offset, through: self.file)
    }
    func sync() throws(DiskError) { try self.file.sync() }
    func resize(_ length: UInt64) throws(DiskError) {
        try self.state.resize(length, through: self.file)
    }
    var length: UInt64 { get throws(DiskError) { try self.state.length(through: self.file) } }
}

extension DiskError {
    init(_ problem: FileMasters.Problem, path: DiskPath) {
        switch problem {
        case .damaged:
            self.init(
                .damaged, during: "opening, because its sealed header is damaged,", path: path)
        case .missing(let version):
            self.init(
                .sealed, during: "opening, because its master key was not given,", path: path,
                code: Int32(bitPattern: version))
        case .other(let version):
            self.init(
                .sealed, during: "opening, because its master key is another one,", path: path,
                code: Int32(bitPattern: version))
        case .clear:
            self.init(.sealed, during: "opening, because it is not sealed,", path: path)
        }
    }
}
