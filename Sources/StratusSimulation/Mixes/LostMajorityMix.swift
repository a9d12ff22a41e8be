extension MixRecipe {
    /// All nodes but one are lost for good when everything else is over, and the survivor is
    /// recovered.
    static let lostMajority = MixRecipe { options, draw in
        options.losesMajority = true
        options.isPlaced = true
        options.holdsRecords = true
        options.usesLinks = false
        options.levels = nil
        options.faults.formUnion([.processCrash, .powerLoss, .partition])
        options.faults.subtract([.membership, .fullDisk, .failedSync, .failedApply, .tinyLimits])
        options.nodeCount = [3, 4, 5][draw(0...2)]
        options.memberCountMax = options.nodeCount
        options.voterCount = 3
        options.partitionCount = [2, 4][draw(0...1)]
        options.bucketCount = draw(0...2) > 0 ? 4 : 0
        options.groupCount = options.partitionCount + 1
        options.clientCount = draw(2...4)
        options.registerCount = draw(1...3)
        options.thinkTimeMax = draw.milliseconds(5, 20)
        options.faultInterval = draw.milliseconds(150, 400)
        options.restartMax = draw.milliseconds(20, 200)
        options.trailingEntryCount = UInt64([0, 5, 50][draw(0...2)])
        options.checkpointInterval = draw.milliseconds(20, 200, 1_000)
        options.livenessTime = .seconds(240)
        options.safetyTime = .seconds(draw(2...4))
    }
}
