import StratusModel

extension MixRecipe {
    /// Nodes talk by the real links, over connections that stall, break and are left half open.
    static let links = MixRecipe { options, draw in
        options.usesLinks = true
        options.faults.formUnion([.loss, .partition, .oneWayCut])
        options.faults.subtract([.fullDisk, .failedSync, .failedApply])
        if draw(0...1) == 0 { options.faults.formUnion([.powerLoss, .pause, .flappingLink]) }
        options.nodeCount = [2, 3, 3, 4, 5][draw(0...4)]
        options.voterCount = min(options.nodeCount, 3)
        options.valueSizeMax = ByteCount([8, 512, 4_096][draw(0...2)])
        options.thinkTimeMax = draw.milliseconds(2, 5, 20)
        options.trailingEntryCount = UInt64([0, 5, 50][draw(0...2)])
        options.checkpointInterval = draw.milliseconds(20, 200)
        options.snapshotFrameSize = ByteCount([512, 65_536][draw(0...1)])
        options.faultInterval = draw.milliseconds(300, 900, 2_000)
        options.restartMax = draw.milliseconds(20, 200, 600)
    }
}
