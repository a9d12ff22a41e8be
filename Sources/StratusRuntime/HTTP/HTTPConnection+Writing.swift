import StratusHTTP
import StratusModel

/// The answering half: from the handler's response to bytes on the socket.
extension HTTPConnection {
    /// Writes the answer, pulling its body as fast as the client takes it.
    func answer(_ exchange: HTTPExchange, with response: HTTPResponse) async {
        self.loop.assertCurrent()
        defer { withExtendedLifetime(response.held) {} }
        // The client is gone, or was refused meanwhile.
        guard self.isAnswering(exchange) else { return }
        if let refusal = exchange.refusal {
            self.answerRefused(exchange, refusal, with: response)
            return self.finish(exchange)
        }
        self.borrowOutput()
        let response = ResponseCompression.applied(
            to: response, for: exchange.head, sizeMin: self.shard.gzipSizeMin)
        switch response.body {
        case .empty:
            self.begin(response, exchange, bodyLength: 0)
        case .bytes(let bytes):
            self.begin(response, exchange, bodyLength: bytes.count)
            guard await self.write(bytes, for: exchange) else { return }
        case .stream(let body, let length):
            self.begin(response, exchange, bodyLength: length)
            let isBodiless = exchange.head.method == "HEAD" || HTTPStatus.hasNoBody(response.status)
            if !isBodiless {
                guard await self.pull(body, for: exchange) else { return }
            }
        }
        self.machine.endResponse(into: &self.output)
        self.finish(exchange)
    }

    private func begin(_ response: HTTPResponse, _ exchange: HTTPExchange, bodyLength: Int?) {
        self.machine.beginResponse(
            status: response.status, headers: response.headers, bodyLength: bodyLength,
            ready: response.ready.map { ($0, exchange.identity) },
            prewritten: self.shard.dateLine(), into: &self.output)
    }

    /// The body was too large: the status is settled, the form is the handler's.
    private func answerRefused(
        _ exchange: HTTPExchange, _ refusal: HTTPRefusal, with response: HTTPResponse
    ) {
        self.borrowOutput()
        var body: Bytes?
        if case .bytes(let bytes) = response.body { body = bytes }
        self.machine.writeRefusal(
            refusal,
            headers: body == nil ? HeaderFields() : response.allHeaders(exchange.identity),
            body: body,
            prewritten: self.shard.dateLine(), into: &self.output)
    }

    private func isAnswering(_ exchange: HTTPExchange) -> Bool {
        self.exchange === exchange && self.stage == .open
    }

    private func finish(_ exchange: HTTPExchange) {
        self.exchange = nil
        exchange.task = nil
        exchange.letGo()
        self.tellRequestEnded()
        guard !self.isAdvancing else { return }
        self.advance()
        self.settle()
    }

    /// - Returns: whether all of it is on its way.
    private func write(_ bytes: Bytes, for exchange: HTTPExchange) async -> Bool {
        let pieceSize = self.shard.limits.outputBufferSizeMax.raw
        if bytes.count <= pieceSize {
            self.machine.writeBody(bytes, into: &self.output)
            return true
        }
        var at = 0
        while at < bytes.count {
            let end = min(at + pieceSize, bytes.count)
            self.borrowOutput()
            self.machine.writeBody(bytes.span.extracting(at..<end), into: &self.output)
            at = end
            guard await self.drained(for: exchange) else { return false }
        }
        return true
    }

    private func pull(_ body: any ResponseBody, for exchange: HTTPExchange) async -> Bool {
        do {
            // What is written so far leaves before the first piece is waited for.
            guard await self.drained(for: exchange) else { return false }
            while let piece = try await body.next() {
                guard self.isAnswering(exchange) else { return false }
                self.borrowOutput()
                self.machine.writeBody(piece, into: &self.output)
                guard await self.drained(for: exchange) else { return false }
            }
            return self.isAnswering(exchange)
        } catch {
            // A part must not be taken for the whole.
            if self.isAnswering(exchange) { self.close(isCut: true) }
            return false
        }
    }

    /// Sends what there is and returns once more may follow: false when the connection has ended.
    private func drained(for exchange: HTTPExchange) async -> Bool {
        self.loop.assertCurrent()
        self.flush()
        if !self.isAdvancing { self.settle() }
        guard self.isAnswering(exchange) else { return false }
        guard self.isOutputBlocked else { return true }
        return await withCheckedContinuation { continuation in
            // The way here may lead through the loop's queue: look again before waiting.
            guard self.isAnswering(exchange) else { return continuation.resume(returning: false) }
            guard self.isOutputBlocked else { return continuation.resume(returning: true) }
            self.outputWaiter = continuation
        }
    }

    // MARK: Bytes

    /// Buffers are lent by the shard, so that an idle connection has none.
    func borrowOutput() {
        if self.output.capacity == 0 { swap(&self.output, &self.shard.spareOutput) }
    }

    private func returnOutput() {
        self.outputStart = 0
        if self.shard.spareOutput.capacity == 0
            && self.output.capacity <= 2 * self.shard.limits.outputBufferSizeMax.raw
        {
            self.output.removeAll(keepingCapacity: true)
            swap(&self.output, &self.shard.spareOutput)
        } else {
            self.output = []
        }
    }

    /// Sends as much as the socket takes.
    func flush() {
        guard self.stage == .open || self.stage == .lingering else { return }
        while self.outputStart < self.output.count {
            let transfer = self.output.withUnsafeBytes {
                self.transport.write(UnsafeRawBufferPointer(rebasing: $0[self.outputStart...]))
            }
            switch transfer {
            case .moved(let count):
                self.outputStart += count
                if self.isSendingBlocked {
                    self.deadlines.handle(.sent(ByteCount(count)), at: self.loop.now)
                }
            case .blocked:
                if self.output.count - self.outputStart < self.shard.limits.outputBufferSizeMax.raw
                {
                    self.resumeOutputWaiter(true)
                }
                self.isSendingBlocked = true
                return self.deadlines.handle(.sendingBlocked, at: self.loop.now)
            case .ended, .failed:
                return self.close(isCut: true)
            }
        }
        if self.isSendingBlocked {
            self.isSendingBlocked = false
            self.deadlines.handle(.sendingDrained, at: self.loop.now)
        }
        if self.output.capacity > 0 { self.returnOutput() }
        self.resumeOutputWaiter(true)
    }

    func resumeOutputWaiter(_ isOpen: Bool) {
        guard let waiter = self.outputWaiter else { return }
        self.outputWaiter = nil
        waiter.resume(returning: isOpen)
    }
}
