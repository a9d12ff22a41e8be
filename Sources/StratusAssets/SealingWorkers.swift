import StratusModel
import StratusRuntime
import StratusSealing
import Synchronization

/// The threads that hash, compress, seal and open chunks: loops and storage never do.
package final class SealingWorkers: Sendable {
    private let threads: [WorkerThread]
    private let turn = Atomic(0)

    /// - Parameters:
    ///   - count: one at least.
    ///   - yields: see ``WorkerThread``.
    package init(count: Int, yields: Bool = false) {
        self.threads = (0..<max(1, count)).map {
            WorkerThread(name: "sealing-\($0)", yields: yields)
        }
    }

    /// The next thread: each body stays on one, since its chunks are hashed in order.
    func next() -> WorkerThread {
        let turn = self.turn.wrappingAdd(1, ordering: .relaxed).newValue
        return self.threads[Int(UInt(bitPattern: turn) % UInt(self.threads.count))]
    }

    /// To be called when no transfer is left.
    package func stop() { for thread in self.threads { thread.stop() } }
}

/// A ``SealingLine`` on a thread of its own.
actor SealingActor {
    private let thread: WorkerThread
    private let line: SealingLine

    nonisolated var unownedExecutor: UnownedSerialExecutor {
        self.thread.asUnownedSerialExecutor()
    }

    init(_ plan: BodyPlan, on thread: WorkerThread) {
        self.thread = thread
        self.line = SealingLine(
            plan.sealer, chunkSize: plan.chunkSize, sizeMax: plan.sizeMax,
            checksumPrefix: plan.checksumPrefix, compresses: plan.compresses,
            hashes: plan.hashes)
    }

    func add(_ bytes: Bytes) throws(SealingLine.Refusal) -> [SealedChunk] {
        try self.line.add(bytes)
    }

    func finish() -> (last: SealedChunk?, sums: BodySums) { self.line.finish() }
}
