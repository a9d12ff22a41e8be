import StratusHTTP
import StratusModel
import Synchronization

/// Counts the open connections of a server over all its loops, and the requests over HTTP/2 for
/// each address. Of IPv6 the half that names a site counts. ``Places`` decides whose connection gives way to another's.
final class Admission: Sendable {
    private struct Counts {
        var totalMax: Int
        var perAddressMax: Int
        var requestsPerAddressMax: Int
        /// Connections that are open. Some of them have given up their place and end soon.
        var openCount = 0
        var places = Places()
        /// Where each connection with a place is.
        var shards: [UInt64: HTTPServerShard] = [:]
        var endedCount: UInt64 = 0
        var requestsByAddress: [String: Int] = [:]
    }

    private let counts: Mutex<Counts>
    private let refusals = Mutex<[HTTPRefusal: UInt64]>([:])

    init(totalMax: Int, perAddressMax: Int, requestsPerAddressMax: Int) {
        self.counts = Mutex(
            Counts(
                totalMax: totalMax, perAddressMax: perAddressMax,
                requestsPerAddressMax: requestsPerAddressMax))
    }

    func count(_ refusal: HTTPRefusal) { self.refusals.withLock { $0[refusal, default: 0] += 1 } }

    func refusedCount(_ refusal: HTTPRefusal) -> UInt64 {
        self.refusals.withLock { $0[refusal] ?? 0 }
    }

    /// For connections from now on: nobody is thrown out.
    func limit(totalMax: Int, perAddressMax: Int, requestsPerAddressMax: Int) {
        self.counts.withLock {
            $0.totalMax = totalMax
            $0.perAddressMax = perAddressMax
            $0.requestsPerAddressMax = requestsPerAddressMax
        }
    }

    /// Those that have given up their place and are not closed yet may be this part of all more.
    private static let endingPart = 16

    /// The container of connections that are many clients': those of proxies and of Unix sockets.
    /// They and the others are sure of an eighth each.
    private static let proxies = ContainerReference(
        container: "stratus.proxies", environment: .production)

    static func holder(of address: String?) -> PlaceHolder {
        guard let address else { return PlaceHolder(Self.proxies, "") }
        return PlaceHolder(nil, SocketAddress.site(of: address))
    }

    /// - Parameter address: without its port; nil for a Unix socket and for proxies, whose
    ///   connections are many clients'.
    /// - Returns: the connection's place, where there is room; then ``leave(_:)`` must follow.
    func enter(_ address: String?, on shard: HTTPServerShard) -> UInt64? {
        let entered = self.counts.withLock {
            counts -> (place: UInt64, ended: [(HTTPServerShard, UInt64)])? in
            let endingMax = max(1, counts.totalMax / Self.endingPart)
            // A reload may have made them fewer.
            let total = max(counts.totalMax, counts.places.count)
            guard counts.openCount < total + endingMax else { return nil }
            let bounds = PlaceBounds(
                total: counts.totalMax,
                share: address == nil ? counts.totalMax : counts.totalMax / 8,
                most: address == nil ? nil : counts.perAddressMax)
            guard
                let entrance = try? counts.places.enter(
                    Self.holder(of: address), within: bounds)
            else { return nil }
            counts.openCount += 1
            counts.shards[entrance.number] = shard
            counts.endedCount += UInt64(entrance.ended.count)
            return (
                entrance.number,
                entrance.ended.compactMap { number in
                    counts.shards.removeValue(forKey: number).map { ($0, number) }
                }
            )
        }
        for (shard, place) in entered?.ended ?? [] { shard.endSoon(place) }
        return entered?.place
    }

    /// The connection that was given this place is closed.
    func leave(_ place: UInt64) {
        _ = self.counts.withLock { counts in
            counts.openCount -= 1
            counts.places.leave(place)
            return counts.shards.removeValue(forKey: place)
        }
    }

    /// - Returns: whether one more request of this address may be answered; then
    ///   ``leaveRequest(_:)`` must follow.
    func enterRequest(_ address: String?) -> Bool {
        guard let address = address.map(SocketAddress.site(of:)) else { return true }
        return self.counts.withLock { counts in
            let count = counts.requestsByAddress[address, default: 0]
            guard count < counts.requestsPerAddressMax else { return false }
            counts.requestsByAddress[address] = count + 1
            return true
        }
    }

    func leaveRequest(_ address: String?) {
        guard let address = address.map(SocketAddress.site(of:)) else { return }
        self.counts.withLock { counts in
            guard let count = counts.requestsByAddress[address] else { return }
            counts.requestsByAddress[address] = count == 1 ? nil : count - 1
        }
    }

    /// Connections that are open.
    var total: Int { self.counts.withLock { $0.openCount } }

    /// Connections that gave up their place.
    var endedCount: UInt64 { self.counts.withLock { $0.endedCount } }
}
