import StratusModel

extension MixRecipe {
    /// Leaders are cut off with more than the others commit meanwhile, and get a snapshot for
    /// it.
    static let strandedTails = MixRecipe { options, draw in
        options.faults = [.partition, .oneWayCut, .pause, .bridge]
        if draw(0...1) == 0 { options.faults.formUnion([.processCrash, .longDelay]) }
        options.nodeCount = [3, 5][draw(0...1)]
        options.voterCount = options.nodeCount
        options.clientCount = 8
        options.registerCount = 2
        options.thinkTimeMax = draw.milliseconds(2, 20)
        options.aimsAtLeaders = true
        options.trailingEntryCount = 0
        options.checkpointInterval = draw.milliseconds(5, 20)
        options.snapshotFrameSize = 65_536
        options.faultInterval = draw.milliseconds(300, 900)
    }
}
