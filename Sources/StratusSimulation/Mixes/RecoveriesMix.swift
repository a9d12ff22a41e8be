import StratusModel

extension MixRecipe {
    /// Processes end while they make durable what their predecessors left, or write a little
    /// later, with the power or without it; and the log has groups that are quiet for longer
    /// than its segments last.
    static let recoveries = MixRecipe { options, draw in
        // No more than that: a process that hardly lives leaves nothing to read back.
        options.faults = [.powerLoss, .processCrash]
        if draw(0...2) == 0 { options.faults.insert(.failedSync) }
        options.failedSyncOneIn = 100
        options.nodeCount = [1, 1, 3][draw(0...2)]
        options.voterCount = options.nodeCount
        options.groupCount = draw(4...8)
        options.aimsAtSyncs = true
        options.aimsAtStarts = true
        options.segmentSize = .kibibytes([16, 32][draw(0...1)])
        options.valueSizeMax = ByteCount([512, 2_048][draw(0...1)])
        options.longValueOneIn = 1
        options.clientCount = 8
        options.thinkTimeMax = draw.milliseconds(4, 20)
        options.patienceMilliseconds = 10...40
        options.spareSegmentMax = draw(0...1)
        options.trailingEntryCount = 0
        options.checkpointInterval = draw.milliseconds(5, 20)
        options.faultInterval = draw.milliseconds(60, 150)
        options.restartMax = draw.milliseconds(5, 20)
        options.syncMax = options.syncMin + draw.milliseconds(5, 20)
        options.safetyTime = .seconds(draw(3...5))
    }
}
