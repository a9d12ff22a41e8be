import StratusHTTP
import StratusHTTP2
import StratusModel

/// The answering half: from a handler's response to a stream's frames.
extension HTTP2Connection {
    /// Writes the answer, pulling its body as fast as the client takes it.
    func answer(_ stream: HTTP2Stream, with response: HTTPResponse) async {
        self.loop.assertCurrent()
        defer {
            withExtendedLifetime(response.held) {}
            self.ended(stream)
            self.pumpSoon()
        }
        // The client is gone, or has ended the stream.
        guard !stream.isOver, self.stage == .open else { return }
        stream.hasAnswerBegun = true
        stream.awaitsContinue = false
        var response = ResponseCompression.applied(
            to: response, for: stream.exchange.head, sizeMin: self.shard.gzipSizeMin)
        if let refusal = stream.exchange.refusal { response.status = refusal.status }
        switch response.body {
        case .empty:
            self.begin(stream, response, length: 0, hasBody: false)
        case .bytes(let bytes):
            let hasBody = !bytes.isEmpty && self.mayHaveBody(stream, response)
            self.begin(stream, response, length: bytes.count, hasBody: hasBody)
            if hasBody {
                self.session.append(bytes, to: stream.id)
                self.session.endBody(of: stream.id)
                guard await self.drained(stream, to: 0) else { return }
            }
        case .stream(let body, let length):
            let hasBody = length != 0 && self.mayHaveBody(stream, response)
            self.begin(stream, response, length: length, hasBody: hasBody)
            if hasBody { guard await self.pull(body, length, for: stream) else { return } }
        }
        self.finish(stream)
    }

    /// What the handler says of a whole request without waiting: the answer, or who answers. Nil:
    /// the plan for its head.
    func answerAtOnce(_ exchange: HTTPExchange) -> (response: HTTPResponse?, plan: RequestPlan?)? {
        guard let body = exchange.wholeBody,
            let view = RequestView(laying: exchange.head, body: body, into: &self.laid)
        else { return nil }
        var answer = AnswerBuffer()
        let laid = self.laid
        let step = self.shard.handler.answer(
            view, laid.span,
            SurfaceCall(
                identity: exchange.identity, peer: self.peer,
                isSecure: self.transport.session != nil, version: .http2, callers: self.callers),
            into: &answer)
        switch step {
        case .plan: return nil
        case .task(let plan): return (nil, plan)
        case .done:
            return (
                HTTPResponse(
                    status: answer.status, headers: answer.headers, body: .bytes(answer.body)), nil
            )
        }
    }

    private func mayHaveBody(_ stream: HTTP2Stream, _ response: HTTPResponse) -> Bool {
        stream.exchange.head.method != "HEAD" && !HTTPStatus.hasNoBody(response.status)
    }

    private func begin(
        _ stream: HTTP2Stream, _ response: HTTPResponse, length: Int?, hasBody: Bool
    ) {
        self.session.respond(
            stream.id,
            FieldBlock(
                status: response.status,
                headers: response.allHeaders(stream.exchange.identity), bodyLength: length,
                date: self.date), hasBody: hasBody)
    }

    /// The line without its name and its line end.
    private var date: ArraySlice<UInt8> { self.shard.dateLine().dropFirst(6).dropLast(2) }

    /// A message that breaks the rules is answered here, in the handler's form.
    func writeRefusal(_ refusal: HTTPRefusal, to id: Int32) {
        let form = self.shard.handler.form(of: refusal)
        let headers = form?.headers ?? ["content-type": "text/plain; charset=utf-8"]
        let body = form?.body ?? Bytes("\(refusal.rawValue)\n".utf8)
        self.session.respond(
            id,
            FieldBlock(
                status: refusal.status, headers: headers, bodyLength: body.count, date: self.date),
            hasBody: !body.isEmpty)
        self.session.append(body, to: id)
        self.session.endBody(of: id)
    }

    private func pull(
        _ body: any ResponseBody, _ length: Int?, for stream: HTTP2Stream
    ) async -> Bool {
        let pendingMax = self.shard.limits.outputBufferSizeMax.raw
        var count = 0
        do {
            while let piece = try await body.next() {
                self.loop.assertCurrent()
                guard !stream.isOver, self.stage == .open else { return false }
                count += piece.count
                precondition(count <= length ?? .max, "a body longer than declared")
                self.session.append(piece, to: stream.id)
                guard await self.drained(stream, to: pendingMax - 1) else { return false }
            }
        } catch {
            count = -1
        }
        guard !stream.isOver, self.stage == .open else { return false }
        guard count == length ?? count, count >= 0 else {
            // A part must not be taken for the whole.
            self.session.reset(stream.id, .internal)
            self.streams.removeValue(forKey: stream.id)?.drop()
            return false
        }
        self.session.endBody(of: stream.id)
        return await self.drained(stream, to: 0)
    }

    /// Returns once no more than `goal` bytes of the answer wait for the client: false when the
    /// stream has ended.
    private func drained(_ stream: HTTP2Stream, to goal: Int) async -> Bool {
        self.loop.assertCurrent()
        self.gather()
        guard !stream.isOver, self.stage == .open else { return false }
        self.pumpSoon()
        guard self.session.pendingCount(of: stream.id) > goal else { return true }
        if !stream.isSendingBlocked {
            stream.isSendingBlocked = true
            stream.deadlines.handle(.sendingBlocked, at: self.loop.now)
        }
        return await withCheckedContinuation { continuation in
            // The way here may lead through the loop's queue: look again before waiting.
            guard !stream.isOver, self.stage == .open else {
                return continuation.resume(returning: false)
            }
            guard self.session.pendingCount(of: stream.id) > goal else {
                return continuation.resume(returning: true)
            }
            stream.outputGoal = goal
            stream.outputWaiter = continuation
        }
    }
}
