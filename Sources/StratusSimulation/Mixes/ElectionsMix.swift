extension MixRecipe {
    /// Candidates meet in one term, on disks that are slower than their patience, and crash.
    static let elections = MixRecipe { options, draw in
        options.isStormy = true
        options.faults.formUnion([.powerLoss, .processCrash, .slowDisk])
        options.faultInterval = draw.milliseconds(10, 20, 40)
        options.restartMax = draw.milliseconds(5, 20, 60)
        options.syncMax = options.syncMin + draw.milliseconds(5, 20, 60)
        options.safetyTime = .seconds(draw(3...6))
    }
}
