/// A value with an encoding that leaves the process: for a disk, or for another node.
///
/// Every type with an `encoded()` or `encode(…)` in the modules that write to disks and peers
/// declares one of these two; `LevelTests` in `HouseTests` reads the sources and fails for one that
/// does not.
package protocol Levelled {
    /// The lowest level whose builds read what the value's encoding writes.
    var level: FeatureLevel { get }
}

/// A ``Levelled`` type of which every value needs the same level.
package protocol FixedLevel: Levelled {
    static var level: FeatureLevel { get }
}

extension FixedLevel {
    package var level: FeatureLevel { Self.level }
}
