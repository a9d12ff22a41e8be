/// The work after which something ends, in units of about 2 µs of one core. What has no bound is no
/// operation and no question.
package enum WorkBound: Sendable, Hashable {
    /// A question that reads single rows. An event loop may answer it.
    case point(Int)
    /// A question that is answered in one piece.
    case single(Int)
    /// An operation, which one entry carries out whole.
    case entry(Int)

    package var units: Int {
        switch self {
        case .point(let units), .single(let units), .entry(let units): units
        }
    }

    /// The most that any of this kind may take.
    package var unitsMax: Int {
        switch self {
        case .point: 250
        case .single: 1_000
        case .entry: 256_000
        }
    }
}
