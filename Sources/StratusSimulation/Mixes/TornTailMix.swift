extension MixRecipe {
    /// The end of one member's log rots while it is down, so that its start drops what it had
    /// acknowledged, and the only other holder ends as soon as it has said so.
    static let tornTail = MixRecipe { options, draw in
        options.lead(by: .catchingUp, seed: draw.seed)
        options.faults = [.duplication, .longDelay]
        options.tearsTail = true
        // An exchange of nodes would end processes that must last.
        options.levels = nil
    }
}
