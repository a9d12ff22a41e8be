import StratusAdminModel
import StratusHTTP
import StratusIdentity
package import StratusModel
package import StratusRuntime

/// The bytes of files that archives name.
package protocol ExportedFiles: Sendable {
    /// Brings the keys of tickets up to date.
    func keepUp() async throws
    /// A permission to read one file of an archive. It is sealed, and good for administrators only.
    func ticket(for asset: AssetID, in database: DatabaseID) -> String
    /// Begins to read a file, whose first bytes are there when this returns.
    ///
    /// - Throws: ``ExportedFileRefusal``, or a ``RouteError``.
    func open(_ ticket: String) async throws -> ExportedFile
}

/// A file that is being read.
package struct ExportedFile: Sendable {
    package var size: UInt64
    package var body: any ResponseBody
    /// The memory of the transfer, until the last byte has left.
    package var held: (any AnyObject & Sendable)?

    package init(size: UInt64, body: any ResponseBody, held: (any AnyObject & Sendable)? = nil) {
        self.size = size
        self.body = body
        self.held = held
    }
}

/// Why a file of an archive is not read.
package enum ExportedFileRefusal: Error, Sendable, Equatable {
    case unknownTicket
    case expiredTicket
    /// It has gone since the archive named it, or its key was destroyed with its database.
    case missing
    /// It is there, and its bytes are not.
    case lost(String)
    case later(String)
}

/// One mention of a file in an archive.
struct ArchivedFile: Sendable, Equatable {
    /// The field of the record.
    var field: String
    var asset: AssetID
    var checksum: String
    var size: Int64

    /// The file's name in a directory: 32 hexadecimal digits that no client has chosen.
    var name: String { Self.name(of: self.asset) }

    static func name(of asset: AssetID) -> String {
        Hexadecimal.text(withUnsafeBytes(of: asset.raw.bigEndian) { Bytes($0) })
    }

    /// The files of a record, in the order in which its fields have them.
    static func all(of record: Record) -> [ArchivedFile] {
        var files: [ArchivedFile] = []
        func add(_ field: String, _ reference: AssetReference) {
            guard let asset = reference.asset else { return }
            files.append(
                ArchivedFile(
                    field: field, asset: asset, checksum: reference.fileChecksum,
                    size: reference.size))
        }
        for field in record.fields {
            switch field.value {
            case .scalar(.asset(let reference)): add(field.name, reference)
            case .list(.asset, let elements):
                for case .asset(let reference) in elements { add(field.name, reference) }
            default: break
            }
        }
        return files
    }

    /// What `stratusctl` fetches the file by. It keeps the line to itself.
    func line(in database: DatabaseID, from files: any ExportedFiles) -> Bytes {
        FetchLine {
            $0.fetch.file = self.name
            $0.fetch.fileChecksum = self.checksum
            $0.fetch.size = self.size
            $0.fetch.ticket = files.ticket(for: self.asset, in: database)
        }.line
    }
}
