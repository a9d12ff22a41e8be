import StratusCluster
import StratusCoding
import StratusModel

/// The shape of the links and the connections below them in one run.
struct StreamShape {
    var tuning = PeerLinks.Tuning()
    /// The bytes a system keeps of a connection that are written and not known to have arrived.
    var kernelSize: Int
    var bytesPerMillisecond: Int64
    /// One in so many writes is the connection's last, in runs where connections break.
    var breakOneIn: UInt64
    /// A message that was handed over counts as dealt with so much later at most.
    var settleDelayMax: Int64

    init(_ options: SimulationOptions, bugs: PlantedBugs, _ random: inout SeededGenerator) {
        func draw<Value>(_ values: Value...) -> Value {
            values[Int.random(in: 0..<values.count, using: &random)]
        }
        self.kernelSize = draw(2_048, 16_384, 131_072)
        self.bytesPerMillisecond = draw(1_000, 10_000, 1_000_000)
        self.breakOneIn = draw(20, 200, 1_000, 4_000)
        self.settleDelayMax = draw(0, 0, 2_000_000, 20_000_000)
        let isTiny = draw(true, false, false)
        if isTiny || options.faults.contains(.tinyLimits) {
            let isLarge = options.snapshotFrameSize.raw > 4_096
            self.tuning.frames.frameSizeMax = isLarge ? draw(512, 4_096) : draw(16, 64, 512)
            self.tuning.frames.windowSize = draw(512, 2_048, 16_384)
            self.tuning.frames.queueSizeMax = draw(512, 4_096, 65_536)
            self.tuning.frames.queueCountMax = 4 * options.groupCount + draw(2, 8, 64)
            self.tuning.fillSizeMax = isLarge ? draw(1_024, 8_192) : draw(64, 512, 4_096)
        }
        // A lost packet of a handshake is sent again after up to 300 ms, several times in a row.
        self.tuning.handshakePatience = self.tuning.connectPatience
        self.tuning.bugs = bugs
    }
}
