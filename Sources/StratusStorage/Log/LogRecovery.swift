import CShims
import StratusModel

/// Reads a shared log back at start: cuts a torn tail, names damage, and makes what it keeps
/// durable.
///
/// Sound batches are taken in the order of their numbers. A batch that is not sound means one of
/// two things:
/// - A sound one follows, in this segment or the next. The bad one was synced before that was
///   written, so this is damage.
/// - None follows. It is the tail, torn by the end of the last process.
///
/// The kept bytes of the last segment are written again and synced: if a sync failed in the last
/// process, the system may show them although the medium never got them.
struct LogRecovery {
    private let directory: DiskPath
    private let world: any World
    private let limits: SegmentedLog.Limits

    var groups: [GroupID: GroupTail] = [:]
    var segments: [LogSegment] = []
    var spares: [LogSegment] = []
    var position = LogFormat.segmentHeaderSize
    var batchNumber: UInt64 = 1
    var damage = SegmentedLog.Damage()
    var refusal: LogError?
    /// Cuts of a torn tail that found no room: the first thing the log must write.
    var unwrittenCuts: [QueuedItem] = []

    /// The number the next batch must have; nil before the first.
    private var expected: UInt64?
    /// The state of every group was read, and no segment is missing since.
    private var hasState = false
    /// The entries read before a loss of unknown content, by group, until the state of the groups
    /// behind it is read. The lost batch may have replaced any of them.
    private var doubted: [GroupID: GroupTail]?

    /// A batch is lost, and its content is unknown. Later entries are gathered apart.
    private mutating func doubtAll() {
        if self.limits.bugs.contains(.unknownLossForgiven) {
            self.damage.hasUnknownLoss = true
            return
        }
        // After an earlier loss it is no log that this node ever had.
        if !self.damage.hasUnknownLoss { self.doubted = self.groups }
        self.damage.hasUnknownLoss = true
        self.groups = [:]
    }

    init(in directory: DiskPath, of world: any World, limits: SegmentedLog.Limits) {
        self.directory = directory
        self.world = world
        self.limits = limits
    }

