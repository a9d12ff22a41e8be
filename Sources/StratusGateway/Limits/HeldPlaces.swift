import StratusRuntime
import Synchronization

/// The places of one kind that requests of this node hold while they wait. ``Places`` decides who
/// has one; whoever gives way is told by the seat that it waits in.
///
/// Shared by every gateway of a node. An answer that leaves holds no place any more.
final class HeldPlaces: Sendable {
    private struct State {
        var places = Places()
        /// Of each place, where its request waits.
        var seats: [UInt64: PollSeat] = [:]
        var endedCount: UInt64 = 0
    }

    private let state = Mutex(State())

    var size: Int { self.state.withLock { $0.places.size } }

    /// The places that gave way so far.
    var endedCount: UInt64 { self.state.withLock { $0.endedCount } }

    /// Takes a place in which `seat` waits, until it is left.
    func enter(
        _ holder: PlaceHolder, size: Int = 1, within bounds: PlaceBounds, _ seat: PollSeat
    ) throws(Places.Refusal) -> HeldPlace {
        let entrance = self.state.withLock {
            state -> Result<(UInt64, [PollSeat]), Places.Refusal> in
            do throws(Places.Refusal) {
                let entrance = try state.places.enter(holder, size: size, within: bounds)
                state.seats[entrance.number] = seat
                state.endedCount += UInt64(entrance.ended.count)
                let ended = entrance.ended.compactMap { state.seats.removeValue(forKey: $0) }
                return .success((entrance.number, ended))
            } catch {
                return .failure(error)
            }
        }
        let (number, ended) = try entrance.get()
        for seat in ended { seat.end() }
        return HeldPlace(number, of: self)
    }

    fileprivate func leave(_ number: UInt64) {
        // Let go of outside: a seat tells who comes next.
        _ = self.state.withLock { state in
            state.places.leave(number)
            return state.seats.removeValue(forKey: number)
        }
    }
}

/// One place among those of its kind. It is left with the last reference to it.
final class HeldPlace: Sendable {
    private let number: UInt64
    private let owner: HeldPlaces

    fileprivate init(_ number: UInt64, of owner: HeldPlaces) {
        self.number = number
        self.owner = owner
    }

    /// The answer leaves, or nobody waits any more.
    func leave() { self.owner.leave(self.number) }

    deinit { self.leave() }
}
