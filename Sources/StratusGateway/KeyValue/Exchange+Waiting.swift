import StratusHTTP
import StratusIdentity
import StratusModel
import StratusRecords
import StratusRuntime
import StratusSealing

/// What the services of reserved zones have in common: tokens, and waiting for a change.
extension Exchange {
    /// Whose place a wait takes.
    private var placeHolder: PlaceHolder {
        PlaceHolder(self.route.container, "\(self.route.tenant) \(self.sender.name)")
    }

    /// Nil where the token is of another store: then nothing is known of this one.
    func position(_ token: String, at place: FeedPlace) throws(InputRefusal) -> FeedPosition? {
        do throws(InputRefusal) {
            return try FeedToken(.zone, text: token, at: place, openedWith: self.cipher)
                .feedPosition
        } catch .unknownTokenType {
            return nil
        }
    }

    /// Answers with what `look` finds, once it finds something. It looks for as long as the client
    /// wants to wait, and then answers with `before`; so does one whose place goes to another. Of two
    /// waits for one name the newer one ends the older one.
    ///
    /// - Parameters:
    ///   - look: runs in a child task, so that a request that waits takes little memory.
    ///   - answer: what the client gets.
    func later<Found: Sendable>(
        _ wait: Duration, for name: String, after before: Found, at place: FeedPlace,
        _ look: @escaping @Sendable (MonotonicTime) async throws -> Found?,
        answer: @escaping @Sendable (Found) throws -> GatewayAnswer
    ) -> GatewayAnswer {
        let end = self.kernel.world.now + wait
        let circumstances = place.circumstances(0x22, Bytes(name.utf8))
        let seatName = self.kernel.tokens.identity(of: circumstances)
        return .later { [self] in
            let kernel = self.kernel
            guard let seat = await kernel.seats.take(Bytes(seatName.uuid.utf8)) else {
                return try answer(before)
            }
            let waiting: HeldPlace
            do throws(Places.Refusal) {
                waiting = try kernel.held.waits.enter(
                    self.placeHolder, within: kernel.settings.waitBounds, seat)
            } catch {
                throw InputRefusal.noRoomToWait
            }
            // What the answer itself takes is counted elsewhere.
            defer { waiting.leave() }
            seat.watch([self.holder.home])
            while !Task.isCancelled, !seat.isTold, kernel.world.now < end {
                let found = await inChildTask {
                    defer { self.turn.leave() }
                    // A partition that is away is asked again.
                    return try? await look(kernel.world.now + .seconds(5))
                }
                if let found {
                    // Whoever has waited may have been signed out meanwhile.
                    try await self.judgeAgain()
                    return try answer(found)
                }
                let interval = PollService.interval(watchCount: kernel.seats.watchCount)
                await seat.wait(for: min(interval, end - kernel.world.now))
            }
            return try answer(before)
        }
    }
}
