import StratusModel

extension MixRecipe {
    /// Batches of many sectors in tiny segments, and the power goes while they are written.
    static let logs = MixRecipe { options, draw in
        options.faults = [.powerLoss, .processCrash, .crashInCall]
        if draw(0...1) == 0 { options.faults.formUnion([.failedSync, .slowDisk]) }
        options.nodeCount = [1, 1, 1, 3][draw(0...3)]
        options.voterCount = options.nodeCount
        options.aimsAtSyncs = true
        options.segmentSize = .kibibytes([16, 32][draw(0...1)])
        options.valueSizeMax = ByteCount(2_048)
        options.longValueOneIn = 1
        options.thinkTimeMax = .milliseconds(4)
        options.spareSegmentMax = draw(0...1)
        options.trailingEntryCount = 0
        options.checkpointInterval = draw.milliseconds(5, 20)
        options.faultInterval = draw.milliseconds(30, 100)
        options.restartMax = draw.milliseconds(5, 20)
        options.syncMax = options.syncMin + draw.milliseconds(5, 20)
        options.safetyTime = .seconds(draw(3...5))
        options.clientCount = 8
    }
}
