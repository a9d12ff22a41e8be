import StratusModel

extension MixRecipe {
    /// A member that has lost its rows comes back while load goes on and nothing else happens:
    /// it must catch up.
    static let catchingUp = MixRecipe { options, draw in
        options.faults = [.lostRows, .slowDisk]
        if draw(0...1) == 0 { options.faults.formUnion([.processCrash, .tinyLimits]) }
        options.groupCount = 1
        options.nodeCount = 3
        options.voterCount = 3
        options.clientCount = 4
        options.registerCount = 8
        options.readShare = 1
        // All of them write: a draw.seed may have led by the mix `reads` before.
        options.readerCount = 0
        options.valueSizeMax = ByteCount([512, 2_048][draw(0...1)])
        options.longValueOneIn = 1
        options.thinkTimeMax = draw.milliseconds(10, 20)
        options.delayMin = .microseconds(50)
        options.delayMax = .microseconds(200)
        options.syncMin = .microseconds(50)
        options.syncMax = .microseconds([200, 1_000][draw(0...1)])
        options.trailingEntryCount = 0
        options.checkpointInterval = draw.milliseconds(20, 50)
        options.segmentSize = .kibibytes([16, 32][draw(0...1)])
        options.snapshotFrameSize = ByteCount([256, 1_024][draw(0...1)])
        // The rows remember what thousands of requests were answered: some megabytes.
        options.snapshotRate = .kibibytes([512, 1_024][draw(0...1)])
        options.retainedSizeMax = .kibibytes(8_192)
        options.retainedLogSizeMax = .kibibytes(32_768)
        options.aimsAtLeaders = false
        options.faultInterval = draw.milliseconds(300, 900)
        options.restartMax = draw.milliseconds(20, 200)
        options.safetyTime = .seconds(draw(2...4))
        options.steadyTime = .seconds(30)
    }
}
