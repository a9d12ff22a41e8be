import StratusModel

/// One direction of a simulated connection: what was written and has not arrived yet.
struct StreamPipe {
    enum Content {
        case bytes(Bytes)
        /// The writer has closed, or its process ended: nothing more comes.
        case goodbye
        /// Like ``goodbye``, from a machine that knows no such connection.
        case reset
    }

    struct Piece {
        var content: Content
        var due: Int64
    }

    private(set) var pieces: [Piece] = []
    /// Written, and not known to have arrived.
    private(set) var size = 0
    /// Arrived, but what says so is held up on its way back.
    private(set) var unsaidSize = 0
    var stalledSince: Int64?
    var isStepping = false
    /// Nothing arrives before: earlier pieces or the end of the handshake come first.
    var openAt: Int64 = 0
    /// The pieces of a broken connection that were ahead of the break.
    var passCount = 0

    var isEmpty: Bool { self.pieces.isEmpty && self.unsaidSize == 0 }
    var next: Int64? { self.pieces.first?.due ?? (self.unsaidSize > 0 ? self.openAt : nil) }

    mutating func add(_ content: Content, due: Int64) {
        self.openAt = max(self.openAt, due)
        if case .bytes(let bytes) = content { self.size += bytes.count }
        self.pieces.append(Piece(content: content, due: self.openAt))
    }

    /// The first piece has arrived, and its writer hears of that or not.
    mutating func removeFirst(isSaid: Bool) -> Content {
        let piece = self.pieces.removeFirst()
        if case .bytes(let bytes) = piece.content {
            if isSaid { self.size -= bytes.count } else { self.unsaidSize += bytes.count }
        }
        return piece.content
    }

    mutating func say() {
        self.size -= self.unsaidSize
        self.unsaidSize = 0
    }

    /// Loses everything from some byte on, or nothing.
    mutating func cut(_ random: inout SeededGenerator) {
        let count = Int.random(in: 0...self.pieces.count, using: &random)
        guard count < self.pieces.count else { return }
        for piece in self.pieces[count...] {
            if case .bytes(let bytes) = piece.content { self.size -= bytes.count }
        }
        let first = self.pieces[count]
        self.pieces.removeLast(self.pieces.count - count)
        if case .bytes(let bytes) = first.content, bytes.count > 1 {
            let kept = Int.random(in: 0..<bytes.count, using: &random)
            if kept > 0 { self.add(.bytes(Bytes(bytes[..<kept])), due: first.due) }
        }
        self.passCount = min(self.passCount, self.pieces.count)
    }

    /// Delays the pieces under way: they wait in some buffer between the ends.
    mutating func delay(by time: Int64) {
        for position in self.pieces.indices { self.pieces[position].due += time }
        self.openAt += time
    }

    mutating func clear() {
        self.pieces = []
        self.size = 0
        self.unsaidSize = 0
        self.stalledSince = nil
    }
}
