package import StratusModel
import StratusQuery

/// The names that documents may have, and when two names are one.
package enum DocumentNames {
    /// The container's root, and the folder in it that people see. Both are there without a row.
    package static let root = "root"
    package static let documents = "documents"
    /// The name of that folder.
    package static let documentsName = "Documents"
    package static let sizeMax = 255
    /// The depth of an item below the root.
    package static let depthMax = 64

    package static func isRoot(_ id: String) -> Bool { id == Self.root || id == Self.documents }

    /// 32 hexadecimal digits in lower case.
    package static func isID(_ id: String) -> Bool {
        id.utf8.count == 32
            && id.utf8.allSatisfy {
                (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0)
                    || (UInt8(ascii: "a")...UInt8(ascii: "f")).contains($0)
            }
    }

    /// 1 to 255 bytes without slashes and control characters, and neither `.` nor `..`.
    package static func isName(_ name: String) -> Bool {
        (1...Self.sizeMax).contains(name.utf8.count) && name != "." && name != ".."
            && name.utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7F && $0 != UInt8(ascii: "/") }
    }

    /// Names that end so stay on their device. Judged byte by byte, as all that is applied: what a
    /// character is depends on the build's library.
    package static func staysLocal(_ name: String) -> Bool {
        name.utf8.suffix(7).map { $0 | 0x20 } == Array(".nosync".utf8)
    }

    /// Two names are one if this is equal: the frozen tables of text take the case away.
    package static func folded(_ name: String) -> Bytes { TextFolding.caseFolded(name) }

    /// The name with a number before its extension, as ` 2`.
    static func numbered(_ name: String, _ number: Int, isFile: Bool) -> String {
        let bytes = Bytes(name.utf8)
        guard isFile, let dot = bytes.lastIndex(of: UInt8(ascii: ".")), dot > 0 else {
            return "\(name) \(number)"
        }
        let numbered = bytes[..<dot] + Array(" \(number)".utf8) + bytes[dot...]
        return String(decoding: numbered, as: UTF8.self)
    }

    // MARK: Rows

    /// The row that says which item has a name in a folder: 4 zone, folder, 0x00, 0xD0, folded
    /// name. Its content is 1 byte kind and the item's ID.
    static func key(_ zone: ZoneNumber, folder: String, folded: Bytes) -> Bytes {
        Self.keys(zone, folder: folder) + folded
    }

    static func keys(_ zone: ZoneNumber, folder: String) -> Bytes {
        Keys.referencePrefix(zone, target: folder) + [0xD0]
    }

    /// The row of a record, if it is an item's.
    static func row(of record: Record, in zone: ZoneNumber) -> (key: Bytes, row: Bytes)? {
        guard record.type == DocumentItem.type, let item = try? DocumentItem(record) else {
            return nil
        }
        return (
            Self.key(zone, folder: item.folder, folded: Self.folded(item.name)),
            [item.kind.rawValue] + Bytes(item.id.utf8)
        )
    }
}
