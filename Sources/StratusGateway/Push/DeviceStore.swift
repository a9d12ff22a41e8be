package import StratusCluster
import StratusHTTP
package import StratusIdentity
package import StratusModel
import StratusRecords
package import StratusSealing

/// Names one device, and the home where its row stands.
package struct DeviceName: Sendable, Hashable {
    /// 16 bytes: names the device among the followers of news.
    package let bytes: Bytes

    package init(_ bytes: Bytes) { self.bytes = bytes }

    /// The name of a provider's device: whoever knows its address alone cannot find it.
    package init(_ address: PushAddress, _ cipher: TokenCipher) {
        let identity = cipher.identity(of: Bytes("stratus device 1".utf8) + address.encoded())
        self.bytes = [identity.high, identity.low].flatMap { word in
            withUnsafeBytes(of: word.bigEndian) { Bytes($0) }
        }
    }

    var key: IdentityKey { IdentityKey(.device, of: self.bytes) }
    var home: ShardKey { .account(Hexadecimal.text(self.bytes)) }
}

/// The rows of poll tokens and of providers' devices, each at a home of its own.
package struct DeviceStore: Sendable {
    let partitions: PartitionClient
    private var world: any World { self.partitions.world }

    package init(partitions: PartitionClient) { self.partitions = partitions }

    package struct Stored: Sendable {
        package var device: Device
        package var revision: UInt64
        package var expiresAtMilliseconds: Int64
    }

    /// Nil: not known, or unused for too long.
    package func device(
        _ name: DeviceName, until deadline: MonotonicTime
    ) async throws -> Stored? {
        guard
            case .rows(let rows) = try await self.partitions.plain.ask(
                IdentityQuery.rows([name.key]), at: .key(name.home), as: .system(until: deadline)),
            rows.count == 1
        else { throw RouteError.otherKind }
        guard let row = rows[0], row.isLive(at: self.world.wallMilliseconds) else {
            return nil
        }
        return Stored(
            device: try Device(decoding: row.body), revision: row.revision,
            expiresAtMilliseconds: row.expiresAtMilliseconds)
    }

    /// What is to become of a row.
    package enum Change: Sendable {
        case put(Device, life: Duration)
        case remove
        case nothing
    }

    /// Notes the badge that a user's device was told. It is told more than once where somebody
    /// takes a notification and goes away, and counts up each time.
    func raiseBadge(
        _ name: DeviceName, of registration: Device.Registration, to badge: UInt64,
        until deadline: MonotonicTime
    ) async throws {
        guard let known = try await self.device(name, until: deadline),
            known.device.badge(of: registration) < badge
        else { return }
        let left = max(0, known.expiresAtMilliseconds - self.world.wallMilliseconds)
        try await self.change(name, until: deadline) { device in
            guard var device, device.badge(of: registration) < badge else { return .nothing }
            device.setBadge(badge, of: registration)
            return .put(device, life: .milliseconds(left))
        }
    }

    /// Makes of the row what `decide` says. Decides again where somebody was faster.
    package func change(
        _ name: DeviceName, until deadline: MonotonicTime,
        _ decide: (Device?) throws -> Change
    ) async throws {
        for _ in 0..<8 {
            let known = try await self.device(name, until: deadline)
            let now = self.world.wallMilliseconds
            let change: IdentityCommand.Change
            switch try decide(known?.device) {
            case .nothing: return
            case .remove:
                guard known != nil else { return }
                change = .remove
            case .put(let device, let life):
                change = .put(
                    body: device.encoded(),
                    expiresAtMilliseconds: now + life.clampedNanoseconds / 1_000_000)
            }
            let edit = IdentityCommand.Edit(
                name.key, if: known.map { .revision($0.revision) } ?? .any, change)
            let outcome = try await self.partitions.plain.submit(
                IdentityCommand([edit]), at: .key(name.home), as: .system(until: deadline))
            switch outcome {
            case .done: return
            case .conflict: continue
            case .limited, .refused: throw RouteError.refused("a change that is no change")
            }
        }
        throw RouteError.notExecuted(retryAfter: .seconds(1))
    }
}
