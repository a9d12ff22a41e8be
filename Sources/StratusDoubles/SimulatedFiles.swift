package import StratusModel
import Synchronization

/// A disk in memory that behaves as badly as disks may.
///
/// - A power cut loses or tears written data, per sector, unless ``File/sync()`` returned.
/// - A power cut undoes a name made, replaced or removed, unless its directory was synced.
/// - Each call is one numbered operation, and a ``DiskFault`` strikes at a number. So a test can
///   fail or crash a workload at every operation in turn.
/// - The same seed and the same calls give the same disk.
///
/// After a crash the old process is dead: every handle and lock from before ``restart(after:)``
/// only fails.
package final class SimulatedFiles: Files {
    enum Node: Equatable {
        case file(Int)
        case directory
    }

    private struct NameChange {
        /// The directories whose sync makes it durable, all of them: two where a file moves from
        /// one to another. Such a move is there as a whole or not at all.
        var parents: Set<DiskPath>
        let removed: DiskPath?
        let added: (path: DiskPath, node: Node)?
    }

    private struct State {
        var random: SeededGenerator
        var inodes: [SimulatedInode] = []
        var names: [DiskPath: Node] = [.root: .directory]
        var durableNames: [DiskPath: Node] = [.root: .directory]
        var unsyncedNames: [NameChange] = []
        var locks: [DiskPath: Int] = [:]
        var lockCount = 0
        /// Counts restarts: handles of an earlier life are dead.
        var life = 0
        var isCrashed = false
        var operationCount = 0
        var faults: [DiskFault] = []
        var rates: [DiskFaultRates] = []
        var strikeCount = 0
        var capacity: Int?
        var failsWholeSectors = false
    }

    private let state: Mutex<State>

    package init(seed: UInt64) {
        self.state = Mutex(State(random: SeededGenerator(seed: seed)))
    }

    // MARK: What a test controls

    /// Operations so far, failed ones included.
    package var operationCount: Int { self.state.withLock { $0.operationCount } }
    package var isCrashed: Bool { self.state.withLock { $0.isCrashed } }
    /// Restarts so far.
    package var life: Int { self.state.withLock { $0.life } }

    /// From now on a write that fails, or is cut off by the end of its process, leaves whole
    /// sectors, as the kernel does. Without it any number of bytes is left.
    package func failWholeSectors() { self.state.withLock { $0.failsWholeSectors = true } }

    /// Adds a fault to those planned.
    package func plan(_ fault: DiskFault) { self.state.withLock { $0.faults.append(fault) } }
    package func clearFaults() {
        self.state.withLock {
            $0.faults = []
            $0.rates = []
        }
    }
    package func setRates(_ rates: DiskFaultRates...) { self.state.withLock { $0.rates = rates } }
    /// How many operations failed by themselves, as the rates say.
    package var strikeCount: Int { self.state.withLock { $0.strikeCount } }
    /// The size of all files together.
    package var usedSize: ByteCount { ByteCount(self.state.withLock { Self.usedSize($0) }) }
    /// Writes that would make the files' sum larger than this fail with `.full`; nil is no limit.
    package func setCapacity(_ capacity: ByteCount?) {
        self.state.withLock { $0.capacity = capacity?.raw }
    }

    /// The process dies now, as if at the next operation.
    package func crash() { self.state.withLock { $0.isCrashed = true } }

    /// A new process finds what the end of the old one left. Faults planned for later numbers stay.
    package func restart(after restart: DiskRestart) {
        self.state.withLock { state in
            state.life += 1
            state.isCrashed = false
            state.locks = [:]
            if restart != .processCrash {
                for change in state.unsyncedNames
                where restart == .powerLoss && Bool.random(using: &state.random) {
                    Self.apply(change, to: &state.durableNames)
                }
                state.unsyncedNames = []
                // Files in a deleted directory are gone too.
                let durable = state.durableNames
                state.durableNames = durable.filter { entry in
                    var path = entry.key
                    while path != .root {
                        path = path.parent
                        if durable[path] != .directory { return false }
                    }
                    return true
                }
                state.names = state.durableNames
            }
            // Every handle is dead: what has no name has no use.
            var named = Array(repeating: false, count: state.inodes.count)
            for case .file(let number) in state.names.values { named[number] = true }
            for case .file(let number) in state.durableNames.values { named[number] = true }
            for number in state.inodes.indices {
                if named[number] {
                    state.inodes[number].restart(restart, &state.random)
                } else {
                    state.inodes[number] = SimulatedInode()
                }
            }
        }
    }

    /// Flips one bit of a file for good: on the medium and in the cache.
    package func flip(bit: Int, at offset: Int, of path: DiskPath) {
        self.state.withLock { state in
            guard case .file(let number)? = state.names[path] else {
                preconditionFailure("no file at '\(path)' to damage")
            }
            state.inodes[number].flip(bit: bit, at: offset)
        }
    }

    /// The whole of a file as reads would see it, or as far as it is synced; nil if there is none.
    /// Not an operation.
    package func contents(of path: DiskPath, onlySynced: Bool = false) -> Bytes? {
        self.state.withLock { state in
            guard case .file(let number)? = state.names[path] else { return nil }
            return onlySynced ? state.inodes[number].durable : state.inodes[number].current
        }
    }

    /// Replaces a file as a hand from outside would: durable at once. Not an operation.
    package func plant(_ bytes: Bytes, at path: DiskPath) {
        self.state.withLock { state in
            var inode = SimulatedInode()
            inode.write(bytes, at: 0)
            inode.sync()
            state.inodes.append(inode)
            let node = Node.file(state.inodes.count - 1)
            state.names[path] = node
            state.durableNames[path] = node
        }
    }

    /// Removes a file as a hand from outside would. Not an operation.
    package func uproot(_ path: DiskPath) {
        self.state.withLock { state in
            state.names[path] = nil
            state.durableNames[path] = nil
        }
    }

    /// Every file there is, sorted. Not an operation.
    package var allFiles: [DiskPath] {
        self.state.withLock { state in
            state.names.compactMap { $0.value == .directory ? nil : $0.key }.sorted()
        }
    }

    // MARK: Files

    package func open(_ path: DiskPath, create: Bool) throws(DiskError) -> any File {
        try self.perform(.open, path) { (state, _) throws(DiskError) in
            switch state.names[path] {
            case .file(let number): return SimulatedFile(self, path, number, life: state.life)
            case .directory: throw DiskError(.denied, during: "open", path: path, code: 21)
            case nil:
                guard create, state.names[path.parent] == .directory else {
                    throw DiskError(.notFound, during: "open", path: path, code: 2)
                }
                state.inodes.append(SimulatedInode())
                let number = state.inodes.count - 1
                Self.change(
                    NameChange(
                        parents: [path.parent], removed: nil, added: (path, .file(number))),
                    &state)
                return SimulatedFile(self, path, number, life: state.life)
            }
        }
    }

    package func rename(_ from: DiskPath, to: DiskPath) throws(DiskError) {
        try self.perform(.rename, from) { (state, _) throws(DiskError) in
            guard case .file(let number)? = state.names[from],
                state.names[to.parent] == .directory
            else {
                throw DiskError(.notFound, during: "rename", path: from, code: 2)
            }
            Self.change(
                NameChange(
                    parents: [from.parent, to.parent], removed: from, added: (to, .file(number))),
                &state)
        }
    }

    package func remove(_ path: DiskPath) throws(DiskError) {
        try self.perform(.remove, path) { (state, _) throws(DiskError) in
            guard state.names[path] != nil else {
                throw DiskError(.notFound, during: "remove", path: path, code: 2)
            }
            Self.change(NameChange(parents: [path.parent], removed: path, added: nil), &state)
        }
    }

    package func exists(_ path: DiskPath) throws(DiskError) -> Bool {
        try self.perform(.exists, path) { (state, _) throws(DiskError) in state.names[path] != nil }
    }

    package func makeDirectory(_ path: DiskPath) throws(DiskError) {
        try self.perform(.makeDirectory, path) { (state, _) throws(DiskError) in
            var missing: [DiskPath] = []
            var path = path
            while state.names[path] == nil {
                missing.append(path)
                path = path.parent
            }
            for path in missing.reversed() {
                Self.change(
                    NameChange(
                        parents: [path.parent], removed: nil, added: (path, .directory)), &state)
            }
        }
    }

    package func syncDirectory(_ path: DiskPath) throws(DiskError) {
        try self.perform(.syncDirectory, path) { (state, isCrash) throws(DiskError) in
            guard state.names[path] == .directory else {
                throw DiskError(.notFound, during: "syncDirectory", path: path, code: 2)
            }
            if isCrash { return }
            for number in state.unsyncedNames.indices {
                state.unsyncedNames[number].parents.remove(path)
            }
            for change in state.unsyncedNames where change.parents.isEmpty {
                Self.apply(change, to: &state.durableNames)
            }
            state.unsyncedNames.removeAll { $0.parents.isEmpty }
        }
    }

    package func list(_ path: DiskPath) throws(DiskError) -> [DiskPath] {
        try self.perform(.list, path) { (state, _) throws(DiskError) in
            guard state.names[path] == .directory else {
                throw DiskError(.notFound, during: "list", path: path, code: 2)
            }
            let prefix = path == .root ? 0 : path.raw.utf8.count + 1
            return state.names.keys.filter { $0 != .root && $0.parent == path }
                .map { DiskPath(String($0.raw.utf8.dropFirst(prefix))!) }.sorted()
        }
    }

    package func lock(_ path: DiskPath) throws(DiskError) -> any DiskLock {
        // The lock is made outside: a lock that dies with a crash releases itself, which takes the
        // state.
        let number = try self.perform(.lock, path) { (state, _) throws(DiskError) in
            guard state.locks[path] == nil else {
                throw DiskError(.denied, during: "lock", path: path, code: 11)
            }
            if state.names[path] == nil {
                state.inodes.append(SimulatedInode())
                let node = Node.file(state.inodes.count - 1)
                Self.change(
                    NameChange(parents: [path.parent], removed: nil, added: (path, node)), &state)
            }
            state.lockCount += 1
            state.locks[path] = state.lockCount
            return state.lockCount
        }
        return SimulatedLock(self, path, number)
    }

    /// Not an operation: it does not touch the disk. Without a capacity there is more than anybody
    /// uses.
    package func space() throws(DiskError) -> DiskSpace {
        self.state.withLock { state in
            let used = Self.usedSize(state)
            let all = state.capacity ?? 1 << 50
            return DiskSpace(free: UInt64(max(0, all - used)), all: UInt64(max(0, all)))
        }
    }

    // MARK: What open files and locks call back

    func read(
        _ number: Int, _ path: DiskPath, life: Int, into buffer: UnsafeMutableRawBufferPointer,
        at offset: UInt64
    ) throws(DiskError) -> Int {
        try self.perform(.read, path, life: life) { (state, _) throws(DiskError) in
            let effect = Self.effect(on: .read, path, &state)
            var start = Int(offset)
            if case .misdirect(let distance)? = effect { start = max(0, start + Int(distance)) }
            let available = state.inodes[number].current.count - start
            let count = max(0, min(buffer.count, available))
            if count == 0 { return 0 }
            state.inodes[number].current.withUnsafeBytes { bytes in
                buffer.copyMemory(
                    from: UnsafeRawBufferPointer(rebasing: bytes[start...].prefix(count)))
            }
            if effect == .flipBit || Self.strikes(\.flippedReadOneIn, path, &state) {
                let position = Int.random(in: 0..<count, using: &state.random)
                buffer[position] ^= 1 << UInt8.random(in: 0..<8, using: &state.random)
            }
            return count
        }
    }

    func write(
        _ number: Int, _ path: DiskPath, life: Int, from buffer: UnsafeRawBufferPointer,
        at offset: UInt64
    ) throws(DiskError) {
        try self.perform(.write, path, life: life, at: offset) { (state, _) throws(DiskError) in
            try Self.reserve(
                Int(offset) + buffer.count, for: number, path, during: "write", &state)
            var start = Int(offset)
            switch Self.effect(on: .write, path, at: offset, &state) {
            case .loseWrite: return
            case .misdirect(let distance): start = max(0, start + Int(distance))
            default: break
            }
            if Self.strikes(\.lostWriteOneIn, path, &state) { return }
            state.inodes[number].write(Bytes(buffer), at: start)
        } failing: { state in
            // A failed write may have left a part of itself.
            var prefix = Int.random(in: 0...buffer.count, using: &state.random)
            if state.failsWholeSectors {
                let end = (Int(offset) + prefix) / SimulatedInode.sectorSize
                prefix = max(0, end * SimulatedInode.sectorSize - Int(offset))
            }
            let part = Bytes(buffer[..<prefix])
            guard !part.isEmpty,
                (try? Self.reserve(
                    Int(offset) + part.count, for: number, path, during: "write", &state))
                    != nil
            else { return }
            state.inodes[number].write(part, at: Int(offset))
        }
    }

    func sync(_ number: Int, _ path: DiskPath, life: Int) throws(DiskError) {
        try self.perform(.sync, path, life: life) { (state, isCrash) throws(DiskError) in
            // Interrupted inside the call: pending data stays pending, and the restart draws its
            // fate.
            if !isCrash { state.inodes[number].sync() }
        } failing: { state in
            state.inodes[number].failSync(&state.random)
        }
    }

    func resize(_ number: Int, _ path: DiskPath, life: Int, to length: UInt64) throws(DiskError) {
        try self.perform(.resize, path, life: life) { (state, _) throws(DiskError) in
            try Self.reserve(Int(length), for: number, path, during: "resize", &state)
            state.inodes[number].resize(Int(length))
        }
    }

    func length(_ number: Int, _ path: DiskPath, life: Int) throws(DiskError) -> UInt64 {
        try self.perform(.length, path, life: life) { (state, _) throws(DiskError) in
            UInt64(state.inodes[number].current.count)
        }
    }

    func unlock(_ path: DiskPath, _ number: Int) {
        self.state.withLock { if $0.locks[path] == number { $0.locks[path] = nil } }
    }

    // MARK: One operation

    /// Counts the operation, lets a fault strike or carries it out.
    private func perform<Result>(
        _ kind: DiskOperation, _ path: DiskPath, life: Int? = nil, at offset: UInt64? = nil,
        _ body: (inout State, _ isCrash: Bool) throws(DiskError) -> Result,
        failing: (inout State) -> Void = { _ in }
    ) throws(DiskError) -> Result {
        let result = self.state.withLock { state -> Swift.Result<Result, DiskError> in
            let dead = DiskError(.io, during: "after a crash", path: path)
            if state.isCrashed || life ?? state.life != state.life { return .failure(dead) }
            state.operationCount += 1
            switch Self.effect(on: kind, path, at: offset, &state) {
            case .crash:
                state.isCrashed = true
                // It may have happened, a write even in part, and is then as unsynced as everything
                // else.
                switch Int.random(in: 0..<3, using: &state.random) {
                case 0: break
                case 1 where kind == .write: failing(&state)
                default: _ = try? body(&state, true)
                }
                return .failure(dead)
            case .fail(let error):
                failing(&state)
                return .failure(DiskError(error, during: "a planned fault", path: path, code: 5))
            case .loseWrite, .misdirect, .flipBit, nil: break
            }
            let rate: KeyPath<DiskFaultRates, UInt64>? =
                switch kind {
                case .read: \.failedReadOneIn
                case .write: \.failedWriteOneIn
                case .sync: \.failedSyncOneIn
                default: nil
                }
            if let rate, Self.strikes(rate, path, &state) {
                failing(&state)
                return .failure(DiskError(.io, during: "a random fault", path: path, code: 5))
            }
            do throws(DiskError) { return .success(try body(&state, false)) } catch {
                return .failure(error)
            }
        }
        return try result.get()
    }

    private static func effect(
        on kind: DiskOperation, _ path: DiskPath, at offset: UInt64? = nil, _ state: inout State
    ) -> DiskFault.Effect? {
        let number = state.operationCount
        return state.faults.first { fault in
            fault.kinds.contains(kind) && path.raw.hasPrefix(fault.prefix)
                && (fault.offset == nil || fault.offset == offset)
                && (fault.number == number || (fault.isSticky && fault.number < number))
        }?.effect
    }

    private static func strikes(
        _ rate: KeyPath<DiskFaultRates, UInt64>, _ path: DiskPath, _ state: inout State
    ) -> Bool {
        for rates in state.rates {
            let oneIn = rates[keyPath: rate]
            guard oneIn > 0, path.raw.hasPrefix(rates.prefix) else { continue }
            if state.random.next() % oneIn == 0 {
                state.strikeCount += 1
                return true
            }
        }
        return false
    }

    private static func usedSize(_ state: State) -> Int {
        var sum = 0
        for case .file(let number) in state.names.values {
            sum += state.inodes[number].current.count
        }
        return sum
    }

    private static func reserve(
        _ end: Int, for number: Int, _ path: DiskPath, during operation: StaticString,
        _ state: inout State
    ) throws(DiskError) {
        guard let capacity = state.capacity else { return }
        let length = state.inodes[number].current.count
        guard end > length else { return }
        guard Self.usedSize(state) + end - length <= capacity else {
            throw DiskError(.full, during: operation, path: path, code: 28)
        }
    }

    private static func change(_ change: NameChange, _ state: inout State) {
        Self.apply(change, to: &state.names)
        state.unsyncedNames.append(change)
    }

    private static func apply(_ change: NameChange, to names: inout [DiskPath: Node]) {
        if let removed = change.removed { names[removed] = nil }
        if let added = change.added { names[added.path] = added.node }
    }
}

