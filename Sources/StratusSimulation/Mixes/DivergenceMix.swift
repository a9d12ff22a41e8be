extension MixRecipe {
    /// Rows of a member that leads nothing rot, and nothing says so but the digests that
    /// replicas compare.
    static let divergence = MixRecipe { options, draw in
        options.lead(by: .catchingUp, seed: draw.seed)
        options.faults = [.duplication, .longDelay]
        options.rotsRows = true
        options.digestInterval = [8, 32, 64][draw(0...2)]
    }
}
