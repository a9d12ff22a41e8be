/// An entry that only a newer build can apply.
package struct NewerEntry: Sendable, Equatable, CustomStringConvertible {
    package var index: LogIndex
    /// The number that is not known here.
    package var what: String
    /// The level of the build that cannot apply it.
    package var build: FeatureLevel

    package init(index: LogIndex, what: String, build: FeatureLevel) {
        self.index = index
        self.what = what
        self.build = build
    }

    package var description: String {
        "it stopped before entry \(self.index), which a newer build wrote (\(self.what)): this build is of "
            + "feature level \(self.build); install the build that the other nodes run, and it goes on from "
            + "there"
    }
}
