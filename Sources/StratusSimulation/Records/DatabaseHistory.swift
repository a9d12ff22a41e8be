import StratusModel

/// Which zones a database had, at every turn of its feed.
struct DatabaseHistory {
    struct State {
        var turn: UInt64
        var zones: [String: ZoneIncarnation] = [:]
        /// How many zones were deleted, and how often everything was, until then.
        var deletionCount = 0
        var erasureCount = 0
    }

    private(set) var turn: UInt64 = 0
    private var turnZone = ""
    /// One for each turn that began with other zones than the one before it.
    private var states = [State(turn: 0)]

    var last: State { self.states[self.states.count - 1] }

    /// Records of a zone have changed.
    mutating func changed(_ zone: String) {
        if zone == self.turnZone { return }
        self.turn += 1
        self.turnZone = zone
    }

    mutating func made(_ zone: String, _ incarnation: ZoneIncarnation) {
        self.advance(to: zone) { $0.zones[zone] = incarnation }
    }

    mutating func deleted(_ zone: String) {
        self.advance(to: zone) {
            $0.zones[zone] = nil
            $0.deletionCount += 1
        }
    }

    mutating func erased() {
        self.advance(to: "") {
            $0.zones = [:]
            $0.erasureCount += 1
        }
    }

    private mutating func advance(to zone: String, _ change: (inout State) -> Void) {
        self.turn += 1
        self.turnZone = zone
        var state = self.last
        state.turn = self.turn
        change(&state)
        self.states.append(state)
    }

    /// The state as of a turn; nil if that has not come yet.
    func state(at turn: UInt64) -> State? {
        if turn > self.turn { return nil }
        return self.states.last { $0.turn <= turn }
    }

    /// Whether it had no zones at some time from `turn` on.
    func wasEmpty(since turn: UInt64) -> Bool {
        if self.state(at: turn)?.zones.isEmpty == true { return true }
        return self.states.contains { $0.turn >= turn && $0.zones.isEmpty }
    }
}
