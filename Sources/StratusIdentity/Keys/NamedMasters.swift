package import StratusModel
package import StratusSealing

/// The master keys of an installation: the one that comes from its secret, version 0, and those
/// that were given in files, by version.
///
/// A named key is not in the data directory, unless somebody puts it there. So it protects from
/// whoever has a disk, and the secret with it.
package struct NamedMasters: MasterKeys {
    /// Versions of named keys.
    package static let versions: ClosedRange<UInt32> = 1...1_000_000

    private let zero: InstallationMaster
    private let named: [UInt32: SecretBytes]
    package let sealing: UInt32

    /// - Parameter sealing: the version that wraps from now on; one of those given, or 0.
    package init(_ zero: InstallationMaster, named: [UInt32: SecretBytes], sealing: UInt32) {
        precondition(sealing == 0 || named[sealing] != nil, "a master key that was not given")
        self.zero = zero
        self.named = named
        self.sealing = sealing
    }

    package var versions: [UInt32] { [0] + self.named.keys.sorted() }

    package func key(_ version: UInt32) -> SecretBytes? {
        version == 0 ? self.zero.key(0) : self.named[version]
    }

    /// Reads the content of a key's file: 64 hexadecimal digits, with white space around them.
    package static func key(_ content: Bytes) -> SecretBytes? {
        func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || (0x09...0x0D).contains(byte) }
        func digit(_ byte: UInt8) -> UInt8? {
            switch byte {
            case 0x30...0x39: byte - 0x30
            case 0x41...0x46: byte - 0x41 + 10
            case 0x61...0x66: byte - 0x61 + 10
            default: nil
            }
        }
        // A slice of the caller's bytes, which the caller wipes.
        guard let first = content.firstIndex(where: { !isSpace($0) }),
            let last = content.lastIndex(where: { !isSpace($0) })
        else { return nil }
        let digits = content[first...last]
        guard digits.count == 64 else { return nil }
        var key = Bytes()
        key.reserveCapacity(32)
        var high: UInt8?
        for byte in digits {
            guard let value = digit(byte) else { return nil }
            if let first = high {
                key.append(first << 4 | value)
                high = nil
            } else {
                high = value
            }
        }
        return SecretBytes(taking: &key)
    }
}
