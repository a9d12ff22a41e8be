package import StratusHTTP
package import StratusModel

/// A server of HTTP/1.1 and, where it is switched on, HTTP/2 on a set of event loops.
///
/// Every loop listens on every TCP address by itself (`SO_REUSEPORT`) and keeps the connections it
/// accepts; a Unix socket is served by the first loop.
package final class HTTPServer: Sendable {
    private let configuration: HTTPServerConfiguration
    private let shards: [HTTPServerShard]
    private let admission: Admission

    package init(
        configuration: HTTPServerConfiguration, loops: [EventLoop], world: any World,
        handler: any HTTPHandler
    ) {
        precondition(!loops.isEmpty, "a server needs a loop")
        let admission = Admission(
            totalMax: configuration.limits.connectionCountMax,
            perAddressMax: configuration.limits.connectionCountPerAddressMax,
            requestsPerAddressMax: configuration.limits.requestCountPerAddressMax)
        self.configuration = configuration
        self.admission = admission
        self.shards = loops.map {
            HTTPServerShard(
                loop: $0, world: world, handler: handler, configuration: configuration,
                admission: admission)
        }
    }

    /// Open connections over all loops.
    package var connectionCount: Int { self.admission.total }

    package var figures: PlaceFigures {
        PlaceFigures(kind: "connection") {
            [admission] in
            admission.total
        } endedCount: {
            [admission] in
            admission.endedCount
        }
    }

    /// Requests that were refused before a handler saw them: malformed, too large or too slow.
    package func refusedCount(_ refusal: HTTPRefusal) -> UInt64 {
        self.admission.refusedCount(refusal)
    }

    /// Listens, and answers from now on.
    /// - Returns: the addresses in the order configured, with the ports that the system chose.
    package func start() async throws -> [SocketAddress] {
        do {
            var bound: [SocketAddress] = []
            for listener in self.configuration.listeners {
                bound.append(try await self.open(listener))
            }
            return bound
        } catch {
            for shard in self.shards { await shard.loop.run { shard.closeListeners() } }
            throw error
        }
    }

    private func open(
        _ listener: HTTPServerConfiguration.Listener
    ) async throws(SocketError) -> SocketAddress {
        let backlog = self.configuration.limits.backlog
        var address = listener.address
        let shards =
            switch address {
            case .ip: self.shards[...]
            case .unix: self.shards[..<1]
            }
        // Sharing is for our own loops: another process that shares the port too would be let in,
        // and each would get a part of the clients.
        if shards.count > 1 { _ = try Socket.listening(on: address, backlog: 1, isShared: false) }
        for shard in shards {
            let socket = try Socket.listening(
                on: address, backlog: backlog, isShared: shards.count > 1)
            // The first one settles the port for all.
            address = socket.localAddress ?? address
            let descriptor = socket.release()
            let result: Result<Void, SocketError> = await shard.loop.run {
                do throws(SocketError) {
                    try shard.listen(
                        on: Socket(takingOwnershipOf: descriptor), tls: listener.tls)
                    return .success(())
                } catch {
                    return .failure(error)
                }
            }
            try result.get()
        }
        return address
    }

    /// Takes other limits: how many connections from now on, deadlines and buffers from each
    /// connection's next use of them. The backlog stays what it was.
    package func replaceLimits(with limits: HTTPServerLimits) {
        self.admission.limit(
            totalMax: limits.connectionCountMax, perAddressMax: limits.connectionCountPerAddressMax,
            requestsPerAddressMax: limits.requestCountPerAddressMax)
        for shard in self.shards { shard.loop.submit { shard.limits = limits } }
    }

    /// Stops listening, lets what is in flight end, and cuts what has not ended after `deadline`.
    package func stop(deadline: Duration) async {
        let time = RealClock.now + deadline
        await withTaskGroup { group in
            for shard in self.shards {
                group.addTask(executorPreference: shard.loop) { await shard.stop(at: time) }
            }
        }
        for listener in self.configuration.listeners {
            if case .unix(let path) = listener.address { Socket.removeSocketFile(at: path) }
        }
    }
}
