import StratusModel

/// Receives the library's events of one session. It is called from within the library, so nothing
/// here may call back.
protocol SessionListener: AnyObject {
    /// - Parameter opensStream: a request or an answer begins; otherwise trailers.
    /// - Returns: false to refuse the stream.
    func fieldsBegan(_ stream: Int32, opensStream: Bool) -> Bool
    /// - Returns: false to end the stream with `PROTOCOL_ERROR`.
    func field(_ stream: Int32, _ name: Span<UInt8>, _ value: Span<UInt8>) -> Bool
    func fieldsEnded(_ stream: Int32, endsStream: Bool)
    func data(_ stream: Int32, _ bytes: UnsafeBufferPointer<UInt8>)
    func dataEnded(_ stream: Int32)
    func taken(_ stream: Int32, _ count: Int)
    func closed(_ stream: Int32, _ code: HTTP2ErrorCode)
    func goneAway(lastStream: Int32, _ code: HTTP2ErrorCode)
    func pingAnswered()
}
