/// Decides whether a history of one register can be explained by one order of its operations, each at
/// some moment between its call and its return.
///
/// After Wing and Gong ("Testing and verifying concurrent objects", 1993) with Lowe's memory of
/// configurations already seen ("Testing for linearizability", 2017). Registers are independent, so a
/// history of many is checked one register at a time (Herlihy and Wing's locality).
package struct LinearizabilityChecker {
    package enum Operation: Sendable, Equatable {
        /// Returned this value; nil is an absent register.
        case read(Int?)
        case write(Int?)
        /// Took effect: the register held `expected`.
        case compareAndSet(expected: Int?, value: Int?)
        /// Said that the register did not hold `expected`.
        case failedCompareAndSet(expected: Int?)
    }

    package struct Event: Sendable, Equatable {
        package var operation: Operation
        package var calledAt: Int64
        /// Nil when nobody knows whether it happened: it may have, at any time after the call.
        package var returnedAt: Int64?

        package init(_ operation: Operation, calledAt: Int64, returnedAt: Int64?) {
            self.operation = operation
            self.calledAt = calledAt
            self.returnedAt = returnedAt
        }
    }

    package enum Verdict: Sendable, Equatable {
        case linearizable
        /// The longest explained prefix ends before this event.
        case violated(Event)
        /// Too many configurations to tell.
        case undecided
    }

    /// A configuration: which operations are placed, and what the register then holds.
    private struct Configuration: Hashable {
        var placed: [UInt64]
        var value: Int?
    }

    /// Calls and returns in the order of time, as a list from which placed operations are lifted out.
    private struct Moments {
        var next: [Int]
        var previous: [Int]
        let isReturn: [Bool]
        let operation: [Int]
        let returnMoment: [Int]

        init(_ events: [Event]) {
            var moments: [(time: Int64, isReturn: Bool, operation: Int)] = []
            for (number, event) in events.enumerated() {
                moments.append((event.calledAt, false, number))
                moments.append((event.returnedAt ?? .max, true, number))
            }
            // A return at the moment of another's call counts as after it: the two may overlap.
            moments.sort {
                ($0.time, $0.isReturn ? 1 : 0, $0.operation)
                    < ($1.time, $1.isReturn ? 1 : 0, $1.operation)
            }
            let count = moments.count
            self.next = (0...count).map { $0 == count ? -1 : $0 + 1 }
            self.previous = (0...count).map { $0 - 1 }
            self.isReturn = [false] + moments.map(\.isReturn)
            self.operation = [-1] + moments.map(\.operation)
            var returns = Array(repeating: 0, count: events.count)
            for (position, moment) in moments.enumerated() where moment.isReturn {
                returns[moment.operation] = position + 1
            }
            self.returnMoment = returns
        }

        mutating func lift(_ call: Int) {
            self.unlink(call)
            self.unlink(self.returnMoment[self.operation[call]])
        }

        mutating func putBack(_ call: Int) {
            self.relink(self.returnMoment[self.operation[call]])
            self.relink(call)
        }

        private mutating func unlink(_ moment: Int) {
            self.next[self.previous[moment]] = self.next[moment]
            if self.next[moment] >= 0 { self.previous[self.next[moment]] = self.previous[moment] }
        }

        private mutating func relink(_ moment: Int) {
            self.next[self.previous[moment]] = moment
            if self.next[moment] >= 0 { self.previous[self.next[moment]] = moment }
        }
    }

    /// - Parameter stepCountMax: gives up after so many steps.
    package static func check(
        _ events: [Event], startingWith initial: Int? = nil, stepCountMax: Int = 20_000_000
    ) -> Verdict {
        // A read nobody heard the answer of says nothing.
        let events = events.filter {
            if case .read = $0.operation { $0.returnedAt != nil } else { true }
        }
        var moments = Moments(events)
        var placed = Array(repeating: 0 as UInt64, count: (events.count + 63) / 64)
        var seen: Set<Configuration> = []
        var path: [(call: Int, value: Int?)] = []
        var value = initial
        var left = events.count { $0.returnedAt != nil }
        var moment = moments.next[0]
        var steps = 0
        var furthest: (count: Int, event: Event?) = (-1, nil)
        while left > 0 {
            steps += 1
            if steps > stepCountMax { return .undecided }
            if moment >= 0, !moments.isReturn[moment] {
                let number = moments.operation[moment]
                let event = events[number]
                if let new = Self.apply(event, to: value) {
                    placed[number / 64] |= 1 << UInt64(number % 64)
                    if seen.insert(Configuration(placed: placed, value: new.value)).inserted {
                        path.append((moment, value))
                        value = new.value
                        moments.lift(moment)
                        if event.returnedAt != nil { left -= 1 }
                        moment = moments.next[0]
                        continue
                    }
                    placed[number / 64] &= ~(1 << UInt64(number % 64))
                }
                moment = moments.next[moment]
                continue
            }
            if moment >= 0, events[moments.operation[moment]].returnedAt == nil {
                moment = moments.next[moment]
                continue
            }
            // An operation has returned that cannot be placed any more: go back.
            if moment >= 0, path.count > furthest.count {
                furthest = (path.count, events[moments.operation[moment]])
            }
            guard let (call, before) = path.popLast() else {
                return .violated(furthest.event ?? events[0])
            }
            value = before
            let number = moments.operation[call]
            placed[number / 64] &= ~(1 << UInt64(number % 64))
            if events[number].returnedAt != nil { left += 1 }
            moments.putBack(call)
            moment = moments.next[call]
        }
        return .linearizable
    }

    /// What the register holds after the operation; nil if it cannot have happened at this point.
    private static func apply(_ event: Event, to value: Int?) -> (value: Int?, Void)? {
        switch event.operation {
        case .read(let seen): return seen == value ? (value, ()) : nil
        case .write(let new): return (new, ())
        case .compareAndSet(let expected, let new):
            if expected == value { return (new, ()) }
            // One whose outcome is unknown may have happened and changed nothing.
            return event.returnedAt == nil ? (value, ()) : nil
        case .failedCompareAndSet(let expected): return expected != value ? (value, ()) : nil
        }
    }
}
