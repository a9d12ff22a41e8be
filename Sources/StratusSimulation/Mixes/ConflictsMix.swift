extension MixRecipe {
    /// Leaders are cut off with entries that nobody else has, and their successors follow each
    /// other.
    static let conflicts = MixRecipe { options, draw in
        options.faults.formUnion([.partition, .transfer])
        options.faults.subtract([.fullDisk, .failedSync])
        options.clientCount = 8
        options.faultInterval = draw.milliseconds(100, 300, 600)
        if draw(0...1) == 0 { options.faults.insert(.tinyLimits) }
    }
}
