import StratusModel

/// The places of rows by the hashes of their keys: a table with open addressing. Nothing depends on
/// the order of its slots.
struct KeyIndex {
    /// The hash of a key, of which the index of every table makes use. Keys come from clients, and
    /// could be made so that all of them collide: no more are in memory at once than a flush bounds.
    static func hash(_ key: borrowing RawSpan) -> UInt64 {
        var hash = SipHash128(key: (0x6B65_7949_6E64_6578, 0x526F_7773_4F66_4D65))
        unsafe key.withUnsafeBytes { unsafe hash.absorb($0) }
        return hash.finish().low
    }

    /// Zero: free. Otherwise the upper half of the hash, and below it the place plus one.
    private var slots: [UInt64] = []
    /// By place.
    private var hashes: [UInt64] = []

    /// The first place for whose hash `isMeant` holds.
    func place(_ hash: UInt64, where isMeant: (Int) -> Bool) -> Int? {
        if self.hashes.isEmpty { return nil }
        let mask = self.slots.count - 1
        var slot = Int(truncatingIfNeeded: hash) & mask
        while true {
            let value = self.slots[slot]
            if value == 0 { return nil }
            if value >> 32 == hash >> 32 {
                let place = Int(value & 0xFFFF_FFFF) - 1
                if isMeant(place) { return place }
            }
            slot = (slot + 1) & mask
        }
    }

    /// Adds the next place, under a key that is not there.
    mutating func append(_ hash: UInt64) {
        self.hashes.append(hash)
        if self.hashes.count * 4 > self.slots.count * 3 {
            self.slots = Array(repeating: 0, count: max(32, self.slots.count * 2))
            for place in self.hashes.indices { self.take(place) }
        } else {
            self.take(self.hashes.count - 1)
        }
    }

    private mutating func take(_ place: Int) {
        let hash = self.hashes[place]
        let mask = self.slots.count - 1
        var slot = Int(truncatingIfNeeded: hash) & mask
        while self.slots[slot] != 0 { slot = (slot + 1) & mask }
        self.slots[slot] = (hash >> 32) << 32 | UInt64(place + 1)
    }

    mutating func removeAll() {
        if self.hashes.isEmpty { return }
        self.hashes.removeAll(keepingCapacity: true)
        // What one large batch needed is not kept for ever.
        if self.slots.count > 16_384 {
            self = KeyIndex()
        } else {
            for slot in self.slots.indices { self.slots[slot] = 0 }
        }
    }
}
