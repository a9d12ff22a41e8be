import StratusAdminModel
package import StratusIdentity
package import StratusModel
package import StratusPush

/// The sending of pushes as administrators see it. Assembled in StratusNode.
package protocol PushControl: Sendable {
    var keys: PushKeys { get }
    /// What this node sends now. Each node of a cluster sends for the partitions that it leads.
    func standing() async -> PushStanding
    /// What this node remembers of its recent pushes.
    func trace(_ ask: PushTrail.Ask) async -> [PushTrail.Entry]
    /// Sends a push to a device that nobody has, and says what the answer means: it proves the key,
    /// the team, the topic and the network.
    func check(
        _ key: PushKeys.APNsKey, topic: String, of container: ContainerReference,
        in environment: Environment
    ) async -> PushCheck
    /// The devices and poll tokens of a user.
    func devices(of user: String, in container: ContainerReference) async throws -> [PushDevice]
    /// Why a change would reach a user's devices, or would not.
    func explain(_ question: PushQuestion) async throws -> PushExplanation
    /// Sends a text to one device, past everything that waits, and says what came of it.
    /// - Parameter name: how the device's name begins, in hexadecimal digits; empty: the only one.
    func send(
        _ text: String, to name: String, of user: String, in container: ContainerReference
    ) async throws -> PushTrial
}

/// What an answer of APNs to a push for a device that nobody has says.
package struct PushCheck: Sendable, Equatable {
    package var isGood: Bool
    package var answer: String

    package init(isGood: Bool, answer: String) {
        self.isGood = isGood
        self.answer = answer
    }
}

/// What came of a push that an administrator sent.
package enum PushTrial: Sendable, Equatable {
    /// - device: its name. lane: where it was sent.
    case sent(device: Bytes, lane: String, isAccepted: Bool, answer: String)
    /// No device of a push provider has such a name.
    case unknown
    case ambiguous
    /// The device would be told nothing.
    case refused(why: String)
}

package struct PushStanding: Sendable, Equatable {
    package var activeCount: Int
    package var restingCount: Int
    package var lanes: [PushLaneStanding]

    package init(activeCount: Int, restingCount: Int, lanes: [PushLaneStanding]) {
        self.activeCount = activeCount
        self.restingCount = restingCount
        self.lanes = lanes
    }
}

/// The way to one provider at one moment.
package struct PushLaneStanding: Sendable, Equatable {
    package var name: String
    package var state: String
    package var waiting: Int
    package var underWay: Int
    package var answers: Int
    package var trouble: String?

    package init(
        name: String, state: String, waiting: Int, underWay: Int, answers: Int, trouble: String?
    ) {
        self.name = name
        self.state = state
        self.waiting = waiting
        self.underWay = underWay
        self.answers = answers
        self.trouble = trouble
    }
}