/// One open file of a ``SimulatedFiles``.
private final class SimulatedFile: File {
    private let files: SimulatedFiles
    private let path: DiskPath
    private let number: Int
    private let life: Int

    init(_ files: SimulatedFiles, _ path: DiskPath, _ number: Int, life: Int) {
        self.files = files
        self.path = path
        self.number = number
        self.life = life
    }

    func read(_ into: UnsafeMutableRawBufferPointer, at offset: UInt64) throws(DiskError) -> Int {
        try self.files.read(self.number, self.path, life: self.life, into: into, at: offset)
    }
    func write(_ from: UnsafeRawBufferPointer, at offset: UInt64) throws(DiskError) {
        try self.files.write(self.number, self.path, life: self.life, from: from, at: offset)
    }
    func sync() throws(DiskError) {
        try self.files.sync(self.number, self.path, life: self.life)
    }
    func resize(_ length: UInt64) throws(DiskError) {
        try self.files.resize(self.number, self.path, life: self.life, to: length)
    }
    var length: UInt64 {
        get throws(DiskError) {
            try self.files.length(self.number, self.path, life: self.life)
        }
    }
}

private final class SimulatedLock: DiskLock {
    private let files: SimulatedFiles
    private let path: DiskPath
    private let number: Int

    init(_ files: SimulatedFiles, _ path: DiskPath, _ number: Int) {
        self.files = files
        self.path = path
        self.number = number
    }

    deinit { self.files.unlock(self.path, self.number) }
}
