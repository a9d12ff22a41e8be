package import StratusCoding
package import StratusModel

// The first 4,096 bytes of a sealed file, version 1: two slots, at 0 and at 2,048, zeros elsewhere
//
// | bytes | what                                                                          |
// | ----- | ----------------------------------------------------------------------------- |
// | 8     | "STRATUSF"                                                                    |
// | 1     | version, 1                                                                    |
// | 8     | generation: one more for each writing of the key                              |
// | 72    | the file's key, wrapped under a master key: see `SealedKey`                   |
// | 4     | CRC-32C of the bytes before                                                   |
//
// A file of n bytes has 4,096 + n + 15 on disk, and 4,096 or none if it is empty. The bytes from
// 4,096 on are AES-256-XTS in units of 4,096, numbered from 0, under HKDF(file's key,
// `stratus file units 1`), 64 bytes of it. Sixteen zero bytes on disk stand for sixteen zero bytes.

/// The beginning of a sealed file: its key, twice.
package struct FileSeal: Sendable, Hashable {
    package static let headerSize = 4_096
    package static let slots = [0, 2_048]
    /// The bytes behind a file's last one. So the last block is always whole, and the length of
    /// the file on disk says how long its content is.
    package static let tailSize = 15
    private static let mark = "STRATUSF"
    private static let frame = FileFrame(mark)
    package static let encodedSize = 8 + 1 + 8 + SealedKey.encodedSize + 4

    package var generation: UInt64
    package var key: SealedKey

    package init(generation: UInt64, key: SealedKey) {
        self.generation = generation
        self.key = key
    }

    package init(decoding bytes: Bytes) throws(DecodingError) {
        self = try Self.frame.decode(bytes) { (reader, _) throws(DecodingError) in
            let generation = try reader.fixed64()
            return FileSeal(
                generation: generation,
                key: try SealedKey(decoding: reader.raw(SealedKey.encodedSize)))
        }
    }

    package var encoded: Bytes {
        Self.frame.encode { writer in
            writer.write(fixed: self.generation)
            writer.write(raw: self.key.encoded)
        }
    }

    /// A whole header, with this in both slots.
    package var header: Bytes {
        var bytes = Bytes(repeating: 0, count: Self.headerSize)
        for slot in Self.slots {
            bytes.replaceSubrange(slot..<(slot + Self.encodedSize), with: self.encoded)
        }
        return bytes
    }

    /// The beginning of a file, as it was found.
    package enum Finding: Sendable, Equatable {
        /// The sound slots, the newest first.
        case sealed([Slot])
        /// Nothing was ever written to it: its header was never synced.
        case empty
        case damaged
        /// Not one of ours, or not sealed.
        case clear
    }

    package struct Slot: Sendable, Hashable {
        package var offset: Int
        package var seal: FileSeal
    }

    /// - Parameters:
    ///   - start: up to ``headerSize`` bytes of the file.
    ///   - length: of the whole file on disk.
    package static func find(in start: Bytes, length: UInt64) -> Finding {
        func slice(_ offset: Int, _ count: Int) -> Bytes {
            Bytes(start.dropFirst(offset).prefix(count))
        }
        let found = Self.slots.compactMap { offset -> Slot? in
            guard let seal = try? FileSeal(decoding: slice(offset, Self.encodedSize)) else {
                return nil
            }
            return Slot(offset: offset, seal: seal)
        }
        if !found.isEmpty {
            return .sealed(
                found.sorted { ($0.seal.generation, $1.offset) > ($1.seal.generation, $0.offset) })
        }
        let mark = Bytes(Self.mark.utf8)
        let isMarked = Self.slots.contains { slice($0, mark.count) == mark }
        // The header is synced before anything is written behind it.
        if length <= UInt64(Self.headerSize) {
            let isBegun =
                isMarked || start.allSatisfy { $0 == 0 }
                || (start.count < mark.count && mark.starts(with: start))
            return isBegun ? .empty : .clear
        }
        return isMarked || start.allSatisfy { $0 == 0 } ? .damaged : .clear
    }
}

/// The master keys under which the keys of one data directory's files are wrapped.
package struct FileMasters: Sendable {
    package struct Master: Sendable {
        let version: UInt32
        let key: SecretBytes
        let check: Bytes

        package init(_ version: UInt32, _ key: SecretBytes) {
            self.version = version
            self.key = key
            self.check = SealedKey.check(of: key)
        }
    }

    /// Why a file's key cannot be had.
    package enum Problem: Error, Sendable, Equatable, CustomStringConvertible {
        case missing(version: UInt32)
        case other(version: UInt32)
        case damaged
        case clear

        package var description: String {
            switch self {
            case .missing(let version):
                "its key is wrapped under master key \(version), which this node was not given"
            case .other(let version):
                "its key is wrapped under another master key than the one that this node was "
                    + "given as version \(version)"
            case .damaged: "the header that holds its key is damaged"
            case .clear: "it is not sealed"
            }
        }
    }

    private let sealing: Master
    private let all: [Master]
    private let purpose: Bytes

    /// - Parameters:
    ///   - sealing: what wraps from now on.
    ///   - others: what may have wrapped before. Two keys may have one version: the check value
    ///     tells them apart.
    ///   - directory: the identity of the data directory. A file of another one does not open.
    package init(sealing: Master, others: [Master] = [], directory: RequestIdentity) {
        self.sealing = sealing
        self.all = [sealing] + others
        var writer = ByteWriter()
        writer.write(text: "stratus file key 1")
        writer.write(fixed: directory.high)
        writer.write(fixed: directory.low)
        self.purpose = writer.bytes
    }

    /// - Parameter random: unpredictable.
    package func wrap(_ key: SecretBytes, random: () -> UInt64) -> SealedKey {
        SealedKey(
            key, under: self.sealing.key, version: self.sealing.version, for: self.purpose,
            nonce: Bytes(Self.draw(2, random).prefix(12)))
    }

    /// A new key of a file.
    package func draw(random: () -> UInt64) -> SecretBytes {
        var bytes = Self.draw(SealedKey.keySize / 8, random)
        return SecretBytes(taking: &bytes)
    }

    package func isNewest(_ key: SealedKey) -> Bool {
        key.version == self.sealing.version && key.check == self.sealing.check
    }

    package func open(_ key: SealedKey) throws(Problem) -> SecretBytes {
        let given = self.all.filter { $0.version == key.version }
        if given.isEmpty { throw .missing(version: key.version) }
        guard let master = given.first(where: { $0.check == key.check }) else {
            throw .other(version: key.version)
        }
        do { return try key.open(under: master.key, for: self.purpose) } catch { throw .damaged }
    }

    /// The key of a file, from what stands at its beginning. Nil: it is empty.
    package func key(of finding: FileSeal.Finding) throws(Problem) -> SecretBytes? {
        switch finding {
        case .empty: return nil
        case .clear: throw .clear
        case .damaged: throw .damaged
        case .sealed(let slots):
            var problem = Problem.damaged
            for slot in slots {
                do throws(Problem) { return try self.open(slot.seal.key) } catch {
                    if error != .damaged { problem = error }
                }
            }
            throw problem
        }
    }

    private static func draw(_ count: Int, _ random: () -> UInt64) -> Bytes {
        (0..<count).flatMap { _ in withUnsafeBytes(of: random().littleEndian) { Bytes($0) } }
    }
}
