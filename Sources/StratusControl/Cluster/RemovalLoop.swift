import StratusAdminModel
import StratusCommandLine
import StratusProcess

/// Asks a node for one piece of a removal after the other, until it says that nothing is left.
struct RemovalLoop {
    private(set) var users: Int64 = 0
    private(set) var zones: Int64 = 0
    private(set) var records: Int64 = 0

    /// - Returns: the last piece's answer.
    mutating func run(
        _ piece: () async throws(AdminClient.Failure) -> RemovalAnswer
    ) async throws(AdminClient.Failure) -> RemovalAnswer {
        var bar = ProgressBar(
            "Removing", isTerminal: Terminal.isTerminal(Terminal.errors), width: Terminal.width)
        defer { if let clear = bar.finish() { Terminal.write(clear, to: Terminal.errors) } }
        let clock = ContinuousClock()
        let start = clock.now
        // Every piece removes something or ends it, so this ends; what fails is begun again by
        // whoever asks.
        while true {
            let answer = try await piece()
            self.users += answer.users
            self.zones += answer.zones
            self.records += answer.records
            if answer.isDone { return answer }
            if let line = bar.update(
                done: Int(clamping: self.records), total: nil, unit: "records",
                elapsed: clock.now - start)
            {
                Terminal.write(line, to: Terminal.errors)
            }
            let wait = answer.waitMilliseconds
            if wait > 0 { try? await Task.sleep(for: .milliseconds(min(max(wait, 50), 1_000))) }
        }
    }
}
