import StratusModel

extension MixRecipe {
    /// The log lets go of everything at once: whoever is behind gets a snapshot.
    static let snapshots = MixRecipe { options, draw in
        options.faults.formUnion([.partition, .pause, .duplication])
        options.trailingEntryCount = 0
        options.checkpointInterval = draw.milliseconds(5, 20)
        options.copiesComeLate = true
        options.snapshotFrameSize = ByteCount([256, 65_536, 65_536][draw(0...2)])
        options.faultInterval = draw.milliseconds(100, 300)
    }
}
