import StratusModel

extension MixRecipe {
    /// One node alone is aimed at, life after life, while its log is written: at the first
    /// batch of a segment, of which a few entries fill one, and inside the next start, with the
    /// power.
    static let tears = MixRecipe { options, draw in
        options.faults = draw(0...1) == 0 ? [] : [.crashInCall]
        options.nodeCount = [1, 3, 3][draw(0...2)]
        options.voterCount = options.nodeCount
        options.groupCount = [1, 4, 8][draw(0...2)]
        options.aimsAtStarts = true
        options.aimedNodeCount = 1
        options.aimsAtHeads = true
        options.isBackSoon = true
        options.makesSparesAhead = draw(0...1) == 0
        options.spareSegmentMax = draw(0...1)
        options.segmentSize = .kibibytes([4, 8][draw(0...1)])
        options.valueSizeMax = ByteCount([64, 512][draw(0...1)])
        options.longValueOneIn = 1
        options.clientCount = draw(1...4)
        options.thinkTimeMax = draw.milliseconds(4, 20)
        options.patienceMilliseconds = 10...40
        options.trailingEntryCount = 0
        options.checkpointInterval = draw.milliseconds(5, 20)
        options.faultInterval = draw.milliseconds(60, 150)
        options.restartMax = draw.milliseconds(5, 20)
        options.syncMax = options.syncMin + draw.milliseconds(2, 10)
        options.safetyTime = .seconds(draw(3...5))
    }
}
