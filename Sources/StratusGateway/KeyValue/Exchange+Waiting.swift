import StratusHTTP
import StratusIdentity
import StratusModel
import StratusRecords
import StratusRuntime
import StratusSealing

/// What the services of reserved zones have in common: tokens, and waiting for a change.
extension Exchange {
    /// Nil where the token is of another store: then nothing is known of this one.
    func position(_ token: String, at place: FeedPlace) throws(InputRefusal) -> FeedPosition? {
        do throws(InputRefusal) {
            return try FeedToken(.zone, text: token, at: place, openedWith: self.cipher)
                .feedPosition
        } catch .unknownTokenType {
            return nil
        }
    }

    /// Waits until `look` finds something, for as long as the client wants to. Of two waits for one
    /// name the newer one ends the older one.
    ///
    /// - Returns: what was found; `before` where nothing was.
    func waited<Found: Sendable>(
        _ wait: Duration, for name: String, after before: Found, at place: FeedPlace,
        _ look: (MonotonicTime) async throws -> Found?
    ) async throws -> Found {
        guard self.mayWait else { throw InputRefusal.noRoomToWait }
        let handler = self.handler
        let end = handler.world.now + wait
        let seatName = handler.tokens.identity(of: place.circumstances(0x22, Bytes(name.utf8)))
        self.turn.leave()
        guard let seat = await handler.seats.take(Bytes(seatName.uuid.utf8)) else { return before }
        seat.watch([self.homeDatabase])
        while !Task.isCancelled, !seat.isTold, handler.world.now < end {
            // A partition that is away is asked again.
            if let found = try? await look(handler.world.now + .seconds(5)) {
                // Whoever has waited may have been signed out meanwhile.
                try await self.judgeAgain()
                return found
            }
            let interval = PollService.interval(watchCount: handler.seats.watchCount)
            await seat.wait(for: min(interval, end - handler.world.now))
        }
        return before
    }
}
