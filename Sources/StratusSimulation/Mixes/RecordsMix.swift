import StratusModel

extension MixRecipe {
    /// Groups hold records, by the real state, and clients do with them what clients of records
    /// do.
    static let records = MixRecipe { options, draw in
        options.holdsRecords = true
        options.clientCount = draw(4...8)
        options.registerCount = draw(2...4)
        options.thinkTimeMax = draw.milliseconds(5, 20)
        // Whoever is down most of the time decides little.
        options.restartMax = draw.milliseconds(20, 200, 600)
        options.faultInterval = draw.milliseconds(150, 400, 1_000)
        options.trailingEntryCount = UInt64([0, 5, 50][draw(0...2)])
        options.checkpointInterval = draw.milliseconds(20, 200, 1_000)
        options.valueSizeMax = ByteCount([8, 64, 2_048][draw(0...2)])
        if draw(0...1) == 0 {
            options.bucketCount = 4
            options.groupCount = [3, 3, 5][draw(0...2)]
        }
    }
}
