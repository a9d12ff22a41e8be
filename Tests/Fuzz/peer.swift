// modules: StratusCluster
// seeds: Tests/StratusCodingTests/Golden/peer-*.hex Tests/StratusCodingTests/Golden/copy-messages-*.hex
import StratusCluster
import StratusCoding
import StratusModel
import StratusPlacement

/// Fuzzes what other nodes send: frames, messages, and the questions and views inside them.
///
/// For any bytes: nothing traps, an accepted value is written and read again to the same bytes, and
/// frames give the same messages however the network cuts them. The first byte says where.
#if LIBFUZZER
    @_cdecl("LLVMFuzzerTestOneInput")
#endif
public func fuzzPeer(_ start: UnsafePointer<UInt8>, _ count: Int) -> CInt {
    let bytes = Bytes(UnsafeBufferPointer(start: start, count: count))
    check(bytes, { b throws(DecodingError) in try PeerMessage(decoding: b) }, { $0.encoded() })
    check(bytes, { b throws(DecodingError) in try NodeQuestion(decoding: b) }, { $0.encoded() })
    check(bytes, { b throws(DecodingError) in try NodeReply(decoding: b) }, { $0.encoded() })
    check(bytes, { b throws(DecodingError) in try ClusterView(decoding: b) }, { $0.encoded() })
    guard let first = bytes.first else { return 0 }
    let stream = Bytes(bytes.dropFirst())
    let whole = messages(of: [stream])
    let size = Int(first) + 1
    let pieces = stride(from: 0, to: stream.count, by: size).map {
        Bytes(stream[$0..<min(stream.count, $0 + size)])
    }
    precondition(messages(of: pieces) == whole, "pieces of \(size) bytes read otherwise")
    return 0
}

/// What arrived before a violation, and whether there was one.
private func messages(of pieces: [Bytes]) -> [Bytes] {
    var limits = PeerFrameQueue.Limits()
    limits.frameSizeMax = 64
    limits.messageSizeMax = 512
    var reader = PeerFrameReader(limits: limits)
    var found: [PeerFrameReader.Message] = []
    var isViolated = false
    for piece in pieces where !isViolated {
        do { try reader.take(piece, into: &found) } catch { isViolated = true }
    }
    for message in found { precondition(message.bytes.count <= limits.messageSizeMax) }
    return found.map { [$0.priority.rawValue] + $0.bytes } + (isViolated ? [[]] : [])
}
