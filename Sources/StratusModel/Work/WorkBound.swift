/// The work after which something ends, in units of about 2 µs of one core. What has no bound is no
/// operation and no question.
package enum WorkBound: Sendable, Hashable {
    /// A question that reads single rows. An event loop may answer it.
    case point(Int)
    /// A question that is answered in one piece.
    case single(Int)
    /// A question that answers with what it has once its meter is spent: all of a meter, and a step
    /// of so many units with which it may be passed.
    case page(step: Int)
    /// An operation, which one entry carries out whole.
    case entry(Int)

    /// The work after which a question that comes in pages ends its page.
    package static let pageUnits = 10_000

    package var units: Int {
        switch self {
        case .point(let units), .single(let units), .entry(let units): units
        case .page(let step): Self.pageUnits + step
        }
    }

    /// The most that any of this kind may take.
    package var unitsMax: Int {
        switch self {
        case .point: 250
        case .single: 1_000
        case .page: Self.pageUnits + 5_000
        case .entry: 256_000
        }
    }
}
