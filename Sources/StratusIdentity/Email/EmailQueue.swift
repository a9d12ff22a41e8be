package import StratusModel

/// The messages that wait for the e-mail server, and when each is tried again. Pure.
package struct EmailQueue<Message: Sendable>: Sendable {
    package struct Item: Sendable {
        package var message: Message
        /// How often it was tried.
        var attemptCount = 0
        var due: MonotonicTime
    }

    package enum Next: Sendable {
        case send(Item)
        case wait(until: MonotonicTime)
        case nothing
    }

    package static var countMax: Int { 1_000 }
    /// The pauses between two attempts. After the last one the message is given up: whoever waits
    /// for it has asked again by then.
    package static var pauses: [Duration] {
        [.seconds(5), .seconds(30), .seconds(120), .seconds(600)]
    }

    /// How long a new message may rest. What it costs the node to make and send one then falls on
    /// no particular request: nobody learns from the time of the next one whether there is an
    /// account.
    package static var restMax: Duration { .seconds(1) }

    private var items: [Item] = []

    package init() {}

    package var count: Int { self.items.count }

    /// - Parameter number: drawn; decides how long the message rests.
    /// - Returns: false: too many wait.
    package mutating func add(_ message: Message, at now: MonotonicTime, drawn number: UInt64)
        -> Bool
    {
        guard self.items.count < Self.countMax else { return false }
        let milliseconds = UInt64(Self.restMax.clampedNanoseconds / 1_000_000)
        let rest = Duration.milliseconds(Int64(number % milliseconds))
        self.items.append(Item(message: message, due: now + rest))
        return true
    }

    /// The message that has waited longest of those that are due. It is the caller's until
    /// ``put(back:at:)``.
    package mutating func next(at now: MonotonicTime) -> Next {
        guard let first = self.items.indices.min(by: { self.items[$0].due < self.items[$1].due })
        else { return .nothing }
        let due = self.items[first].due
        guard due <= now else { return .wait(until: due) }
        return .send(self.items.remove(at: first))
    }

    /// After an attempt that may go better later.
    ///
    /// - Returns: false: it was tried often enough.
    package mutating func put(back item: Item, at now: MonotonicTime) -> Bool {
        guard item.attemptCount < Self.pauses.count, self.items.count < Self.countMax else {
            return false
        }
        var item = item
        item.due = now + Self.pauses[item.attemptCount]
        item.attemptCount += 1
        self.items.append(item)
        return true
    }
}
