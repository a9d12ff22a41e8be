import StratusModel

/// How long what was proved of a caller stays true, unless something is withdrawn: until the oldest
/// answer that it was made from is too old to be believed.
struct CredentialProof {
    /// Nil: nothing was asked.
    private(set) var end: MonotonicTime?

    /// - Parameter lifetime: how long answers of this kind are believed.
    mutating func note(_ readAt: MonotonicTime, for lifetime: Duration) {
        self.end(at: readAt + lifetime)
    }

    mutating func end(at time: MonotonicTime) {
        self.end = self.end.map { min($0, time) } ?? time
    }
}
