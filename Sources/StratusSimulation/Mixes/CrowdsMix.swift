import StratusModel

extension MixRecipe {
    /// Many clients who hardly pause, and a fault now and then: as many operations as a core
    /// can simulate.
    static let crowds = MixRecipe { options, draw in
        options.faults.subtract([.tinyLimits, .fullDisk])
        options.clientCount = draw(24...96)
        // Twelve at one register, each with writes of unknown outcome, are too many to tell.
        options.registerCount = options.clientCount / 4 + draw(4...16)
        options.thinkTimeMax = draw.milliseconds(1, 4)
        options.delayMin = .microseconds(50)
        options.delayMax = .microseconds([200, 1_000][draw(0...1)])
        options.syncMax = options.syncMin + .microseconds([100, 1_000][draw(0...1)])
        options.segmentSize = .kibibytes([256, 1_024][draw(0...1)])
        options.trailingEntryCount = UInt64([50, 500][draw(0...1)])
        options.checkpointInterval = draw.milliseconds(100, 500)
        options.faultInterval = draw.milliseconds(500, 1_000, 2_000)
        options.restartMax = draw.milliseconds(20, 200)
        options.safetyTime = .seconds(draw(5...15))
    }
}
