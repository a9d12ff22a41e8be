import StratusCluster
import StratusModel

// How connections come to be, and how they do not.
extension SimulatedStreams {
    func connect(
        _ loop: SimulatedLoop, to peer: PeerAddress, within patience: Duration,
        user: any LinkStreamUser
    ) -> SimulatedStream {
        let target = NodeID(UInt32(peer.host.dropFirst("node".count)) ?? 0)
        let connection = self.makeConnection(to: target)
        let stream = self.makeEnd(of: connection, loop.node, life: loop.life, user)
        self.giveUp(stream, after: patience, on: loop)
        self.count("tried")
        self.countPatience(of: loop.node.id, with: target)
        let fate = self.isFaulty ? self.draw(40) : 40
        let isKnown = target.raw > 0 && Int(target.raw) <= self.simulation.nodes.count
        if fate == 0 || !isKnown {
            self.count("name not found")
            self.fail(stream, "the name '\(peer.host)' is not known", after: self.latency())
        } else if fate == 1 {
            self.count("nobody answers")
        } else if fate == 2 {
            self.count("another's certificate")
            self.fail(stream, "the certificate names another", after: 4 * self.latency())
        } else {
            self.add(.knock(connection.number), after: self.latency())
        }
        return stream
    }

    func connect(_ stranger: Stranger, on host: SimulatedNode, to target: NodeID)
        -> SimulatedStream
    {
        let connection = self.makeConnection(to: target)
        self.add(.knock(connection.number), after: self.latency())
        return self.makeEnd(of: connection, host, life: Self.strangersLife, stranger)
    }

    private func makeConnection(to target: NodeID) -> SimulatedConnection {
        self.connectionCount += 1
        let connection = SimulatedConnection(self.connectionCount, to: target)
        self.connections[connection.number] = connection
        return connection
    }

    /// The other end of a connection that was accepted.
    func take(
        _ connection: SimulatedConnection, within patience: Duration, user: any LinkStreamUser
    ) -> SimulatedStream {
        let node = self.simulation.node(connection.target)
        let stream = self.makeEnd(of: connection, node, life: node.incarnation, user)
        if let loop = node.links?.loop { self.giveUp(stream, after: patience, on: loop) }
        return stream
    }

    private func makeEnd(
        of connection: SimulatedConnection, _ node: SimulatedNode, life: UInt64,
        _ user: any LinkStreamUser
    ) -> SimulatedStream {
        let stream = SimulatedStream(
            self, connection.number, side: connection.ends.count, of: node.id,
            life: life, patience: self.drawTime(300...4_000), user: user)
        connection.ends.append(stream)
        return stream
    }

    private func giveUp(_ stream: SimulatedStream, after patience: Duration, on loop: SimulatedLoop)
    {
        loop.schedule(at: loop.now + patience) { [weak self, weak stream] in
            guard let stream, stream.phase == .connecting else { return }
            self?.count("not connected in time")
            self?.end(stream, .failed(LinkFailure("no connection in time")))
        }
    }

    private func fail(
        _ stream: SimulatedStream, _ why: String, isRefusal: Bool = false, after delay: Int64
    ) {
        self.add(
            .sever(
                stream.connection, side: stream.side,
                .failed(LinkFailure(why, isRefusal: isRefusal))), after: delay)
    }

    /// Packets that get no answer are sent again.
    private func again(_ event: StreamEvent) { self.add(event, after: self.drawTime(20...300)) }

    func knock(_ connection: SimulatedConnection) {
        let opener = connection.ends[0]
        guard opener.phase == .connecting else { return self.dropIfOver(connection) }
        let node = self.simulation.node(connection.target)
        guard self.passes(from: opener.host, to: node.id),
            self.passes(from: node.id, to: opener.host)
        else { return self.again(.knock(connection.number)) }
        if let until = self.pause(of: node.id) {
            return self.add(.knock(connection.number), after: until - self.simulation.now)
        }
        guard node.isUp, let links = node.links?.peers else {
            self.count("refused by the system")
            return self.fail(
                opener, "connection refused", isRefusal: true, after: self.latency())
        }
        links.accept(
            SimulatedSeed(
                streams: self, connection: connection,
                origin: "node\(opener.host.raw):\(1_024 + connection.number)"))
        if connection.ends.count < 2 {
            self.count("not taken by the listener")
            return self.fail(opener, "connection reset", after: self.latency())
        }
        self.add(.shake(connection.number, side: 0), after: 2 * self.latency())
    }

    func shake(_ connection: SimulatedConnection, _ side: Int) {
        let stream = connection.ends[side]
        guard let other = connection.other(than: side), stream.phase == .connecting else {
            return self.dropIfOver(connection)
        }
        guard other.phase != .gone else { return self.end(stream, .closed) }
        guard self.passes(from: other.host, to: stream.host),
            self.passes(from: stream.host, to: other.host)
        else { return self.again(.shake(connection.number, side: side)) }
        if let until = self.pause(of: stream.host) {
            return self.add(
                .shake(connection.number, side: side), after: until - self.simulation.now)
        }
        stream.phase = .open
        stream.isAsked = true
        self.simulation.mix(
            15, stream.host.raw, UInt32(side), UInt64(connection.number), 0)
        if side == 0 {
            let delay = self.latency()
            if self.connections.values.contains(where: { $0.isBeside(connection) }) {
                self.count("side by side")
            }
            connection.pipes[0].openAt = self.simulation.now + delay
            self.add(.shake(connection.number, side: 1), after: delay)
        }
        let certificate = LinkCertificate(
            name: "node\(other.host.raw)", fingerprint: Simulation.key(of: Int(other.host.raw)))
        self.call(stream) { $0.opened(by: certificate) }
        self.write(stream)
        self.schedule(connection, 1 - side)
    }
}
