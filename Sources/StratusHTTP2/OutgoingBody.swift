import StratusModel

/// Bytes of one message's body that wait for the peer's windows.
struct OutgoingBody {
    private var chunks: [Bytes] = []
    private var first = 0
    private var offset = 0
    private(set) var pendingCount = 0
    private(set) var isEnded = false
    /// The library asked when there was nothing, and must be told of more.
    var isDeferred = false

    mutating func append(_ bytes: Bytes) {
        guard !bytes.isEmpty else { return }
        self.chunks.append(bytes)
        self.pendingCount += bytes.count
    }

    mutating func end() { self.isEnded = true }

    /// Fills `room` as far as there are bytes.
    mutating func take(into room: UnsafeMutableBufferPointer<UInt8>) -> Int {
        var count = 0
        while count < room.count, self.first < self.chunks.count {
            let chunk = self.chunks[self.first]
            let step = min(room.count - count, chunk.count - self.offset)
            chunk.withUnsafeBufferPointer { source in
                let from = UnsafeBufferPointer(rebasing: source[self.offset..<(self.offset + step)])
                _ = UnsafeMutableBufferPointer(rebasing: room[count...]).update(from: from)
            }
            count += step
            self.offset += step
            if self.offset == chunk.count {
                self.first += 1
                self.offset = 0
            }
        }
        if self.first == self.chunks.count {
            self.chunks.removeAll(keepingCapacity: true)
            self.first = 0
        }
        self.pendingCount -= count
        return count
    }
}
