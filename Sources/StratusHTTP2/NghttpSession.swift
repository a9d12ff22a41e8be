import CNghttp2
import StratusHTTP
import StratusModel

/// The lifetime of one session of nghttp2: bytes in, bytes out, and what it says in between.
///
/// Not `Sendable`: one thread at a time, the one that owns the connection.
final class NghttpSession {
    private let isServer: Bool
    private var pointer: OpaquePointer!
    private unowned let listener: any SessionListener
    private(set) var meter: FrameMeter
    private(set) var outgoing: [Int32: OutgoingBody] = [:]
    /// Nothing more will be read: the peer broke a rule that ends the connection.
    private(set) var isBroken = false
    /// The error code of the last GOAWAY that we sent.
    private(set) var sentGoAway: HTTP2ErrorCode?

    /// - Parameter listener: owns this.
    init(_ limits: HTTP2Limits, isServer: Bool, listener: any SessionListener) {
        self.isServer = isServer
        self.listener = listener
        self.meter = FrameMeter(limits, isServer: isServer)
        var callbacks: OpaquePointer?
        var option: OpaquePointer?
        guard nghttp2_session_callbacks_new(&callbacks) == 0, nghttp2_option_new(&option) == 0
        else {
            preconditionFailure("nghttp2 has no memory")
        }
        defer {
            nghttp2_session_callbacks_del(callbacks)
            nghttp2_option_del(option)
        }
        Self.listen(callbacks)
        nghttp2_option_set_no_auto_window_update(option, 1)
        nghttp2_option_set_no_closed_streams(option, 1)
        nghttp2_option_set_max_outbound_ack(option, limits.acknowledgementCountMax)
        nghttp2_option_set_max_settings(option, limits.settingCountMax)
        nghttp2_option_set_max_send_header_block_length(option, 256 << 10)
        // Ours counts by the caller's clock and comes first.
        stratus_nghttp2_limit_floods(
            option, limits.continuationCountMax, UInt64(limits.unansweredBurst) * 100,
            UInt64(limits.unansweredRate) * 100)
        var session: OpaquePointer?
        let context = Unmanaged.passUnretained(self).toOpaque()
        let code =
            isServer
            ? nghttp2_session_server_new2(&session, callbacks, context, option)
            : nghttp2_session_client_new2(&session, callbacks, context, option)
        precondition(code == 0, "nghttp2 has no memory")
        self.pointer = session
        self.submitSettings(limits)
    }

    deinit { nghttp2_session_del(self.pointer) }

    private func submitSettings(_ limits: HTTP2Limits) {
        let listSize = limits.message.headerSizeMax.raw + 32 * limits.message.headerCountMax
        var settings = [
            Self.entry(NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, limits.streamWindow.raw),
            Self.entry(NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, listSize),
        ]
        if self.isServer {
            settings.append(
                Self.entry(NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, limits.streamCountMax))
            // The tree of priorities is work that a client chooses and nobody needs.
            settings.append(Self.entry(NGHTTP2_SETTINGS_NO_RFC7540_PRIORITIES, 1))
        } else {
            settings.append(Self.entry(NGHTTP2_SETTINGS_ENABLE_PUSH, 0))
        }
        var code = nghttp2_submit_settings(self.pointer, 0, settings, settings.count)
        precondition(code == 0, "nghttp2 refuses settings (\(code))")
        code = nghttp2_session_set_local_window_size(
            self.pointer, 0, 0, Int32(clamping: limits.connectionWindow.raw))
        precondition(code == 0, "nghttp2 refuses a window (\(code))")
    }

    private static func entry(
        _ identifier: nghttp2_settings_id, _ value: Int
    ) -> nghttp2_settings_entry {
        nghttp2_settings_entry(
            settings_id: Int32(identifier.rawValue), value: UInt32(clamping: value))
    }

    // MARK: Bytes

    /// Takes what was received. Afterwards the listener has been told everything.
    func receive(_ bytes: UnsafeBufferPointer<UInt8>, at now: MonotonicTime) {
        guard !self.isBroken else { return }
        let count = self.meter.receive(bytes, at: now)
        if count > 0 {
            let used = nghttp2_session_mem_recv(self.pointer, bytes.baseAddress, count)
            if used < 0 { return self.give(up: Int32(used)) }
        }
        if self.meter.isStopped { self.terminate(.enhanceYourCalm) }
    }

    private func give(up code: Int32) {
        switch code {
        case NGHTTP2_ERR_FLOODED.rawValue, NGHTTP2_ERR_TOO_MANY_CONTINUATIONS.rawValue:
            self.terminate(.enhanceYourCalm)
        default:
            self.terminate(.protocolViolation)
        }
    }

    /// Says why, then nothing more is read.
    func terminate(_ code: HTTP2ErrorCode) {
        guard !self.isBroken else { return }
        self.isBroken = true
        nghttp2_session_terminate_session(self.pointer, code.rawValue)
    }

