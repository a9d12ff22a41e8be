package import StratusModel

/// Follows the frames that a peer sends and stops it when too many of them carry nothing.
///
/// The library behind the sessions answers or ignores such frames one by one, whatever their
/// number. This counts them all alike, unknown types included: PING, SETTINGS, PRIORITY, empty and
/// tiny DATA, empty CONTINUATION, and each RST_STREAM and WINDOW_UPDATE that nothing called for.
package struct FrameMeter: Sendable {
    private enum Kind {
        static let data: UInt8 = 0
        static let headers: UInt8 = 1
        static let reset: UInt8 = 3
        static let windowUpdate: UInt8 = 8
        static let continuation: UInt8 = 9
    }
    private enum Flag {
        static let endStream: UInt8 = 0x1
        static let endHeaders: UInt8 = 0x4
        static let padded: UInt8 = 0x8
    }
    /// Credit does not grow beyond this, however much was sent.
    private static let creditMax = 4_096

    private let dataSizeMin: Int
    private var bucket: RateBucket
    /// Bytes of the connection's preface, or of a payload, that are still to pass.
    private var skipping: Int
    private var header: [UInt8] = []
    /// A padded DATA frame's length, until the byte that says how much of it is padding.
    private var paddedLength: Int?
    private var paddedEnds = false
    private var windowCredit = 64
    private var resetCredit = 0
    /// Whether a header block has begun and not ended.
    package private(set) var isInsideHead = false
    /// Too much came; nothing after it is looked at.
    package private(set) var isStopped = false
    /// Whether the last byte ended a frame.
    package var isBetweenFrames: Bool {
        self.skipping == 0 && self.header.isEmpty && self.paddedLength == nil
    }

    package init(_ limits: HTTP2Limits, isServer: Bool) {
        self.bucket = RateBucket(burst: limits.emptyFrameBurst, rate: limits.emptyFrameRate)
        self.dataSizeMin = limits.dataFrameSizeMin
        self.skipping = isServer ? 24 : 0
        self.header.reserveCapacity(9)
    }

    /// A DATA frame went out: the peer may widen the two windows it used.
    package mutating func sentData() {
        self.windowCredit = min(self.windowCredit + 2, Self.creditMax)
    }

    /// We opened a stream, which the peer may reset.
    package mutating func openedStream() {
        self.resetCredit = min(self.resetCredit + 1, Self.creditMax)
    }

    /// - Returns: how many of the bytes to look at: all of them unless ``isStopped`` says
    ///   otherwise.
    package mutating func receive(
        _ bytes: UnsafeBufferPointer<UInt8>, at now: MonotonicTime
    ) -> Int {
        guard !self.isStopped else { return 0 }
        var at = 0
        while at < bytes.count {
            if let length = self.paddedLength, self.skipping == 0 {
                let carried = length - 1 - Int(bytes[at])
                at += 1
                self.skipping = length - 1
                self.paddedLength = nil
                guard self.judgeData(carried, ends: self.paddedEnds, now) else {
                    self.isStopped = true
                    return at
                }
                continue
            }
            if self.skipping > 0 {
                let count = min(self.skipping, bytes.count - at)
                self.skipping -= count
                at += count
                continue
            }
            while at < bytes.count, self.header.count < 9 {
                self.header.append(bytes[at])
                at += 1
            }
            guard self.header.count == 9 else { break }
            guard self.judge(now) else {
                self.isStopped = true
                return at
            }
        }
        return bytes.count
    }

    private mutating func judge(_ now: MonotonicTime) -> Bool {
        let length = Int(self.header[0]) << 16 | Int(self.header[1]) << 8 | Int(self.header[2])
        let kind = self.header[3]
        let flags = self.header[4]
        self.header.removeAll(keepingCapacity: true)
        self.skipping = length
        switch kind {
        case Kind.data:
            let ends = flags & Flag.endStream != 0
            if flags & Flag.padded != 0, length > 0 {
                self.skipping = 0
                self.paddedLength = length
                self.paddedEnds = ends
                return true
            }
            return self.judgeData(length, ends: ends, now)
        case Kind.headers:
            self.isInsideHead = flags & Flag.endHeaders == 0
            self.resetCredit = min(self.resetCredit + 1, Self.creditMax)
            self.windowCredit = min(self.windowCredit + 1, Self.creditMax)
            return true
        case Kind.continuation:
            self.isInsideHead = flags & Flag.endHeaders == 0
            return length > 0 || self.bucket.take(at: now)
        case Kind.reset where self.resetCredit > 0:
            self.resetCredit -= 1
            return true
        case Kind.windowUpdate where self.windowCredit > 0:
            self.windowCredit -= 1
            return true
        default:
            return self.bucket.take(at: now)
        }
    }

    private mutating func judgeData(_ carried: Int, ends: Bool, _ now: MonotonicTime) -> Bool {
        carried >= self.dataSizeMin || ends || self.bucket.take(at: now)
    }
}
