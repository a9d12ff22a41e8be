import StratusAdmin
import StratusModel
import StratusPush

extension PushSender {
    func trace(_ ask: PushTrail.Ask) -> [PushTrail.Entry] { self.trail.entries(ask) }

    func standings() -> [PushLaneStanding] {
        self.lanes.keys.sorted().compactMap { name in
            guard let lane = self.lanes[name] else { return nil }
            return PushLaneStanding(
                name: "\(name)", state: lane.machine.state.name,
                waiting: lane.machine.queueCount, underWay: lane.machine.flightCount,
                answers: lane.sentCount, trouble: lane.trouble)
        }
    }
}

extension PushAnswer {
    /// The answer in an administrator's words.
    var words: String {
        switch self.verdict {
        case .accepted?: "accepted"
        case .gone?: "gone: the provider says that the device is gone"
        case .unknownDevice?: "gone: the provider does not know the device"
        case .busy?: "again: the provider takes no more for this device now"
        case .dropped(let reason)?: "dropped: \(reason)"
        case nil:
            switch self.lane {
            case .tokenRefused(let reason):
                "again: the provider does not believe the key: \(reason)"
            case .unavailable: "again: the provider is not available"
            case .unanswered: "again: the connection ended without an answer"
            case .accepted, .final: "again"
            }
        }
    }
}
