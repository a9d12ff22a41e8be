import Glibc

/// Something that `stratus-bench NAME …` runs. Each stands in a file of its own and in ``all``.
struct Benchmark: Sendable {
    let name: String
    let summary: String
    let run: @Sendable ([String]) async throws -> Void

    static let all: [Benchmark] = [
        .batches,
        .commits,
        .consensus,
        .httpMessage,
        .httpServer,
        .identity,
        .json,
        .placement,
        .query,
        .records,
        .replica,
        .scale,
        .storage,
        .telemetry,
    ]

    static func run(_ arguments: [String]) async {
        guard let benchmark = self.all.first(where: { $0.name == arguments.first }) else {
            for benchmark in self.all {
                print("stratus-bench \(benchmark.name)\t\(benchmark.summary)")
            }
            exit(arguments.isEmpty ? 0 : 2)
        }
        do {
            try await benchmark.run(Array(arguments.dropFirst()))
        } catch {
            print("\(benchmark.name) failed: \(error)")
            exit(1)
        }
    }

    /// The value after `--name`; nil when it is not given.
    static func option(_ name: String, in arguments: [String]) -> String? {
        guard let index = arguments.firstIndex(of: "--\(name)"), index + 1 < arguments.count else {
            return nil
        }
        return arguments[index + 1]
    }

    /// The directory for a benchmark's files: `--directory`, or one of its own among temporary
    /// files.
    static func directory(in arguments: [String]) -> String {
        if let directory = self.option("directory", in: arguments) { return directory }
        let parent = getenv("TMPDIR").map { String(cString: $0) } ?? "/tmp"
        return "\(parent)/stratus-bench-\(getpid())"
    }
}
