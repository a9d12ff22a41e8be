extension MixRecipe {
    /// The log's report of a write comes when another leader has already replaced it.
    static let lateReports = MixRecipe { options, draw in
        options.faults.formUnion([.transfer, .powerLoss, .bridge])
        options.faults.subtract([.fullDisk, .failedSync, .tinyLimits])
        options.clientCount = 8
        options.thinkTimeMax = draw.milliseconds(4, 20)
        options.aimsAtLeaders = true
        options.reportDelayMax = draw.milliseconds(200, 600, 1_500)
        options.faultInterval = draw.milliseconds(100, 300)
        // What is late says too much only while the disk is still busy with what came after it.
        options.syncMax = options.syncMin + draw.milliseconds(20, 200, 400)
    }
}
