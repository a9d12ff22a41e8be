/// Everything outside the process. Real in StratusRuntime, simulated in StratusSimulation.
///
/// Nothing in Stratus asks the system for the time, a random number, a file or a peer in another
/// way, so the simulator can run the real code.
package protocol World: AnyObject, Sendable {
    /// Never goes back. Its rate is all that safety may use.
    var now: MonotonicTime { get }
    /// Milliseconds since 1970. May jump in both directions.
    var wallMilliseconds: Int64 { get }
    /// Unpredictable in the real world, from the seed in the simulated one. Fit for identifiers.
    func random() -> UInt64
    var files: any Files { get }
}

extension World {
    /// Draws an identity for a new command.
    package func drawIdentity() -> RequestIdentity {
        RequestIdentity(high: self.random(), low: self.random())
    }
}
