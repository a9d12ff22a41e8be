import StratusAdminModel
import StratusCommandLine
import StratusHTTP
import StratusModel
import StratusProcess
import StratusRuntime

/// Asks on which nodes' disks something erased is left, and waits until it is left on none.
struct RemainsLoop: AdminConversation {
    let context: ControlContext

    init(_ context: ControlContext) { self.context = context }

    private static let patience: Int64 = 3_600
    private static let pause = Duration.seconds(1)

    /// - Parameter receipt: of the erasure that is waited for; it is printed first.
    func run(waits: Bool, receipt: AdminClient.Answer?) async throws(AdminClient.Failure)
        -> ExitCode
    {
        let patience = self.invocation["wait-time"].flatMap { Int64($0) } ?? Self.patience
        let clock = ContinuousClock()
        let end = clock.now + .seconds(patience)
        let interval = Duration.seconds(30)
        var spokeAt = clock.now
        var answer = try await self.ask(upTo: nil)
        var remains: RemainsAnswer = try answer.read()
        // How far the partitions were when it was first asked; what is erased later is another's.
        let wanted = remains.positions
        while waits, !remains.isCleared, clock.now < end {
            try? await Task.sleep(for: Self.pause)
            // A node that is being restarted is no reason to give up.
            guard let next = try? await self.ask(upTo: wanted) else { continue }
            answer = next
            remains = try answer.read()
            if clock.now >= spokeAt + interval {
                spokeAt = clock.now
                Terminal.write(
                    "waiting for \(Self.names(remains).joined(separator: ", "))\n",
                    to: Terminal.errors)
            }
        }
        let shown = self.show(try self.text(receipt, answer, remains))
        guard shown == .success else { return shown }
        return remains.isCleared ? .success : .refused
    }

    private func ask(upTo wanted: [RemainsAnswer.Position]?) async throws(AdminClient.Failure)
        -> AdminClient.Answer
    {
        try await self.ask("POST", "/v1/remains", RemainsBody { $0.positions = wanted })
    }

    /// The nodes where something is left, or that do not answer.
    private static func names(_ remains: RemainsAnswer) -> [String] {
        remains.nodes.filter { !$0.isCleared }.map {
            $0.node + ($0.answers ? "" : " (does not answer)")
        }
    }

    private func text(
        _ receipt: AdminClient.Answer?, _ answer: AdminClient.Answer, _ remains: RemainsAnswer
    ) throws(AdminClient.Failure) -> String {
        if self.isJSON { return (receipt.map { $0.text + "\n" } ?? "") + answer.text + "\n" }
        var text = ""
        if let receipt {
            let erased: ErasureAnswer = try receipt.read()
            text += erased.text(hasLeft: remains.isCleared)
        }
        return text + TextTable.text(remains.nodes)
    }
}
