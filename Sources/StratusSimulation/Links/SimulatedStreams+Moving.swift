import StratusCluster
import StratusModel

// How bytes move, and how they do not.
extension SimulatedStreams {
    // MARK: Leaving

    /// Takes from the user what it has to send, as much as the system has room for.
    func write(_ stream: SimulatedStream) {
        guard let connection = self.connections[stream.connection] else { return }
        while stream.phase == .open, stream.isAsked,
            connection.pipes[stream.side].size < self.shape.kernelSize
        {
            var output: Bytes = []
            stream.user?.fill(&output)
            if let violation = self.ledger.fills(output, at: stream) {
                self.simulation.invariants.report(violation.rule, violation.text)
            }
            if output.isEmpty {
                stream.isAsked = false
                if self.ledger.awaitsCredit(stream) { self.count("window full") }
                break
            }
            self.send(output, from: stream, on: connection)
        }
        self.schedule(connection, stream.side)
    }

    private func send(
        _ output: Bytes, from stream: SimulatedStream, on connection: SimulatedConnection
    ) {
        var due = max(connection.pipes[stream.side].openAt, self.simulation.now + self.latency())
        if self.has(.longDelay), self.draw(4 * self.simulation.options.lateMessageOneIn) == 0 {
            self.simulation.count(.longDelay)
            due += self.drawTime(0...3_000)
        }
        var start = 0
        while start < output.count {
            let left = output.count - start
            // Half of what is written stays in one piece.
            let size =
                self.draw(2) == 0
                ? left
                : Int.random(in: max(1, min(left, output.count / 8))...left, using: &self.random)
            let isCrumb = left > 1 && self.draw(32) == 0
            let end = start + (isCrumb ? 1 : size)
            due += Int64(end - start) * 1_000_000 / self.shape.bytesPerMillisecond
            connection.pipes[stream.side].add(.bytes(Bytes(output[start..<end])), due: due)
            start = end
        }
        if self.has(.loss), self.draw(self.shape.breakOneIn) == 0 {
            self.simulation.count(.loss)
            self.breakApart(connection)
        }
    }

    /// Makes a device in between forget the connection: pieces ahead of the break arrive. Each end
    /// notices some time later, or not at all.
    private func breakApart(_ connection: SimulatedConnection) {
        guard !connection.isDead, connection.ends.count == 2 else { return }
        self.count("broken")
        for side in 0...1 {
            self.loseTail(of: connection, side)
            if self.draw(4) == 0 { continue }
            self.add(
                .sever(connection.number, side: side, .failed(LinkFailure("connection reset"))),
                after: self.drawTime(0...1_500))
        }
        connection.die()
    }

    func close(_ stream: SimulatedStream) {
        guard stream.phase != .gone, let connection = self.connections[stream.connection] else {
            return
        }
        stream.phase = .gone
        stream.forgetUser()
        if self.draw(4) == 0 {
            connection.pipes[stream.side].cut(&self.random)
            connection.pipes[stream.side].add(.reset, due: self.simulation.now + self.latency())
        } else {
            connection.pipes[stream.side].add(.goodbye, due: self.simulation.now + self.latency())
        }
        self.schedule(connection, stream.side)
        self.dropIfOver(connection)
    }

    // MARK: Arriving

    func schedule(_ connection: SimulatedConnection, _ side: Int) {
        guard !connection.pipes[side].isStepping, let next = connection.pipes[side].next else {
            return
        }
        connection.pipes[side].isStepping = true
        self.add(
            .step(connection.number, side: side), after: max(0, next - self.simulation.now))
    }

    func step(_ connection: SimulatedConnection, _ side: Int) {
        connection.pipes[side].isStepping = false
        defer { self.dropIfOver(connection) }
        guard let receiver = connection.other(than: side) else {
            return connection.pipes[side].clear()
        }
        if connection.pipes[side].isEmpty { return }
        if let due = connection.pipes[side].pieces.first?.due, due > self.simulation.now {
            return self.schedule(connection, side)
        }
        let sender = connection.ends[side]
        let passes =
            connection.isDead
            ? connection.pipes[side].passCount > 0
            : self.passes(from: sender.host, to: receiver.host)
        guard passes else { return self.stall(connection, side) }
        let isSaid =
            !connection.isDead && self.passes(from: receiver.host, to: sender.host)
        if isSaid {
            connection.pipes[side].say()
            connection.pipes[side].stalledSince = nil
        }
        guard !connection.pipes[side].pieces.isEmpty else {
            return isSaid ? self.write(sender) : self.stall(connection, side)
        }
        switch receiver.phase {
        case .connecting: return
        case .gone: return self.turnAway(connection, side, isHeard: isSaid)
        case .open: break
        }
        if let until = self.pause(of: receiver.host) {
            connection.pipes[side].isStepping = true
            return self.add(
                .step(connection.number, side: side), after: until - self.simulation.now)
        }
        if !isSaid, connection.pipes[side].stalledSince == nil {
            connection.pipes[side].stalledSince = self.simulation.now
        }
        connection.pipes[side].passCount -= 1
        let content = connection.pipes[side].removeFirst(isSaid: isSaid)
        self.arrive(content, at: receiver)
        self.write(sender)
    }

    private func arrive(_ content: StreamPipe.Content, at receiver: SimulatedStream) {
        switch content {
        case .bytes(let bytes):
            self.simulation.mix(
                13, receiver.host.raw, UInt32(receiver.side), UInt64(receiver.connection),
                UInt64(bytes.count))
            self.call(receiver) { $0.received(bytes) }
        case .goodbye: self.end(receiver, .closed)
        case .reset: self.end(receiver, .failed(LinkFailure("connection reset")))
        }
    }

    /// Lets nothing through: bytes are sent again and again, until the sender's system gives the
    /// connection up. An end that only receives hears nothing of that.
    private func stall(_ connection: SimulatedConnection, _ side: Int) {
        let sender = connection.ends[side]
        let since = connection.pipes[side].stalledSince ?? self.simulation.now
        connection.pipes[side].stalledSince = since
        if self.simulation.now - since >= sender.patience {
            connection.pipes[side].clear()
            if sender.phase != .gone { self.count("given up by the system") }
            // Its process may be paused, and write on before it notices: nothing may arrive behind
            // a gap.
            if self.pause(of: sender.host) != nil { connection.die() }
            return self.end(sender, .failed(LinkFailure("connection timed out")))
        }
        connection.pipes[side].isStepping = true
        self.add(.step(connection.number, side: side), after: self.drawTime(20...300))
    }

    /// The receiver's machine knows of no such connection.
    private func turnAway(_ connection: SimulatedConnection, _ side: Int, isHeard: Bool) {
        let sender = connection.ends[side]
        if sender.phase == .gone { return connection.pipes[side].clear() }
        guard isHeard else { return self.stall(connection, side) }
        connection.pipes[side].clear()
        self.count("half-open, turned away")
        self.add(
            .sever(connection.number, side: side, .failed(LinkFailure("connection reset"))),
            after: self.latency())
    }
}