    /// - Parameter progress: called before the first segment is read back and after each.
    mutating func run(
        isNew: Bool, progress: (SegmentedLog.RecoveryProgress) -> Void = { _ in }
    ) throws(DiskError) {
        let files = self.world.files
        if try !files.exists(self.directory) {
            guard isNew else {
                self.refusal = LogError(.corrupt, "the log '\(self.directory)' is missing")
                return
            }
            try files.makeDirectory(self.directory)
        }
        // An earlier process may have died between making a segment and syncing its name.
        try files.syncDirectories(upFrom: self.directory)
        let unlabelled = try self.findSegments()
        if self.refusal != nil { return }
        let known = self.knownSizes
        let largest = max(known[known.count - 1], unlabelled.map(\.length).max() ?? 0)
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: largest, alignment: 16)
        defer { buffer.deallocate() }
        for found in unlabelled { try self.readUnlabelled(found, known, buffer) }
        // A spare that was not used again looks as it did when it was freed.
        self.segments.sort { $0.header!.sequence < $1.header!.sequence }
        try self.setBackBegun(buffer, isNew: isNew)
        if self.segments.isEmpty, !isNew {
            self.refusal = LogError(.corrupt, "the log '\(self.directory)' holds no segment")
            return
        }
        let count = self.segments.count
        progress(SegmentedLog.RecoveryProgress(segmentsRead: 0, segmentCount: count))
        for (number, segment) in self.segments.enumerated() {
            let isLast = number == self.segments.count - 1
            if number > 0,
                segment.header!.sequence != self.segments[number - 1].header!.sequence + 1
            {
                // Segments are freed oldest first, so an earlier segment was freed and is a spare
                // not yet used again. Its entries would contradict what follows, since the entries
                // that replaced them are gone. Otherwise the gap is a loss. Then the state behind
                // it shows how far every group had come, whatever was before.
                self.groups = [:]
                self.doubted = nil
                self.damage.hasUnknownLoss = true
                self.expected = nil
                self.hasState = false
            }
            try self.replay(segment, isLast: isLast, buffer)
            progress(
                SegmentedLog.RecoveryProgress(segmentsRead: number + 1, segmentCount: count))
        }
        // What the oldest segment begins behind is known from its state alone.
        if !self.hasState, !self.segments.isEmpty { self.damage.hasUnknownLoss = true }
        // No state follows the loss: the node is out, and what it had stays.
        for (group, known) in self.doubted ?? [:] {
            guard self.groups[group] != nil else {
                self.groups[group] = known
                continue
            }
            self.groups[group]?.adopt(known, last: nil)
            if self.groups[group]?.hardState == nil {
                self.groups[group]?.hardState = known.hardState
            }
        }
        self.batchNumber = self.expected ?? 1
        for group in self.groups.keys.sorted() {
            self.groups[group]!.settleDurable()
            let indexes = self.groups[group]!.damagedIndexes
            if !indexes.isEmpty {
                self.damage.entries.append(.init(group: group, indexes: indexes))
            }
        }
    }

    // MARK: Segments

    /// A file without a header that can be read.
    private struct Unlabelled {
        var number: UInt32
        var path: DiskPath
        var file: any File
        var length: Int
    }

    /// The sizes that new segments and those with a header have, the smallest first.
    private var knownSizes: [Int] {
        Set(self.segments.map(\.size) + [self.limits.segmentSize.raw]).sorted()
    }

    private mutating func findSegments() throws(DiskError) -> [Unlabelled] {
        var unlabelled: [Unlabelled] = []
        let files = self.world.files
        let head = UnsafeMutableRawBufferPointer.allocate(
            byteCount: LogFormat.segmentHeaderSize, alignment: 16)
        defer { head.deallocate() }
        for name in try files.list(self.directory) {
            guard let number = LogSegment.number(name.raw) else { continue }
            let path = self.directory.appending(name.raw)
            let file = try files.open(path, create: false)
            let count = try file.read(head, at: 0)
            let reading =
                count == head.count
                ? LogFormat.segmentHeader(UnsafeRawBufferPointer(head)) : .unreadable
            switch reading {
            case .newerVersion(let version):
                self.refusal = LogError(
                    .corrupt, "\(path) has format \(version), this Stratus knows 1")
                return []
            case .header(let header):
                guard LogSegment.isPossible(size: header.size) else {
                    self.refusal = LogError(
                        .corrupt,
                        "\(path) says that it is a segment of \(header.size) bytes: segments have \(LogSegment.sizes.lowerBound) to \(LogSegment.sizes.upperBound)"
                    )
                    return []
                }
                self.segments.append(
                    LogSegment(
                        number: number, path: path, file: file, size: Int(header.size),
                        header: header))
            case .unreadable:
                let length = try file.length
                // Larger than any segment: none of ours.
                guard length <= UInt64(LogSegment.sizes.upperBound) else { continue }
                unlabelled.append(
                    Unlabelled(number: number, path: path, file: file, length: Int(length)))
            }
        }
        return unlabelled
    }

    /// Reads a segment without a readable header: a spare, or one whose header rotted. Its batches
    /// tell which.
    ///
    /// - Parameter known: the sizes of the other segments. One that is shorter than all of them was
    ///   cut short.
    private mutating func readUnlabelled(
        _ found: Unlabelled, _ known: [Int], _ buffer: UnsafeMutableRawBufferPointer
    ) throws(DiskError) {
        let size = known.first { $0 >= found.length } ?? found.length
        let segment = LogSegment(
            number: found.number, path: found.path, file: found.file, size: size, header: nil,
            isWhole: false)
        let bytes = try self.load(segment, Self.part(of: buffer, for: segment))
        guard found.length > LogFormat.segmentHeaderSize,
            let batch = LogFormat.BatchHeader.read(bytes, at: LogFormat.segmentHeaderSize)
        else {
            if found.length == self.limits.segmentSize.raw {
                try self.keepAsSpare(segment)
            } else {
                // It was being made when the process ended, or is a spare of another size. It held
                // nothing yet.
                try self.world.files.remove(segment.path)
            }
            return
        }
        segment.header = LogFormat.SegmentHeader(
            sequence: batch.sequence, salt: batch.salt, size: UInt64(size))
        self.segments.append(segment)
    }

    /// The segment's share of a buffer that is as large as the largest of them.
    private static func part(
        of buffer: UnsafeMutableRawBufferPointer, for segment: LogSegment
    ) -> UnsafeMutableRawBufferPointer {
        UnsafeMutableRawBufferPointer(rebasing: buffer[..<segment.size])
    }

    private mutating func keepAsSpare(_ segment: LogSegment) throws(DiskError) {
        if self.spares.count < self.limits.spareCountMax,
            segment.size == self.limits.segmentSize.raw
        {
            self.spares.append(segment)
        } else {
            try self.world.files.remove(segment.path)
        }
    }

    /// Turns the newest segment back into a spare if its first batch was torn: then nothing in it
    /// counts. If it stayed active, its first batch would not say where every group stands. A torn
    /// batch in the segment before would then pass for damage.
    private mutating func setBackBegun(
        _ buffer: UnsafeMutableRawBufferPointer, isNew: Bool
    ) throws(DiskError) {
        guard let newest = self.segments.last, self.segments.count > 1 || isNew,
            !self.limits.bugs.contains(.begunSegmentKept)
        else { return }
        let buffer = Self.part(of: buffer, for: newest)
        // Mostly its first batch is sound and near: no need to read all of it twice.
        let near = min(buffer.count, Self.readSize)
        let first = LogFormat.segmentHeaderSize
        let beginning = try self.load(
            newest, UnsafeMutableRawBufferPointer(rebasing: buffer[..<near]))
        guard self.batch(beginning, at: first, of: newest.header!) == nil else { return }
        let bytes = try self.load(newest, buffer, from: near)
        guard self.search(bytes, from: first, for: newest.header!) == nil else { return }
        // Durably, before another segment gets this one's sequence.
        let head = UnsafeMutableRawBufferPointer(
            rebasing: buffer[..<LogFormat.segmentHeaderSize])
        head.initializeMemory(as: UInt8.self, repeating: 0)
        try newest.file.write(UnsafeRawBufferPointer(head), at: 0)
        try newest.file.sync()
        newest.header = nil
        self.segments.removeLast()
        try self.keepAsSpare(newest)
    }

    private static let readSize = 1 << 20

    /// Loads as much of the segment as the buffer takes, mostly all of it; where the file is short,
    /// zeros.
    ///
    /// - Parameter start: the bytes before it are in the buffer already.
    private func load(
        _ segment: LogSegment, _ buffer: UnsafeMutableRawBufferPointer, from start: Int = 0
    ) throws(DiskError) -> UnsafeRawBufferPointer {
        var offset = start
        while offset < buffer.count {
            let end = min(buffer.count, offset + Self.readSize)
            let part = UnsafeMutableRawBufferPointer(rebasing: buffer[offset..<end])
            let count = try segment.file.read(part, at: UInt64(offset))
            offset += count
            if count == 0 { break }
        }
        if offset < buffer.count {
            UnsafeMutableRawBufferPointer(rebasing: buffer[offset...])
                .initializeMemory(as: UInt8.self, repeating: 0)
        }
        return UnsafeRawBufferPointer(buffer)
    }

    // MARK: Batches

    private mutating func replay(
        _ segment: LogSegment, isLast: Bool, _ buffer: UnsafeMutableRawBufferPointer
    ) throws(DiskError) {
        let buffer = Self.part(of: buffer, for: segment)
        let bytes = try self.load(segment, buffer)
        let header = segment.header!
        var position = LogFormat.segmentHeaderSize
        // The next batch goes here.
        var end = position
        while position < bytes.count {
            guard let batch = self.batch(bytes, at: position, of: header) else {
                // Whatever is sound behind it was written after it was synced.
                guard let next = self.search(bytes, from: position + 8, for: header) else { break }
                self.doubtAll()
                position = next
                continue
            }
            if let expected, batch.number != expected { self.doubtAll() }
            position = batch.position + batch.size
            if batch.isClosing {
                self.expected = batch.number
                end = batch.position
                continue
            }
            self.expected = batch.number + 1
            end = position
            let isTail =
                isLast && self.search(bytes, from: end, for: header) == nil
            // Where a batch holds the state of every group, a loss before it is now known by name.
            // Its content is not known, so nothing read before it counts unless that state proves
            // it.
            self.replay(batch, bytes, segment, isTail: isTail)
            if batch.holdsState(bytes) {
                self.doubted = nil
                self.damage.hasUnknownLoss = false
                self.hasState = true
            }
        }
        // The newest one holds a batch, or it would not stand here.
        if isLast, self.expected == nil { self.damage.hasUnknownLoss = true }
        // A segment has its full length from the day it was made: what is missing was there.
        if try segment.file.length != UInt64(buffer.count) { self.doubtAll() }
        if isLast {
            self.position = end
            try self.makeDurable(segment, UnsafeMutableRawBufferPointer(rebasing: buffer[..<end]))
        }
    }

    private func batch(
        _ bytes: UnsafeRawBufferPointer, at position: Int, of segment: LogFormat.SegmentHeader
    ) -> LogFormat.BatchHeader? {
        guard let batch = LogFormat.BatchHeader.read(bytes, at: position),
            batch.sequence == segment.sequence && batch.salt == segment.salt
                || self.limits.bugs.contains(.recycledBatchesReplayed)
        else { return nil }
        return batch
    }

    /// The first sound batch at or behind `start`.
    private func search(
        _ bytes: UnsafeRawBufferPointer, from start: Int, for segment: LogFormat.SegmentHeader
    ) -> Int? {
        var position = start
        while position + LogFormat.batchHeaderSize <= bytes.count {
            if self.batch(bytes, at: position, of: segment) != nil { return position }
            position += 8
        }
        return nil
    }

    private mutating func replay(
        _ batch: LogFormat.BatchHeader, _ bytes: UnsafeRawBufferPointer, _ segment: LogSegment,
        isTail: Bool
    ) {
        var item = batch.position + LogFormat.batchHeaderSize
        var payload = batch.position + batch.payloadOffset
        // Items of one group mostly follow each other: it is looked up once for all of them.
        var run: Run?
        defer { if let run { self.end(run, in: segment) } }
        for _ in 0..<batch.itemCount {
            defer { item += LogFormat.itemSize }
            guard let read = LogFormat.Item.read(bytes, at: item) else {
                // Sound, so written by a newer version: nothing may be left out.
                self.refusal = LogError(
                    .corrupt, "an item of kind \(bytes[item]) in \(segment.path)")
                return
            }
            if read.kind == .state { continue }
            if run?.group != read.group {
                if let run { self.end(run, in: segment) }
                run = Run(
                    group: read.group,
                    tail: self.groups.removeValue(forKey: read.group) ?? GroupTail())
            }
            self.replay(read, &run!, at: payload, bytes, segment.number, isTail: isTail)
            payload += Int(read.size)
        }
    }

    /// The combined result of consecutive items of one group.
    private struct Run {
        let group: GroupID
        var tail: GroupTail
        /// The last sound entry among them.
        var last: LogIndex?
    }

    private mutating func end(_ run: Run, in segment: LogSegment) {
        if let last = run.last { segment.note(last, of: run.group) }
        self.groups[run.group] = run.tail
    }

    private mutating func replay(
        _ item: LogFormat.Item, _ run: inout Run, at payload: Int,
        _ bytes: UnsafeRawBufferPointer, _ segment: UInt32, isTail: Bool
    ) {
        switch item.kind {
        case .hardState:
            let vote = item.index > 0 ? NodeID(UInt32(truncatingIfNeeded: item.index - 1)) : nil
            run.tail.hardState = HardState(term: Term(item.term), vote: vote)
        case .cut: run.tail.cut(from: LogIndex(item.index))
        case .start:
            run.tail.replay(
                start: GroupTail.LogPoint(index: LogIndex(item.index), term: Term(item.term)))
        case .last:
            let last = GroupTail.LogPoint(index: LogIndex(item.index), term: Term(item.term))
            run.tail.cut(from: last.index.next)
            if let known = self.doubted?.removeValue(forKey: item.group) {
                run.tail.adopt(known, last: last)
            }
            run.tail.owe(through: last)
        case .state: break
        case .entry:
            let index = LogIndex(item.index)
            // Behind a loss a group begins anew. Its entries may be millions by now, and those
            // before where it began are not missing.
            if let known = self.doubted?[item.group], run.tail.isUntouched,
                known.start.index < index
            {
                run.tail.restart(after: known.start)
            }
            guard index > run.tail.start.index else { return }
            let isSound =
                payload + Int(item.size) <= bytes.count
                && self.limits.bugs.contains(.tornEntryKept)
                || payload + Int(item.size) <= bytes.count
                    && stratus_crc32c(0, bytes.baseAddress! + payload, Int(item.size)) == item.crc
            // A copy that was only being moved: the one it was made from still counts.
            if !isSound, let slot = run.tail.slot(at: index), slot.term.raw == item.term { return }
            guard isSound || !isTail else {
                // If it was torn, neither it nor anything after it in its group was ever
                // acknowledged.
                if !self.damage.suspectTail.contains(where: { $0.group == item.group }) {
                    self.damage.suspectTail.append(
                        .init(group: item.group, index: index, term: Term(item.term)))
                }
                return
            }
            if self.damage.suspectTail.contains(where: { $0.group == item.group }) { return }
            let place: GroupTail.Place
            if isSound, let kind = Entry.Kind(rawValue: item.entryKind) {
                place = .located(
                    GroupTail.Location(
                        segment: segment, offset: UInt32(payload), size: item.size,
                        crc: item.crc, time: item.time, kind: kind))
                run.last = max(run.last ?? .zero, index)
            } else {
                place = .damaged
            }
            run.tail.put(
                GroupTail.Slot(term: Term(item.term), place: place), at: index,
                bugs: self.limits.bugs)
        }
    }

    // MARK: Making sure

    /// Writes the kept part of the last segment over itself and syncs it. A last batch cuts what
    /// was torn, so that no later start takes it for damage.
    private mutating func makeDurable(
        _ segment: LogSegment, _ kept: UnsafeMutableRawBufferPointer
    ) throws(DiskError) {
        if self.limits.bugs.contains(.logTailNotWrittenAgain) { return }
        // The header too: it may have rotted.
        segment.header!.write(to: kept)
        var offset = 0
        while offset < kept.count {
            let part = kept[offset..<min(kept.count, offset + Self.readSize)]
            try segment.file.write(UnsafeRawBufferPointer(rebasing: part), at: UInt64(offset))
            offset = part.endIndex
        }
        // Like every other batch, this one is written only once everything before it is on the
        // medium. A process killed while it wrote leaves a torn batch that only the system's cache
        // holds.
        if !self.damage.suspectTail.isEmpty,
            !self.limits.bugs.contains(.tornBatchCutInOneSync)
        {
            try segment.file.sync()
        }
        try self.cutSuspects(segment)
        try segment.file.sync()
    }

    private mutating func cutSuspects(_ segment: LogSegment) throws(DiskError) {
        let suspects = self.damage.suspectTail
        guard !suspects.isEmpty, !self.limits.bugs.contains(.tornTailNotCut) else { return }
        var header = LogFormat.BatchHeader(
            sequence: segment.header!.sequence, salt: segment.header!.salt,
            position: self.position, number: self.expected ?? 1, itemCount: suspects.count,
            payloadSize: 0)
        header.position = self.position
        // A torn batch ends the segment: the cuts go with the next batch, in the next segment.
        guard self.position + header.size <= segment.size else {
            self.unwrittenCuts = suspects.map { .cut($0.group, from: $0.index) }
            return
        }
        let batch = UnsafeMutableRawBufferPointer.allocate(byteCount: header.size, alignment: 16)
        defer { batch.deallocate() }
        batch.initializeMemory(as: UInt8.self, repeating: 0)
        for (number, suspect) in suspects.enumerated() {
            let item = LogFormat.Item(
                .cut(suspect.group, from: suspect.index), crc: 0)
            item.write(
                to: batch.baseAddress! + LogFormat.batchHeaderSize + number * LogFormat.itemSize)
        }
        header.write(to: batch.baseAddress!)
        try segment.file.write(UnsafeRawBufferPointer(batch), at: UInt64(self.position))
        self.position += header.size
        self.expected = header.number + 1
    }
}
