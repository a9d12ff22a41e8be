import StratusModel

extension MixRecipe {
    /// Records name files: nodes keep their copies, as members come and go and packs rot.
    static let assets = MixRecipe { options, draw in
        options.holdsAssets = true
        options.dropOtherClients()
        options.faults.formUnion([.processCrash, .powerLoss, .membership])
        options.faults.subtract([.lostRows, .rottenLog, .tinyLimits])
        options.nodeCount = [3, 4, 5][draw(0...2)]
        options.voterCount = 3
        options.memberSetCount = [0, 2, 3][draw(0...2)]
        options.groupCount = draw(1...2)
        options.assetWorkerCount = draw(1...3)
        options.rotsPacks = draw(0...1) == 0
        options.faultInterval = draw.milliseconds(150, 400, 900)
        options.restartMax = draw.milliseconds(20, 200, 600)
        options.trailingEntryCount = UInt64([0, 5, 50][draw(0...2)])
        options.checkpointInterval = draw.milliseconds(20, 200, 1_000)
        options.livenessTime = .seconds(120)
        options.safetyTime = .seconds(draw(6...12))
        // The worlds over clear files stay as they were.
        var seals = SeededGenerator(seed: draw.seed ^ 0x4D69_7865_7300_000A)
        options.sealsFiles = Bool.random(using: &seals)
    }
}
