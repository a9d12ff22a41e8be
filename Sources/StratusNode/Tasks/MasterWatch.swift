import StratusCluster
import StratusIdentity
import StratusModel
import StratusRuntime
import StratusStorage
import Synchronization

/// Compares the named master keys of this node with those that the cluster has noted, from the
/// start until it agrees on all of them.
///
/// A key that it agrees on is noted in the data directory, before anything is wrapped under it.
/// One that differs is a warning, and wraps nothing.
final class MasterWatch: Sendable {
    private static let interval = Duration.seconds(10)

    private let keys: ContainerKeys
    private let health: Health
    private let log: Log

    init(_ keys: ContainerKeys, health: Health, log: Log) {
        self.keys = keys
        self.health = health
        self.log = log
    }

    /// Writes the versions that are agreed on into the data directory, one at a time.
    static func noting(in world: RealWorld) -> @Sendable (UInt32, Bytes) throws(RouteError) -> Void
    {
        let turn = MasterNotes()
        return { (version, check) throws(RouteError) in
            do throws(MasterKeyFile.Refusal) {
                try turn.note(version, check, in: world.files)
            } catch { throw .refused(error.description) }
        }
    }

    func run() -> Task<Void, Never> {
        Task {
            var left = self.keys.versions.filter { $0 > 0 }
            var said: Set<UInt32> = []
            while !left.isEmpty, !Task.isCancelled {
                var differences: [String] = []
                for version in left {
                    do throws(RouteError) {
                        guard let noted = try await self.keys.agreement.compare(version) else {
                            left.removeAll { $0 == version }
                            continue
                        }
                        let difference = self.keys.agreement.difference(version, noted)
                        differences.append(difference)
                        if said.insert(version).inserted {
                            self.log.error("master key refused", ["reason": .text(difference)])
                        }
                    } catch {
                        // The partition does not answer yet, or the cluster is being upgraded.
                        guard case .refused(let reason) = error else { continue }
                        differences.append(reason)
                    }
                }
                if differences.isEmpty {
                    self.health.dropWarning("master keys")
                } else {
                    self.health.warn("master keys", differences.joined(separator: "; "))
                }
                if left.isEmpty { return }
                try? await Task.sleep(for: Self.interval)
            }
        }
    }
}

/// Keeps two writers of the file `KEYS` apart.
private final class MasterNotes: Sendable {
    private let turn = Mutex(())

    func note(_ version: UInt32, _ check: Bytes, in files: any Files)
        throws(MasterKeyFile.Refusal)
    {
        try self.turn.withLock { _ throws(MasterKeyFile.Refusal) in
            try MasterKeyFile.check(version, is: check, in: files)
        }
    }
}
