import StratusModel

/// Decides whether a history of one register can be explained by one order of its operations, each
/// at some moment between its call and its return.
///
/// After Wing and Gong ("Testing and verifying concurrent objects", 1993) with Lowe's memory of
/// configurations already seen ("Testing for linearizability", 2017). Registers are independent, so
/// a history of many is checked one register at a time (Herlihy and Wing's locality).
///
/// The cost must grow with the length of the history, not with its square, and thousands of
/// operations of unknown outcome must not be tried at each step. So a configuration is remembered
/// by a fingerprint of its placed operations. An operation of unknown outcome is placed only if
/// another one cannot be placed without the value that it leaves. Any order that explains a history
/// can be brought to that form. A value that nobody needs is overwritten unseen, so its write may
/// as well not have happened; a write that is needed later may happen later.
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
    ///
    /// Two that differ have the same fingerprint with a probability of 2⁻¹²⁸.
    private struct Configuration: Hashable {
        private var high: UInt64 = 0
        private var low: UInt64 = 0
        var value: Int?

        init(holding value: Int?) { self.value = value }

        /// Places an operation, or takes it back.
        mutating func toggle(_ operation: Int) {
            var bits = SeededGenerator(seed: UInt64(operation))
            self.high ^= bits.next()
            self.low ^= bits.next()
        }
    }

    /// Calls and returns of the operations that returned, in the order of time, as a list from
    /// which placed operations are removed.
    private struct Moments {
        private(set) var next: [Int]
        private var previous: [Int]
        let time: [Int64]
        let isReturn: [Bool]
        let operation: [Int]
        private let returnMoment: [Int]

        init(_ events: [Event]) {
            var moments: [(time: Int64, isReturn: Bool, operation: Int)] = []
            for (number, event) in events.enumerated() {
                guard let returnedAt = event.returnedAt else { continue }
                moments.append((event.calledAt, false, number))
                moments.append((returnedAt, true, number))
            }
            // A return at the moment of another's call counts as after it: the two may overlap.
            moments.sort {
                ($0.time, $0.isReturn ? 1 : 0, $0.operation)
                    < ($1.time, $1.isReturn ? 1 : 0, $1.operation)
            }
            let count = moments.count
            self.next = (0...count).map { $0 == count ? -1 : $0 + 1 }
            self.previous = (0...count).map { $0 - 1 }
            self.time = [.min] + moments.map(\.time)
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

    /// The operation that the search for an order placed last.
    private enum Step {
        /// The operation that was called at this moment of the list.
        case known(call: Int)
        /// One of unknown outcome; `others` are to be tried after it.
        case unknown(Int, others: ArraySlice<Int>)
    }

    private let events: [Event]
    private var moments: Moments
    /// Operations of unknown outcome.
    private let unknown: [Int]
    /// Those of them that leave a value.
    private let leaving: [Int?: [Int]]
    /// Those of them that are placed.
    private var used: Set<Int> = []
    private var placed: Configuration
    private var path: [(step: Step, valueBefore: Int?)] = []

    private init(_ events: [Event], startingWith initial: Int?) {
        self.events = events
        self.moments = Moments(events)
        self.unknown = events.indices.filter { Self.mayHaveChanged(events[$0]) }
        self.leaving = Dictionary(grouping: self.unknown) {
            Self.value(leftBy: events[$0].operation)
        }
        self.placed = Configuration(holding: initial)
    }

    /// - Parameter stepCountMax: gives up after so many steps.
    package static func check(
        _ events: [Event], startingWith initial: Int? = nil, stepCountMax: Int = 20_000_000
    ) -> Verdict {
        var checker = Self(events, startingWith: initial)
        return checker.search(stepCountMax)
    }

    private mutating func search(_ stepCountMax: Int) -> Verdict {
        var seen: Set<Configuration> = []
        var left = self.events.count { $0.returnedAt != nil }
        var moment = self.moments.next[0]
        var choices: ArraySlice<Int>?
        var furthest: (left: Int, event: Event?) = (.max, nil)
        var steps = 0
        search: while left > 0 {
            steps += 1
            if steps > stepCountMax { return .undecided }
            if choices == nil, !self.moments.isReturn[moment] {
                let event = self.events[self.moments.operation[moment]]
                if let new = Self.apply(event.operation, to: self.placed.value) {
                    let before = self.placed
                    self.place(self.moments.operation[moment], leaving: new.value)
                    if seen.insert(self.placed).inserted {
                        self.path.append((.known(call: moment), before.value))
                        self.moments.lift(moment)
                        left -= 1
                        moment = self.moments.next[0]
                        continue
                    }
                    self.placed = before
                }
                moment = self.moments.next[moment]
                continue
            }
            // An operation has returned here, and none of the pending calls can be placed on the
            // present value.
            if choices == nil {
                if left < furthest.left {
                    furthest = (left, self.events[self.moments.operation[moment]])
                }
                choices = self.helpful(before: moment)[...]
            }
            while let number = choices?.popFirst() {
                guard let new = Self.apply(self.events[number].operation, to: self.placed.value)
                else { continue }
                let before = self.placed
                self.place(number, leaving: new.value)
                if seen.insert(self.placed).inserted {
                    self.used.insert(number)
                    self.path.append((.unknown(number, others: choices ?? []), before.value))
                    choices = nil
                    moment = self.moments.next[0]
                    continue search
                }
                self.placed = before
            }
            guard let (step, before) = self.path.popLast() else {
                return .violated(furthest.event ?? self.events[0])
            }
            switch step {
            case .known(let call):
                self.place(self.moments.operation[call], leaving: before)
                self.moments.putBack(call)
                left += 1
                moment = self.moments.next[call]
                choices = nil
            case .unknown(let number, let others):
                self.place(number, leaving: before)
                self.used.remove(number)
                choices = others
            }
        }
        return .linearizable
    }

    /// Places an operation, or takes it back.
    private mutating func place(_ operation: Int, leaving value: Int?) {
        self.placed.toggle(operation)
        self.placed.value = value
    }

    /// The operations of unknown outcome without which one of the calls before the first return
    /// cannot be placed.
    private func helpful(before first: Int) -> [Int] {
        guard !self.unknown.isEmpty else { return [] }
        let latest = self.moments.time[first]
        var found: Set<Int> = []
        var sought: Set<Int?> = []
        /// Finds what leaves `value`, by way of others if need be.
        func seek(_ value: Int?) {
            guard sought.insert(value).inserted else { return }
            for number in self.leaving[value] ?? [] where self.isFree(number, latest) {
                if Self.apply(self.events[number].operation, to: self.placed.value) != nil {
                    found.insert(number)
                } else if case .compareAndSet(let expected, _) = self.events[number].operation {
                    seek(expected)
                }
            }
        }
        var moment = self.moments.next[0]
        while !self.moments.isReturn[moment] {
            switch self.events[self.moments.operation[moment]].operation {
            case .read(let value): seek(value)
            case .compareAndSet(let expected, _): seek(expected)
            case .failedCompareAndSet(let expected) where expected == self.placed.value:
                // Whatever leaves something else will do.
                for number in self.unknown where self.isFree(number, latest) {
                    found.insert(number)
                }
            case .failedCompareAndSet, .write: break
            }
            moment = self.moments.next[moment]
        }
        return found.sorted()
    }

    private func isFree(_ number: Int, _ latest: Int64) -> Bool {
        self.events[number].calledAt <= latest && !self.used.contains(number)
    }

    /// The register's value after the operation; nil if the operation cannot have happened at this
    /// point.
    private static func apply(_ operation: Operation, to value: Int?) -> (value: Int?, Void)? {
        switch operation {
        case .read(let seen): seen == value ? (value, ()) : nil
        case .write(let new): (new, ())
        case .compareAndSet(let expected, let new): expected == value ? (new, ()) : nil
        case .failedCompareAndSet(let expected): expected != value ? (value, ()) : nil
        }
    }

    private static func value(leftBy operation: Operation) -> Int? {
        switch operation {
        case .write(let value), .compareAndSet(_, let value): value
        case .read, .failedCompareAndSet: nil
        }
    }

    /// Whether nobody knows what it did, and it may have done something.
    private static func mayHaveChanged(_ event: Event) -> Bool {
        switch event.operation {
        case .write, .compareAndSet: event.returnedAt == nil
        case .read, .failedCompareAndSet: false
        }
    }
}
