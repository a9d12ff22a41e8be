extension MixRecipe {
    /// Voters come and go at random, as no controller would have it.
    static let configurations = MixRecipe { options, draw in
        options.faults.formUnion([.membership, .transfer])
        options.memberSetCount = draw(2...3)
        options.faultInterval = draw.milliseconds(30, 100, 300)
        options.nodeCount = draw(4...7)
    }
}
