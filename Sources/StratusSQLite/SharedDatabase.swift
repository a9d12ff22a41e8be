import CSQLite
import StratusModel
import Synchronization

/// The state that all connections of this process to one database share: locks, the WAL's index,
/// and what is known of the WAL's frames. Released when the last of them closes.
///
/// `@unchecked Sendable`: `state` is guarded by its mutex; the regions are memory that SQLite
/// itself shares between its connections under the locks kept here. It would go if SQLite's shared
/// memory could be typed.
final class SharedDatabase: @unchecked Sendable {
    private struct State {
        // File locks. Reserved, pending and exclusive have one holder.
        var shared: Set<ObjectIdentifier> = []
        var writer: ObjectIdentifier?
        var isPending = false
        var isExclusive = false
        // Shared-memory locks, by slot.
        var slots = [Slot](repeating: Slot(), count: Int(SQLITE_SHM_NLOCK))
        var regions: [UnsafeMutableRawPointer] = []
        // The CRC-32C of the page in each WAL frame, from the time it was written or recovered.
        var frames: [UInt32?] = []
        var isCheckpointing = false
    }
    private struct Slot {
        var shared: Set<ObjectIdentifier> = []
        var exclusive: ObjectIdentifier?
    }

    private let state = Mutex(State())

    deinit { self.state.withLock { for region in $0.regions { region.deallocate() } } }

    // MARK: File locks

    func lock(_ level: Int32, by owner: ObjectIdentifier) -> Int32 {
        self.state.withLock { state in
            switch level {
            case SQLITE_LOCK_SHARED:
                if state.shared.contains(owner) { return SQLITE_OK }
                if state.isPending || state.isExclusive { return SQLITE_BUSY }
                state.shared.insert(owner)
            case SQLITE_LOCK_RESERVED:
                if let writer = state.writer { return writer == owner ? SQLITE_OK : SQLITE_BUSY }
                state.writer = owner
            default:
                if let writer = state.writer, writer != owner { return SQLITE_BUSY }
                state.writer = owner
                state.isPending = true
                if state.shared.contains(where: { $0 != owner }) { return SQLITE_BUSY }
                state.isExclusive = true
            }
            return SQLITE_OK
        }
    }

    func unlock(_ level: Int32, by owner: ObjectIdentifier) {
        self.state.withLock { state in
            if state.writer == owner {
                state.writer = nil
                state.isPending = false
                state.isExclusive = false
            }
            if level == SQLITE_LOCK_NONE { state.shared.remove(owner) }
        }
    }

    var isReserved: Bool { self.state.withLock { $0.writer != nil } }

    // MARK: Shared memory

    func region(_ number: Int, size: Int, extend: Bool) -> UnsafeMutableRawPointer? {
        self.state.withLock { state in
            if extend {
                while state.regions.count <= number {
                    let region = UnsafeMutableRawPointer.allocate(byteCount: size, alignment: 64)
                    region.initializeMemory(as: UInt8.self, repeating: 0, count: size)
                    state.regions.append(region)
                }
            }
            return number < state.regions.count ? state.regions[number] : nil
        }
    }

    func sharedMemoryLock(_ slots: Range<Int>, _ flags: Int32, by owner: ObjectIdentifier) -> Int32
    {
        self.state.withLock { state in
            if flags & SQLITE_SHM_UNLOCK != 0 {
                for slot in slots {
                    state.slots[slot].shared.remove(owner)
                    if state.slots[slot].exclusive == owner { state.slots[slot].exclusive = nil }
                }
                return SQLITE_OK
            }
            let isShared = flags & SQLITE_SHM_SHARED != 0
            for slot in slots {
                if let holder = state.slots[slot].exclusive, holder != owner { return SQLITE_BUSY }
                if !isShared, state.slots[slot].shared.contains(where: { $0 != owner }) {
                    return SQLITE_BUSY
                }
            }
            for slot in slots {
                if isShared {
                    state.slots[slot].shared.insert(owner)
                } else {
                    state.slots[slot].exclusive = owner
                }
            }
            return SQLITE_OK
        }
    }

    /// A connection is gone: whatever it still held goes with it.
    func forget(_ owner: ObjectIdentifier) {
        self.unlock(SQLITE_LOCK_NONE, by: owner)
        _ = self.sharedMemoryLock(
            0..<Int(SQLITE_SHM_NLOCK), Int32(SQLITE_SHM_UNLOCK), by: owner)
    }

    // MARK: The WAL

    func remember(frame: Int, crc: UInt32?) {
        self.state.withLock { state in
            while state.frames.count <= frame { state.frames.append(nil) }
            state.frames[frame] = crc
        }
    }

    /// nil for a frame that nobody wrote or recovered in this process.
    func crc(ofFrame frame: Int) -> UInt32? {
        self.state.withLock { frame < $0.frames.count ? $0.frames[frame] : nil }
    }

    /// Notes that a checkpoint begins or ends. This SQLite loses committed rows if a COMMIT
    /// restarts the WAL during a checkpoint. The owner of the connections keeps the two apart; here
    /// it is asserted.
    func noteCheckpoint(isRunning: Bool) {
        self.state.withLock { $0.isCheckpointing = isRunning }
    }
    func assertNoCheckpoint() {
        precondition(
            !self.state.withLock { $0.isCheckpointing },
            "a COMMIT writes the WAL beside a checkpoint: the gate is broken")
    }
}
