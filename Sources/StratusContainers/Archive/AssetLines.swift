import StratusAdminModel
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
                lines += AssetLine { $0.isDone = true }.line
                break
            }
            switch piece {
            case .files(let files): for file in files { lines += Self.line(file) }
            case .faults(let faults): for fault in faults { lines += Self.line(fault) }
            case .failing(let database, let reason):
                var line = AssetLine(in: database)
                line.failing = reason
                lines += line.line
            }
        }
        self.state.withLock { [walk, isDone] in $0 = (walk, isDone) }
        return lines
    }

    private static func line(_ file: LostFile) -> Bytes {
        var line = AssetLine(in: file.database)
        line.size = Int64(clamping: file.size)
        line.fileChecksum = file.fileChecksum
        line.zone = file.holder?.zone
        line.recordName = file.holder?.record
        return line.line
    }

    private static func line(_ fault: AssetRowFault) -> Bytes {
        var line = AssetLine(in: fault.database)
        line.asset = String(fault.asset.raw, radix: 16)
        line.fault = fault.kind.text
        line.zone = fault.zone
        line.recordName = fault.record
        return line.line
    }
}

extension AssetLine {
    fileprivate init(in database: DatabaseID?) {
        self.init()
        self.container = database?.container.container
        self.environment = database?.container.environment.name
        self.database = database?.scope.name
        self.owner = database?.owner
    }
}
