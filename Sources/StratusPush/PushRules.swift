package import StratusModel

/// Rules that decide about one push beside its lane and its dispatcher.
package enum PushRules {
    /// A permission that was judged longer ago is judged again before the push leaves.
    package static let permissionLife = Duration.seconds(1)

    /// Whether the permission must be judged again now.
    package static func mustJudgeAgain(
        judgedAt: MonotonicTime, now: MonotonicTime, bugs: PlantedBugs = PlantedBugs()
    ) -> Bool {
        now - judgedAt > Self.permissionLife && !bugs.contains(.permissionOfTheMatch)
    }

    /// Whether a device that its provider calls gone has been registered since, and so stays.
    ///
    /// - Parameters:
    ///   - registered: when its row says that it was registered, milliseconds.
    ///   - sentFor: when it was registered by the row that the push was made of.
    ///   - moment: when the provider says that it was gone.
    package static func isRenewed(
        registered: Int64, sentFor: Int64, goneAt moment: Int64, bugs: PlantedBugs = PlantedBugs()
    ) -> Bool {
        (registered > sentFor || registered >= moment)
            && !bugs.contains(.goneDeviceRemovedThoughRenewed)
    }
}
