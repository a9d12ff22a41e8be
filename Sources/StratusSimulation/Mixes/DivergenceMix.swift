extension MixRecipe {
    /// Rows of a member rot, of a leader too, and nothing says so but their sum: where it is not
    /// added up, the digests that replicas compare once the rows are written over.
    static let divergence = MixRecipe { options, draw in
        options.lead(by: .catchingUp, seed: draw.seed)
        options.faults = [.duplication, .longDelay]
        options.rotsRows = true
        options.digestInterval = [8, 32, 64][draw(0...2)]
        options.checksRows = draw(0...2) > 0
    }
}
