import StratusCoding
package import StratusModel

// The file KEYS in a data directory, version 1
//
// | bytes  | what                                       |
// | ------ | ------------------------------------------ |
// | 8      | "STRATUSK"                                 |
// | 1      | version, 1                                 |
// | varint | master keys; then of each, by version      |
// | 4      | its version                                |
// | 8      | its check value                            |
// | 4      | CRC-32C of the bytes before                |

/// The check values of the master keys that a node has been started with.
///
/// A node that is given another key under a number it knows would make keys that no other node can
/// open, and could open none of those that are there. It does not start.
package enum MasterKeyFile {
    package enum Refusal: Error, Sendable, Equatable, CustomStringConvertible {
        case otherKey(version: UInt32)
        /// The node was started with it before, and is not given it now.
        case missing(version: UInt32)
        case unreadable(String)

        package var description: String {
            switch self {
            case .otherKey(let version):
                "master key \(version) is not the one that this data directory was used with: "
                    + (version == 0
                        ? "restore 'token.key', or the cluster's secret, from a backup"
                        : "correct its file in 'keys.masterFiles'; if that version wraps nothing, "
                            + "start the node once with \(version) in 'keys.retiredMasters' and "
                            + "not in 'keys.masterFiles', and it forgets the key")
            case .missing(let version):
                "this data directory was used with master key \(version), which is not in "
                    + "'keys.masterFiles': add it, or, if 'stratusctl encryption-key list' showed "
                    + "that it wraps nothing, add \(version) to 'keys.retiredMasters'"
            case .unreadable(let why):
                "the file KEYS in the data directory cannot be read: \(why). It holds check values of the "
                    + "master keys alone. If 'keys.masterFiles' names the files that this node had, remove "
                    + "KEYS: the node makes it anew"
            }
        }
    }

    package static let path: DiskPath = "KEYS"
    private static let frame = FileFrame("STRATUSK")
    private static let sizeMax = 64 << 10

    /// Compares a master key with what was noted.
    package static func compare(_ version: UInt32, with check: Bytes, in files: any Files)
        throws(Refusal)
    {
        guard let before = try Self.known(in: files)[version] else { return }
        guard before == check else { throw .otherKey(version: version) }
    }

    /// Compares a master key with what was noted, and notes it if its version is new.
    package static func check(_ version: UInt32, is check: Bytes, in files: any Files)
        throws(Refusal)
    {
        var known = try Self.known(in: files)
        if let before = known[version] {
            guard before == check else { throw .otherKey(version: version) }
            return
        }
        known[version] = check
        try Self.write(known, in: files)
    }

    /// Forgets versions: another key may come under their numbers.
    package static func forget(_ versions: [UInt32], in files: any Files) throws(Refusal) {
        let known = try Self.known(in: files)
        let left = known.filter { !versions.contains($0.key) }
        if left.count < known.count { try Self.write(left, in: files) }
    }

    private static func known(in files: any Files) throws(Refusal) -> [UInt32: Bytes] {
        do {
            guard try files.exists(Self.path) else { return [:] }
            return try Self.decode(files.contents(of: Self.path, limit: Self.sizeMax))
        } catch { throw .unreadable("\(error)") }
    }

    private static func write(_ known: [UInt32: Bytes], in files: any Files) throws(Refusal) {
        do { try files.replace(Self.path, with: Self.encode(known)) } catch {
            throw .unreadable("\(error)")
        }
    }

    /// Looks whether every version that was noted is among those given, or retired.
    package static func require(_ given: [UInt32], retired: [UInt32], in files: any Files)
        throws(Refusal)
    {
        for version in try Self.known(in: files).keys.sorted()
        where !given.contains(version) && !retired.contains(version) {
            throw .missing(version: version)
        }
    }

    static func encode(_ keys: [UInt32: Bytes]) -> Bytes {
        Self.frame.encode { writer in
            writer.write(count: keys.count)
            for (version, check) in keys.sorted(by: { $0.key < $1.key }) {
                precondition(check.count == 8, "a check value has eight bytes")
                writer.write(fixed: version)
                writer.write(raw: check)
            }
        }
    }

    static func decode(_ bytes: Bytes) throws(DecodingError) -> [UInt32: Bytes] {
        try Self.frame.decode(bytes) { (reader, _) throws(DecodingError) in
            var keys: [UInt32: Bytes] = [:]
            for _ in 0..<(try reader.count(minimumSize: 12)) {
                let version = try reader.fixed32()
                keys[version] = try reader.raw(8)
            }
            return keys
        }
    }
}