    /// Appends what is to be sent until `output` holds `sizeMax` bytes or there is no more.
    func send(into output: inout Bytes, sizeMax: Int) {
        while output.count < sizeMax {
            var start: UnsafePointer<UInt8>?
            let count = nghttp2_session_mem_send(self.pointer, &start)
            guard count > 0, let start else {
                if count < 0 { self.isBroken = true }
                return
            }
            output.append(contentsOf: UnsafeBufferPointer(start: start, count: count))
        }
    }

    var wantsRead: Bool { !self.isBroken && nghttp2_session_want_read(self.pointer) != 0 }
    var wantsWrite: Bool { nghttp2_session_want_write(self.pointer) != 0 }

    // MARK: Messages

    func respond(_ stream: Int32, _ block: FieldBlock, hasBody: Bool) {
        if hasBody { self.outgoing[stream] = OutgoingBody() }
        Self.withFields(block) { fields, count in
            var provider = Self.provider
            _ =
                hasBody
                ? nghttp2_submit_response(self.pointer, stream, fields, count, &provider)
                : nghttp2_submit_response(self.pointer, stream, fields, count, nil)
        }
    }

    func sendInterim(_ stream: Int32, _ block: FieldBlock) {
        Self.withFields(block) { fields, count in
            _ = nghttp2_submit_headers(self.pointer, 0, stream, nil, fields, count, nil)
        }
    }

    /// - Returns: the new stream; nil when the connection has no numbers left, or is ending.
    func request(_ block: FieldBlock, hasBody: Bool) -> Int32? {
        var stream: Int32 = 0
        Self.withFields(block) { fields, count in
            var provider = Self.provider
            stream =
                hasBody
                ? nghttp2_submit_request(self.pointer, nil, fields, count, &provider, nil)
                : nghttp2_submit_request(self.pointer, nil, fields, count, nil, nil)
        }
        guard stream > 0 else { return nil }
        if hasBody { self.outgoing[stream] = OutgoingBody() }
        self.meter.openedStream()
        return stream
    }

    func append(_ bytes: Bytes, to stream: Int32) {
        self.outgoing[stream]?.append(bytes)
        self.resume(stream)
    }

    func endBody(of stream: Int32) {
        self.outgoing[stream]?.end()
        self.resume(stream)
    }

    private func resume(_ stream: Int32) {
        guard self.outgoing[stream]?.isDeferred == true else { return }
        self.outgoing[stream]?.isDeferred = false
        nghttp2_session_resume_data(self.pointer, stream)
    }

    func pendingCount(of stream: Int32) -> Int { self.outgoing[stream]?.pendingCount ?? 0 }

    /// Somebody took so many bytes of a body: the peer may send more.
    func consume(_ count: Int, of stream: Int32) {
        guard count > 0 else { return }
        nghttp2_session_consume(self.pointer, stream, count)
    }

    func consumeConnection(_ count: Int) {
        guard count > 0 else { return }
        nghttp2_session_consume_connection(self.pointer, count)
    }

    /// The bytes that the peer may still send to this stream.
    func window(of stream: Int32) -> Int {
        Int(
            min(
                nghttp2_session_get_stream_local_window_size(self.pointer, stream),
                nghttp2_session_get_local_window_size(self.pointer)))
    }

    func reset(_ stream: Int32, _ code: HTTP2ErrorCode) {
        nghttp2_submit_rst_stream(self.pointer, 0, stream, code.rawValue)
    }

    /// Its parts go out in turn with those of other streams, whatever the client prefers.
    func shareFairly(_ stream: Int32) {
        var priority = nghttp2_extpri(urgency: 3, inc: 1)
        nghttp2_session_change_extpri_stream_priority(self.pointer, stream, &priority, 1)
    }

    func ping() {
        nghttp2_submit_ping(self.pointer, 0, nil)
    }

    func announceShutdown() { nghttp2_submit_shutdown_notice(self.pointer) }

    /// Streams that the peer opened until now are served, later ones are not.
    func goAway(_ code: HTTP2ErrorCode) {
        let last = nghttp2_session_get_last_proc_stream_id(self.pointer)
        nghttp2_submit_goaway(self.pointer, 0, last, code.rawValue, nil, 0)
    }

    var remoteStreamCountMax: Int {
        Int(
            nghttp2_session_get_remote_settings(
                self.pointer, NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS))
    }

    /// The library keeps the bytes it was given only until it returns.
    private static func withFields(
        _ block: FieldBlock, _ body: (UnsafePointer<nghttp2_nv>, Int) -> Void
    ) {
        block.text.withUnsafeBufferPointer { text in
            let base = UnsafeMutablePointer(mutating: text.baseAddress!)
            let fields = block.fields.map {
                nghttp2_nv(
                    name: base + $0.name.lowerBound, value: base + $0.value.lowerBound,
                    namelen: $0.name.count, valuelen: $0.value.count, flags: 0)
            }
            fields.withUnsafeBufferPointer { body($0.baseAddress!, $0.count) }
        }
    }

    // MARK: Callbacks

