import StratusModel

extension MixRecipe {
    /// Rows disappear and logs rot, on one node at a time.
    static let damage = MixRecipe { options, draw in
        options.faults.formUnion([.processCrash, .powerLoss, .partition, .lostRows, .rottenLog])
        options.faults.subtract([.membership, .failedSync, .fullDisk, .tinyLimits])
        options.nodeCount = [3, 3, 5][draw(0...2)]
        options.voterCount = [3, options.nodeCount][draw(0...1)]
        options.valueSizeMax = ByteCount([8, 2_048][draw(0...1)])
        options.trailingEntryCount = UInt64([0, 5, 50][draw(0...2)])
        options.checkpointInterval = draw.milliseconds(20, 200, 5_000)
        options.restartMax = draw.milliseconds(100, 1_000)
        options.faultInterval = draw.milliseconds(50, 150)
        options.clientCount = 8
    }
}
