package import StratusModel

/// A consensus algorithm as a value: events in, actions out, in the order they must be carried out.
package protocol ConsensusCore: Sendable {
    associatedtype Event: Sendable
    associatedtype Action: Sendable
    mutating func handle(_ event: Event, at now: MonotonicTime, into actions: inout [Action])
}
