import StratusCluster
import StratusModel

/// Tries a step again whose partition did not answer: its leader may just be changing.
///
/// Only for steps that may be carried out twice.
package struct Retries: Sendable {
    package static let tryCountMax = 6
    private static let pauseMax = Duration.seconds(2)

    private let sleep: @Sendable (Duration) async throws -> Void

    /// - Parameter pause: waits.
    package init(
        pause: @escaping @Sendable (Duration) async throws -> Void = {
            try await Task.sleep(for: $0)
        }
    ) {
        self.sleep = pause
    }

    package func run<Value>(_ step: () async throws -> Value) async throws -> Value {
        for number in 1..<Self.tryCountMax {
            do { return try await step() } catch let error as RouteError {
                switch error {
                case .notExecuted, .outcomeUnknown: try await self.wait(number)
                case .upgrading, .refused, .unreadable: throw error
                }
            }
        }
        return try await step()
    }

    /// Waits longer with each try.
    func wait(_ number: Int) async throws {
        try await self.sleep(min(Self.pauseMax, .milliseconds(100) * (1 << min(number, 5))))
    }

    /// Waits for something else than a partition.
    func pause(for duration: Duration) async throws { try await self.sleep(duration) }
}

extension RouteError {
    /// Says to a person what held up their work at a partition.
    var reason: String {
        switch self {
        case .refused(let reason), .unreadable(let reason): reason
        case .notExecuted: "its partition does not answer"
        case .outcomeUnknown: "its partition does not say what it did"
        case .upgrading: "the cluster is being upgraded"
        }
    }
}
