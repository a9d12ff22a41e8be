/// The disk. Synchronous: called only from a thread that may block.
///
/// SQLite's file system layer and the shared log both stand on it. Paths are relative to the data
/// directory of the node, `/` between components, no `.` or `..`.
package protocol Files: AnyObject, Sendable {
    /// Opens a file for reading and writing. With `create`, an absent file is made (empty); its
    /// name survives a power cut only after ``syncDirectory(_:)`` of its parent.
    func open(_ path: DiskPath, create: Bool) throws(DiskError) -> any File
    /// Atomically replaces `to`. Durable after ``syncDirectory(_:)`` of the parent.
    func rename(_ from: DiskPath, to: DiskPath) throws(DiskError)
    func remove(_ path: DiskPath) throws(DiskError)
    func exists(_ path: DiskPath) throws(DiskError) -> Bool
    /// Makes a directory and its parents; existing ones are no error.
    func makeDirectory(_ path: DiskPath) throws(DiskError)
    func syncDirectory(_ path: DiskPath) throws(DiskError)
    /// The names in a directory, sorted by their bytes.
    func list(_ path: DiskPath) throws(DiskError) -> [DiskPath]
    /// Takes `path` (created if absent) for this process alone, until the last reference to the
    /// result goes or the process ends. Throws `.denied` if another process, or another lock of
    /// this one, holds it.
    func lock(_ path: DiskPath) throws(DiskError) -> any DiskLock
    /// How full the disk is that the directory lies on.
    func space() throws(DiskError) -> DiskSpace
}

/// Bytes that this process may still write to a disk, and bytes there are.
package struct DiskSpace: Sendable, Equatable {
    package var free: UInt64
    package var all: UInt64

    package init(free: UInt64, all: UInt64) {
        self.free = free
        self.all = all
    }
}

/// Held while its owner lives: see ``Files/lock(_:)``.
package protocol DiskLock: AnyObject, Sendable {}

/// One open file. Closed when the last reference goes.
package protocol File: AnyObject {
    /// Reads up to the buffer's size at `offset`; fewer bytes mean the end of the file.
    func read(_ into: UnsafeMutableRawBufferPointer, at offset: UInt64) throws(DiskError) -> Int
    /// Writes all of the buffer at `offset`, growing the file if needed. Not durable before
    /// ``sync()``.
    func write(_ from: UnsafeRawBufferPointer, at offset: UInt64) throws(DiskError)
    /// Returns when everything written before is on stable storage. One failure is final for this
    /// file: the kernel may have dropped the pages, so a second success would prove nothing.
    func sync() throws(DiskError)
    func resize(_ length: UInt64) throws(DiskError)
    var length: UInt64 { get throws(DiskError) }
}

/// A path inside a node's data directory.
package struct DiskPath: Sendable, Hashable, Comparable, CustomStringConvertible,
    ExpressibleByStringLiteral
{
    package var raw: String
    package init(_ raw: String) { self.raw = raw }
    package init(stringLiteral value: String) { self.raw = value }
    /// The data directory itself.
    package static let root = DiskPath("")

    package func appending(_ component: String) -> DiskPath {
        self.raw.isEmpty ? DiskPath(component) : DiskPath(self.raw + "/" + component)
    }

    /// The directory that holds this path.
    package var parent: DiskPath {
        guard let slash = self.raw.utf8.lastIndex(of: UInt8(ascii: "/")) else { return .root }
        return DiskPath(String(self.raw[..<slash]))
    }

    package static func < (one: Self, other: Self) -> Bool {
        one.raw.utf8.lexicographicallyPrecedes(other.raw.utf8)
    }
    package var description: String { self.raw }
}

/// An operation that the disk refused.
package struct DiskError: Error, Sendable, Equatable, CustomStringConvertible {
    package enum Kind: Sendable, Equatable {
        case notFound, full, denied, io, tooManyOpen
        /// The file refused to sync before; nothing written to it can be trusted to last.
        case syncFailed
        /// The header that holds a sealed file's key is damaged: nothing of the file can be read.
        case damaged
        /// The file is sealed under a key that this process was not given, or it is not sealed
        /// where it has to be.
        case sealed
    }

    package let kind: Kind
    package let operation: StaticString
    package let path: DiskPath
    /// The system's error number, 0 where there is none.
    package let code: Int32

    package init(_ kind: Kind, during operation: StaticString, path: DiskPath, code: Int32 = 0) {
        self.kind = kind
        self.operation = operation
        self.path = path
        self.code = code
    }

    package static func == (one: Self, other: Self) -> Bool {
        one.kind == other.kind && one.path == other.path && one.code == other.code
    }

    package var description: String {
        "disk \(self.kind) (\(self.code)) in \(self.operation) of '\(self.path)'"
    }
}
