// modules: StratusDoubles
// seeds: Tests/StratusStorageTests/Golden/segment-1.hex Tests/StratusCodingTests/Golden/entry-1.hex
import CShims
import StratusCoding
import StratusDoubles
import StratusModel

@testable import StratusStorage

/// Fuzzes the records of the shared log, and what a start makes of a whole segment.
///
/// The first byte says what is mended before the log is read, so that checksums do not end every
/// run at the first byte: 1 batches, 2 payloads, 4 not the header, 8 the file is shorter. For any
/// bytes: nothing traps, and a second start reads what the first one left as the first one did.
#if LIBFUZZER
    @_cdecl("LLVMFuzzerTestOneInput")
#endif
public func fuzzLog(_ start: UnsafePointer<UInt8>, _ count: Int) -> CInt {
    guard count > 0 else { return 0 }
    let bytes = Bytes(UnsafeBufferPointer(start: start + 1, count: count - 1))
    if let (group, entry) = try? Entry.decode(bytes) {
        let once = entry.encoded(in: group)
        guard let again = try? Entry.decode(once) else { preconditionFailure("cannot be read") }
        precondition(again.0 == group && again.1.encoded(in: group) == once)
    }
    var segment = Bytes(repeating: 0, count: 4_096)
    let room = segment.count - LogFormat.segmentHeaderSize
    for (offset, byte) in bytes.prefix(room).enumerated() {
        segment[LogFormat.segmentHeaderSize + offset] = byte
    }
    segment.withUnsafeMutableBytes { buffer in
        if start[0] & 4 == 0 {
            LogFormat.SegmentHeader(sequence: 1, salt: 7, size: 4_096).write(to: buffer)
        } else {
            buffer.copyBytes(from: bytes.prefix(LogFormat.segmentHeaderSize))
        }
        if start[0] & 1 != 0 {
            mendBatches(buffer, used: min(room, bytes.count), payloads: start[0] & 2 != 0)
        }
    }
    if start[0] & 8 != 0 { segment.removeLast(Int(bytes.last ?? 0) * 8) }
    let world = SimulatedWorld(seed: 1)
    let directory = DiskPath.root.appending("log")
    do {
        try world.files.makeDirectory(directory)
        try world.files.syncDirectory(.root)
        try world.files.replace(LogSegment.path(1, in: directory), with: segment)
    } catch { preconditionFailure("\(error)") }
    guard let first = recover(directory, world) else { return 0 }
    guard let second = recover(directory, world) else {
        preconditionFailure("a second start is refused")
    }
    precondition(
        first.groups.keys.sorted() == second.groups.keys.sorted(), "a second start finds others")
    precondition(first.batchNumber == second.batchNumber && first.position == second.position)
    return 0
}

private func recover(_ directory: DiskPath, _ world: SimulatedWorld) -> LogRecovery? {
    var limits = SegmentedLog.Limits()
    limits.segmentSize = ByteCount(4_096)
    var recovery = LogRecovery(in: directory, of: world, limits: limits)
    do { try recovery.run(isNew: false) } catch { return nil }
    return recovery.refusal == nil ? recovery : nil
}

/// Gives each batch the mark, the place, the number and the checksum that it would have.
private func mendBatches(_ buffer: UnsafeMutableRawBufferPointer, used: Int, payloads: Bool) {
    let end = LogFormat.segmentHeaderSize + used
    var position = LogFormat.segmentHeaderSize
    var number: UInt64 = 1
    while position + LogFormat.batchHeaderSize < end {
        let bytes = UnsafeRawBufferPointer(buffer)
        let header = LogFormat.BatchHeader(
            sequence: 1, salt: 7, position: position, number: number,
            itemCount: Int(LogFormat.half(bytes, position + 40) & 7),
            payloadSize: Int(LogFormat.half(bytes, position + 44) & 255))
        guard position + header.size <= buffer.count else { return }
        var payload = position + header.payloadOffset
        for item in 0..<header.itemCount {
            let place = position + LogFormat.batchHeaderSize + item * LogFormat.itemSize
            // A start keeps a place for each entry that it must get back: the memory for that is
            // as large as the indexes are far apart.
            let index = LogFormat.word(bytes, place + 8) & 0xFFF
            buffer.storeBytes(of: index.littleEndian, toByteOffset: place + 8, as: UInt64.self)
            guard payloads else { continue }
            // One of five kinds, and a payload that fits.
            buffer[place] = buffer[place] % 5 + 1
            let size = Int(LogFormat.half(bytes, place + 32) & 31)
            guard payload + size <= buffer.count else { break }
            buffer.storeBytes(
                of: UInt32(size).littleEndian, toByteOffset: place + 32, as: UInt32.self)
            let checksum = stratus_crc32c(0, bytes.baseAddress! + payload, size)
            buffer.storeBytes(
                of: checksum.littleEndian, toByteOffset: place + 36, as: UInt32.self)
            payload += size
        }
        header.write(to: buffer.baseAddress! + position)
        position += header.size
        number += 1
    }
}
