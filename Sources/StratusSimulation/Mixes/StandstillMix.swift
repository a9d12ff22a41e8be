extension MixRecipe {
    /// The disk of a member that leads nothing is full, or takes nothing, for minutes, while
    /// load goes on.
    static let standstill = MixRecipe { options, draw in
        options.lead(by: .catchingUp, seed: draw.seed)
        options.faults = [.slowDisk, .tinyLimits]
        // Much more than every bound comes by meanwhile.
        options.standstillTime = .seconds(600)
        options.standsStillFull = draw.seed % 2 == 0
        options.thinkTimeMax = .milliseconds(200)
        // Tiny chunks take long to bring what ten minutes have left behind.
        options.steadyTime = .seconds(90)
    }
}
