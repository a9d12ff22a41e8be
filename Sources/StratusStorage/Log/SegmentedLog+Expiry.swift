import StratusModel

/// How a log lets go of all that it has written: after an erasure no segment from before may stay,
/// neither in use nor waiting for its next use.
extension SegmentedLog {
    /// From now on no segment that is there is used again, and the next batch begins another one.
    package func expire() {
        self.withSegments { $0.expire() }
    }

    /// Whether nothing from before the last ``expire()`` is left in the directory.
    package var hasExpired: Bool { self.withSegments { $0.hasExpired } }
}
