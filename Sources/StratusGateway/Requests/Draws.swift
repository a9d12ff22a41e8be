import StratusModel
import StratusRuntime

/// The random draws that a request needs before it becomes a command: applying a command draws
/// nothing.
struct Draws {
    private var next: () -> UInt64

    init(_ next: @escaping () -> UInt64) { self.next = next }

    mutating func nextWord() -> UInt64 { self.next() }

    mutating func incarnation() -> ZoneIncarnation { ZoneIncarnation(self.next()) }

    /// A random UUID (RFC 9562, version 4), upper case.
    mutating func recordName() -> String {
        let high = self.next() & 0xFFFF_FFFF_FFFF_0FFF | 0x4000
        let low = self.next() & 0x3FFF_FFFF_FFFF_FFFF | 0x8000_0000_0000_0000
        return RequestIdentity(high: high, low: low).uuid.uppercased()
    }
}
