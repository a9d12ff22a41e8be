extension MixRecipe {
    /// Groups are placed by the real table; nodes join, leave, die and are replaced.
    static let membership = MixRecipe { options, draw in
        options.isPlaced = true
        options.faults.insert(.membership)
        if draw(0...1) == 0 { options.faults.formUnion([.partition, .processCrash, .longDelay]) }
        options.nodeCount = [3, 3, 4, 5][draw(0...3)]
        // Replicas of a partition.
        options.voterCount = [3, 3, 3, 2, 5][draw(0...4)]
        options.partitionCount = [1, 2, 4, 8][draw(0...3)]
        options.groupCount = options.partitionCount + 1
        options.memberCountMax = [5, 5, 7][draw(0...2)]
        options.rackCount = [0, 0, 2, 3][draw(0...3)]
        options.holdTime = .milliseconds([500, 3_000][draw(0...1)])
        options.faultInterval = draw.milliseconds(30, 100, 300)
        options.trailingEntryCount = UInt64([0, 5, 50][draw(0...2)])
        options.registerCount = 1
        options.livenessTime = .seconds(240)
        options.safetyTime = .seconds(draw(6...15))
    }
}