    private static func me(_ context: UnsafeMutableRawPointer?) -> NghttpSession {
        Unmanaged<NghttpSession>.fromOpaque(context!).takeUnretainedValue()
    }

    private static var provider: nghttp2_data_provider {
        nghttp2_data_provider(
            source: nghttp2_data_source(),
            read_callback: { _, stream, room, size, flags, _, context in
                NghttpSession.me(context).fill(
                    stream, UnsafeMutableBufferPointer(start: room, count: size), flags)
            })
    }

    private func fill(
        _ stream: Int32, _ room: UnsafeMutableBufferPointer<UInt8>,
        _ flags: UnsafeMutablePointer<UInt32>?
    ) -> Int {
        guard self.outgoing[stream] != nil else {
            return Int(NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE.rawValue)
        }
        let count = self.outgoing[stream]!.take(into: room)
        let isLast =
            self.outgoing[stream]!.isEnded && self.outgoing[stream]!.pendingCount == 0
        if isLast { flags?.pointee |= NGHTTP2_DATA_FLAG_EOF.rawValue }
        if count == 0 && !isLast {
            self.outgoing[stream]!.isDeferred = true
            return Int(NGHTTP2_ERR_DEFERRED.rawValue)
        }
        self.meter.sentData()
        self.listener.taken(stream, count)
        return count
    }

    private static func listen(_ callbacks: OpaquePointer?) {
        nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks) { _, frame, context in
            let me = NghttpSession.me(context)
            let stream = frame!.pointee.hd.stream_id
            let category = frame!.pointee.headers.cat
            let opens = category == NGHTTP2_HCAT_REQUEST || category == NGHTTP2_HCAT_RESPONSE
            guard me.listener.fieldsBegan(stream, opensStream: opens) else {
                me.reset(stream, .refusedStream)
                return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE.rawValue
            }
            return 0
        }
        nghttp2_session_callbacks_set_on_header_callback(callbacks) {
            _, frame, name, nameCount, value, valueCount, _, context in
            let me = NghttpSession.me(context)
            let stream = frame!.pointee.hd.stream_id
            let isFine = me.listener.field(
                stream, UnsafeBufferPointer(start: name, count: nameCount).span,
                UnsafeBufferPointer(start: value, count: valueCount).span)
            if isFine { return 0 }
            me.reset(stream, .enhanceYourCalm)
            return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE.rawValue
        }
        // What HTTP does not allow in a field is not ignored: the stream ends with PROTOCOL_ERROR.
        nghttp2_session_callbacks_set_on_invalid_header_callback(callbacks) {
            _, _, _, _, _, _, _, _ in NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE.rawValue
        }
        nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks) { _, frame, context in
            NghttpSession.me(context).received(frame!)
            return 0
        }
        nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks) {
            _, _, stream, bytes, count, context in
            NghttpSession.me(context).listener.data(
                stream, UnsafeBufferPointer(start: bytes, count: count))
            return 0
        }
        nghttp2_session_callbacks_set_on_stream_close_callback(callbacks) {
            _, stream, code, context in
            let me = NghttpSession.me(context)
            me.outgoing[stream] = nil
            me.listener.closed(stream, HTTP2ErrorCode(rawValue: code))
            return 0
        }
        nghttp2_session_callbacks_set_on_frame_send_callback(callbacks) { _, frame, context in
            if frame!.pointee.hd.type == UInt8(NGHTTP2_GOAWAY.rawValue) {
                NghttpSession.me(context).sentGoAway = HTTP2ErrorCode(
                    rawValue: frame!.pointee.goaway.error_code)
            }
            return 0
        }
        nghttp2_session_callbacks_set_on_frame_not_send_callback(callbacks) {
            _, frame, _, context in
            let me = NghttpSession.me(context)
            let header = frame!.pointee.hd
            if !me.isServer, header.type == UInt8(NGHTTP2_HEADERS.rawValue) {
                me.outgoing[header.stream_id] = nil
                me.listener.closed(header.stream_id, .refusedStream)
            }
            return 0
        }
    }

    private func received(_ frame: UnsafePointer<nghttp2_frame>) {
        let header = frame.pointee.hd
        let ends = header.flags & UInt8(NGHTTP2_FLAG_END_STREAM.rawValue) != 0
        switch UInt32(header.type) {
        case NGHTTP2_HEADERS.rawValue:
            self.listener.fieldsEnded(header.stream_id, endsStream: ends)
        case NGHTTP2_DATA.rawValue where ends:
            self.listener.dataEnded(header.stream_id)
        case NGHTTP2_GOAWAY.rawValue:
            self.listener.goneAway(
                lastStream: frame.pointee.goaway.last_stream_id,
                HTTP2ErrorCode(rawValue: frame.pointee.goaway.error_code))
        case NGHTTP2_PING.rawValue
        where header.flags & UInt8(NGHTTP2_FLAG_ACK.rawValue) != 0:
            self.listener.pingAnswered()
        default: break
        }
    }
}
