import StratusHTTP
package import StratusModel
import StratusRecords
import StratusRuntime
import Synchronization

/// The walk as JSON lines: one for each file or fault, one for each partition that does not answer,
/// and a last one with `done`.
package final class AssetLines: ResponseBody {
    private static let quietPieceCountMax = 100

    private let state: Mutex<(walk: AssetWalk, isDone: Bool)>

    package init(_ walk: AssetWalk) { self.state = Mutex((walk, false)) }

    package func next() async throws -> Bytes? {
        // Asked for one piece at a time, so nobody else moves it meanwhile.
        var (walk, isDone) = self.state.withLock { $0 }
        if isDone { return nil }
        var lines = Bytes()
        // An empty piece would be the end, and most pieces have nothing to tell. An empty line shows
        // that the walk goes on.
        for number in 1...Self.quietPieceCountMax where lines.isEmpty {
            if number == Self.quietPieceCountMax { lines = [0x0A] }
            guard let piece = try await walk.next() else {
                isDone = true
                lines += JSONWriter.line { $0.member("done", true) }
                break
            }
            switch piece {
            case .files(let files): for file in files { lines += Self.line(file) }
            case .faults(let faults): for fault in faults { lines += Self.line(fault) }
            case .failing(let database, let reason):
                lines += JSONWriter.line {
                    Self.write(database, to: &$0)
                    $0.member("failing", reason)
                }
            }
        }
        self.state.withLock { [walk, isDone] in $0 = (walk, isDone) }
        return lines
    }

    private static func line(_ file: LostFile) -> Bytes {
        JSONWriter.line {
            Self.write(file.database, to: &$0)
            $0.member("size", Int64(clamping: file.size))
            $0.member("fileChecksum", file.fileChecksum)
            if let holder = file.holder {
                $0.member("zone", holder.zone)
                $0.member("recordName", holder.record)
            }
        }
    }

    private static func line(_ fault: AssetRowFault) -> Bytes {
        JSONWriter.line {
            if let database = fault.database { Self.write(database, to: &$0) }
            $0.member("asset", String(fault.asset.raw, radix: 16))
            $0.member("fault", fault.kind.text)
            if let zone = fault.zone { $0.member("zone", zone) }
            if let record = fault.record { $0.member("recordName", record) }
        }
    }

    private static func write(_ database: DatabaseID, to json: inout JSONWriter) {
        json.member("container", database.container.container)
        json.member("environment", database.container.environment.name)
        json.member("database", database.scope.name)
        json.member("owner", database.owner)
    }
}
