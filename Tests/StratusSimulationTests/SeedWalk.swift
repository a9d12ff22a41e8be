/// Runs seeds in their order until everything that must happen has happened: at least `count` of
/// them, and at most 80. What a seed draws changes with the program, what must happen does not.
///
/// - Parameter run: runs one seed, and says whether all of it has happened by now.
func walkSeeds(from first: UInt64 = 1, atLeast count: UInt64, _ run: (UInt64) -> Bool) {
    var seed = first
    var isComplete = false
    while seed < first + count || (!isComplete && seed < first + 80) {
        isComplete = run(seed)
        seed += 1
    }
}
