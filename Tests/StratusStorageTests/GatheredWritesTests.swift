import StratusDoubles
import StratusModel
import StratusRows
import StratusSQLite
import StratusStorage
import Testing

/// The frames of a commit are written together.
@Suite struct GatheredWritesTests {
    /// `walBehindBarrier` breaks this: another connection finds a frame that is not in the file.
    @Test func `the frames of a commit are one write, and others see them after it`() throws {
        let files = SimulatedFiles(seed: 1)
        #if STRATUS_PLANTED
            let bugs = [PlantedBugs(), PlantedBugs([.walBehindBarrier])]
        #else
            let bugs = [PlantedBugs()]
        #endif
        for bugs in bugs {
            let system = FileSystem(files, bugs: bugs)
            let options = Connection.Options(synchronous: .normal, fileTag: 1)
            try RowDatabase.make("rows.db", in: system, fileTag: 1)
            let (file, other) = (
                try RowDatabase("rows.db", in: system, options),
                try RowDatabase("rows.db", in: system, options)
            )
            let rows = Rows(over: file)
            // The header of the WAL, which is synced.
            try rows.put(.record, [0], [0])
            try rows.commit()
            let count = files.operationCount
            for number in 1..<200 as Range<UInt8> {
                try rows.put(.record, [number], Bytes(repeating: number, count: 900))
            }
            try rows.commit()
            let writeCount = files.operationCount - count
            let found = try? Rows(over: other).row(.record, [199])
            if bugs.contains(.walBehindBarrier) {
                #expect(found == nil)
            } else {
                #expect(found?.count == 900 && writeCount < 10, "\(writeCount) operations")
            }
        }
    }
}
