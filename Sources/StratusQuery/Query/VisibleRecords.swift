/// The records of one type that somebody may read.
package enum VisibleRecords: Sendable, Hashable {
    case all
    /// Those that this user created.
    case created(by: String)
    case none

    /// The bytes of a row that hold a record's type and creator, whatever their lengths: who may
    /// read it is judged by them.
    package static let headSizeMax = 1_024
}
