/// The records of one type that somebody may read.
package enum VisibleRecords: Sendable, Hashable {
    case all
    /// Those that this user created.
    case created(by: String)
    case none
}
