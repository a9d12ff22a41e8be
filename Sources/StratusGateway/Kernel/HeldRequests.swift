package import StratusModel
package import StratusRuntime

/// The requests that a node holds: polls, waits and live streams. Every gateway of a node shares
/// them: what one that goes away still holds is woken through the one that follows it.
package struct HeldRequests: Sendable {
    let seats = PollSeats()
    /// Polls, and waits for a change.
    let waits = HeldPlaces()
    /// Live streams.
    let streams = HeldPlaces()
    /// Polls of unknown tokens. They are strangers', and must not take the places of those who are
    /// known.
    let strangers = HeldPlaces()
    package init() {}

    package func observe(_ observer: any PollObserver) { self.seats.observe(observer) }

    /// The databases that polls of this node wait for, by their names among nodes.
    package var watched: [UInt64] { self.seats.watched }

    /// A database has changed by way of another node.
    package func stirred(_ database: UInt64, at now: MonotonicTime) {
        self.seats.stirred(database, at: now)
    }

    /// The number of those that have a seat.
    package var count: Int { self.seats.count }

    package var figures: [PlaceFigures] {
        [("wait", self.waits), ("stream", self.streams), ("stranger", self.strangers)].map {
            kind, places in
            PlaceFigures(kind: kind) {
                places.size
            } endedCount: {
                places.endedCount
            }
        }
    }
}
