import StratusModel

/// One file's bytes: what reads see, what the medium holds, and the changes between the two.
struct SimulatedInode {
    enum Change {
        case write(offset: Int, bytes: Bytes)
        case resize(Int)
    }

    static let sectorSize = 512

    private(set) var current: Bytes = []
    /// The content of the medium. Changed only by a sync, a power cut, or rot.
    private(set) var durable: Bytes = []
    private var pending: [Change] = []
    /// A sync failed: the system may hold pages as clean that the medium never got.
    private var hasDroppedPages = false

    mutating func write(_ bytes: Bytes, at offset: Int) {
        let change = Change.write(offset: offset, bytes: bytes)
        Self.apply(change, to: &self.current)
        self.pending.append(change)
    }

    mutating func resize(_ length: Int) {
        Self.apply(.resize(length), to: &self.current)
        self.pending.append(.resize(length))
    }

    mutating func sync() {
        for change in self.pending { Self.apply(change, to: &self.durable) }
        self.pending.removeAll(keepingCapacity: true)
    }

    /// The pages are dropped, not kept for another try: a later ``sync()`` finds nothing to do.
    mutating func failSync(_ random: inout SeededGenerator) {
        self.applySubset(&random)
        self.hasDroppedPages = true
    }

    mutating func restart(_ restart: DiskRestart, _ random: inout SeededGenerator) {
        switch restart {
        case .processCrash:
            // Clean pages may be evicted at any time; half of the runs see it happen here.
            guard self.hasDroppedPages, Bool.random(using: &random) else { return }
            self.sync()
            self.current = self.durable
        case .powerLoss:
            self.applySubset(&random)
            self.current = self.durable
        case .powerLossLosingAll:
            self.pending.removeAll()
            self.current = self.durable
        }
        self.hasDroppedPages = false
    }

    /// Rot: the medium and the cache change alike.
    mutating func flip(bit: Int, at offset: Int) {
        self.current[offset] ^= 1 << UInt8(bit)
        if offset < self.durable.count { self.durable[offset] ^= 1 << UInt8(bit) }
    }

    /// Any subset of the sectors written since the last sync reaches the medium; the file's length
    /// follows, or does not, on its own.
    private mutating func applySubset(_ random: inout SeededGenerator) {
        for change in self.pending {
            switch change {
            case .resize: if Bool.random(using: &random) { Self.apply(change, to: &self.durable) }
            case .write(let offset, let bytes):
                let fate = Int.random(in: 0..<4, using: &random)
                if fate == 0 { continue }
                if fate == 1 {
                    Self.apply(change, to: &self.durable)
                    continue
                }
                var position = 0
                while position < bytes.count {
                    let boundary =
                        ((offset + position) / Self.sectorSize + 1) * Self.sectorSize - offset
                    let end = min(bytes.count, boundary)
                    if Bool.random(using: &random) {
                        Self.apply(
                            .write(offset: offset + position, bytes: Bytes(bytes[position..<end])),
                            to: &self.durable)
                    }
                    position = end
                }
            }
        }
        self.pending.removeAll()
    }

    private static func apply(_ change: Change, to bytes: inout Bytes) {
        switch change {
        case .resize(let length):
            if length < bytes.count {
                bytes.removeLast(bytes.count - length)
            } else {
                bytes.append(contentsOf: repeatElement(0, count: length - bytes.count))
            }
        case .write(let offset, let new):
            if offset > bytes.count {
                bytes.append(contentsOf: repeatElement(0, count: offset - bytes.count))
            }
            let overlap = min(bytes.count - offset, new.count)
            if overlap > 0 {
                bytes.replaceSubrange(offset..<(offset + overlap), with: new[..<overlap])
            }
            if overlap < new.count { bytes.append(contentsOf: new[overlap...]) }
        }
    }
}
