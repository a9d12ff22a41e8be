extension MixRecipe {
    /// Clients subscribe, change records and wait; leaders send to simulated providers, and
    /// polls are held.
    static let push = MixRecipe { options, draw in
        options.holdsPushes = true
        options.dropOtherClients()
        options.faults.formUnion([.processCrash, .partition])
        if draw(0...1) == 0 { options.faults.formUnion([.powerLoss, .membership, .transfer]) }
        options.faults.subtract([.lostRows, .rottenLog, .tinyLimits, .fullDisk, .failedSync])
        options.nodeCount = [3, 3, 4][draw(0...2)]
        options.voterCount = 3
        options.groupCount = draw(1...2)
        options.pushActiveCountMax = [2, 3, 8][draw(0...2)]
        options.pushRestingCountMax = [1, 4, 64][draw(0...2)]
        options.pushAskCountMax = [1, 2, 4][draw(0...2)]
        options.opensTwoWindows = draw.seed % 8 == 5
        options.faultInterval = draw.milliseconds(300, 900, 2_000)
        options.restartMax = draw.milliseconds(20, 200, 600)
        options.trailingEntryCount = UInt64([0, 5, 50][draw(0...2)])
        options.checkpointInterval = draw.milliseconds(20, 200, 1_000)
        options.livenessTime = .seconds(120)
        options.safetyTime = .seconds(draw(5...9))
    }
}
