import CShims
import StratusModel

// The shared log, version 1. All integers little-endian.
//
// A segment is a file of fixed size, written full of zeros when it is made, and used again and
// again. It starts with a header, then holds batches one behind the other, each 8-byte aligned.
// All bytes written between two syncs are one batch, and a closing one behind it.
//
// Segment header, 64 bytes
//
// | bytes | what                                                                        |
// | ----- | --------------------------------------------------------------------------- |
// | 8     | "STRALOG" and the version, 1                                                |
// | 8     | sequence: one more than that of the segment used before                     |
// | 8     | salt: drawn anew for each use                                               |
// | 8     | size of the segment                                                         |
// | 28    | zero                                                                        |
// | 4     | CRC-32C of the bytes before                                                 |
//
// Batch: header, items, payloads, zeros to a multiple of 8
//
// | bytes | what                                                                        |
// | ----- | --------------------------------------------------------------------------- |
// | 4     | "SLB" and the version, 1                                                    |
// | 4     | CRC-32C of the rest of the header and the items                             |
// | 8     | sequence of the segment                                                     |
// | 8     | salt of the segment                                                         |
// | 8     | position in the segment                                                     |
// | 8     | number of the batch: one more than the one before it, across segments       |
// | 4     | number of items                                                             |
// | 4     | size of the payloads together                                               |
//
// Item, 40 bytes: the description of an entry stands apart from its bytes, so that damage to the
// bytes can be named
//
// | bytes | what                                                                        |
// | ----- | --------------------------------------------------------------------------- |
// | 1     | 1 entry, 2 hard state, 3 cut, 4 start, 5 last, 6 state                      |
// | 1     | of an entry: its kind                                                       |
// | 2     | group                                                                       |
// | 2     | of an entry: its time's count                                               |
// | 2     | zero                                                                        |
// | 8     | index: of an entry; the first one cut; the one before the first kept; the   |
// |       | last kept. Of a hard state: 1 + the vote, or 0. Of a state: 0               |
// | 8     | term                                                                        |
// | 8     | of an entry: its time's milliseconds                                        |
// | 4     | size of the payload                                                         |
// | 4     | CRC-32C of the payload                                                      |
//
// A batch whose first item is a state goes on with the state of every group before it: its start,
// the last index it holds, its hard state. So what is before it is needed for its entries only, and
// the content of a lost batch can be named. The first batch of a segment begins so, and the one that
// is written at a clean stop and after checkpoints. A log that has lost a batch of unknown content
// writes none before its owner has settled that loss.
//
// A batch without items closes the log behind a synced batch, until the next takes its place and
// number. It is not synced, and tells a start that the batch before it was whole.
//
// The salt is unknown to clients that choose payloads, so no payload can pass for a batch.

enum LogFormat {
    static let segmentHeaderSize = 64
    static let batchHeaderSize = 48
    static let itemSize = 40
    private static let segmentMark: UInt64 = 0x01_47_4F_4C_41_52_54_53  // "STRALOG" 1
    private static let batchMark: UInt32 = 0x01_42_4C_53  // "SLB" 1

    struct SegmentHeader: Equatable {
        var sequence: UInt64
        var salt: UInt64
        var size: UInt64

        func write(to buffer: UnsafeMutableRawBufferPointer) {
            buffer.baseAddress!.initializeMemory(
                as: UInt8.self, repeating: 0, count: LogFormat.segmentHeaderSize)
            buffer.storeBytes(of: LogFormat.segmentMark.littleEndian, as: UInt64.self)
            buffer.storeBytes(of: self.sequence.littleEndian, toByteOffset: 8, as: UInt64.self)
            buffer.storeBytes(of: self.salt.littleEndian, toByteOffset: 16, as: UInt64.self)
            buffer.storeBytes(of: self.size.littleEndian, toByteOffset: 24, as: UInt64.self)
            let crc = stratus_crc32c(0, buffer.baseAddress, 60)
            buffer.storeBytes(of: crc.littleEndian, toByteOffset: 60, as: UInt32.self)
        }
    }

    enum SegmentReading: Equatable {
        case header(SegmentHeader)
        /// Made and never used, or its header is damaged: the batches tell.
        case unreadable
        case newerVersion(UInt8)
    }

    static func segmentHeader(_ bytes: UnsafeRawBufferPointer) -> SegmentReading {
        guard bytes.count >= Self.segmentHeaderSize else { return .unreadable }
        let mark = Self.word(bytes, 0)
        if mark & 0x00FF_FFFF_FFFF_FFFF == Self.segmentMark & 0x00FF_FFFF_FFFF_FFFF,
            mark >> 56 > Self.segmentMark >> 56
        {
            return .newerVersion(UInt8(mark >> 56))
        }
        guard mark == Self.segmentMark,
            Self.half(bytes, 60) == stratus_crc32c(0, bytes.baseAddress, 60)
        else { return .unreadable }
        return .header(
            SegmentHeader(
                sequence: Self.word(bytes, 8), salt: Self.word(bytes, 16),
                size: Self.word(bytes, 24)))
    }

    enum ItemKind: UInt8 {
        case entry = 1
        case hardState = 2
        case cut = 3
        case start = 4
        case last = 5
        case state = 6
    }

    struct Item: Equatable {
        var kind: ItemKind
        var group: GroupID
        var index: UInt64
        var term: UInt64
        var entryKind: UInt8 = 0
        var time = HybridTime.zero
        var size: UInt32 = 0
        var crc: UInt32 = 0

        func write(to bytes: UnsafeMutableRawPointer) {
            bytes.storeBytes(of: self.kind.rawValue, as: UInt8.self)
            bytes.storeBytes(of: self.entryKind, toByteOffset: 1, as: UInt8.self)
            bytes.storeBytes(of: self.group.raw.littleEndian, toByteOffset: 2, as: UInt16.self)
            bytes.storeBytes(of: self.time.count.littleEndian, toByteOffset: 4, as: UInt16.self)
            bytes.storeBytes(of: 0, toByteOffset: 6, as: UInt16.self)
            bytes.storeBytes(of: self.index.littleEndian, toByteOffset: 8, as: UInt64.self)
            bytes.storeBytes(of: self.term.littleEndian, toByteOffset: 16, as: UInt64.self)
            bytes.storeBytes(
                of: self.time.milliseconds.littleEndian, toByteOffset: 24, as: Int64.self)
            bytes.storeBytes(of: self.size.littleEndian, toByteOffset: 32, as: UInt32.self)
            bytes.storeBytes(of: self.crc.littleEndian, toByteOffset: 36, as: UInt32.self)
        }

        /// nil for a kind this version does not know.
        static func read(_ bytes: UnsafeRawBufferPointer, at offset: Int) -> Item? {
            guard let kind = ItemKind(rawValue: bytes[offset]) else { return nil }
            let pair = UInt16(
                littleEndian: bytes.loadUnaligned(fromByteOffset: offset + 2, as: UInt16.self))
            let count = UInt16(
                littleEndian: bytes.loadUnaligned(fromByteOffset: offset + 4, as: UInt16.self))
            return Item(
                kind: kind, group: GroupID(pair), index: LogFormat.word(bytes, offset + 8),
                term: LogFormat.word(bytes, offset + 16), entryKind: bytes[offset + 1],
                time: HybridTime(
                    milliseconds: Int64(bitPattern: LogFormat.word(bytes, offset + 24)),
                    count: count),
                size: LogFormat.half(bytes, offset + 32), crc: LogFormat.half(bytes, offset + 36))
        }
    }

    struct BatchHeader: Equatable {
        var sequence: UInt64
        var salt: UInt64
        var position: Int
        var number: UInt64
        var itemCount: Int
        var payloadSize: Int

        var payloadOffset: Int {
            LogFormat.batchHeaderSize + self.itemCount * LogFormat.itemSize
        }
        /// The size of the whole batch, padding included.
        var size: Int { (self.payloadOffset + self.payloadSize + 7) & ~7 }

        /// Whether it holds nothing: it says that all before it was synced, and the next batch takes
        /// its place and number.
        var isClosing: Bool { self.itemCount == 0 }

        /// Whether the state of every group stands at its beginning.
        func holdsState(_ segment: UnsafeRawBufferPointer) -> Bool {
            self.itemCount > 0
                && segment[self.position + LogFormat.batchHeaderSize] == ItemKind.state.rawValue
        }

        /// To be called when the items stand behind the header: the checksum covers them.
        func write(to batch: UnsafeMutableRawPointer) {
            batch.storeBytes(of: LogFormat.batchMark.littleEndian, as: UInt32.self)
            batch.storeBytes(of: self.sequence.littleEndian, toByteOffset: 8, as: UInt64.self)
            batch.storeBytes(of: self.salt.littleEndian, toByteOffset: 16, as: UInt64.self)
            batch.storeBytes(
                of: UInt64(self.position).littleEndian, toByteOffset: 24, as: UInt64.self)
            batch.storeBytes(of: self.number.littleEndian, toByteOffset: 32, as: UInt64.self)
            batch.storeBytes(
                of: UInt32(self.itemCount).littleEndian, toByteOffset: 40, as: UInt32.self)
            batch.storeBytes(
                of: UInt32(self.payloadSize).littleEndian, toByteOffset: 44, as: UInt32.self)
            let crc = stratus_crc32c(0, batch + 8, self.payloadOffset - 8)
            batch.storeBytes(of: crc.littleEndian, toByteOffset: 4, as: UInt32.self)
        }

        /// Reads the batch at `position` of a segment, if there is one and its header and items are
        /// sound.
        static func read(_ segment: UnsafeRawBufferPointer, at position: Int) -> BatchHeader? {
            guard position + LogFormat.batchHeaderSize <= segment.count,
                LogFormat.half(segment, position) == LogFormat.batchMark,
                LogFormat.word(segment, position + 24) == UInt64(position)
            else { return nil }
            let header = BatchHeader(
                sequence: LogFormat.word(segment, position + 8),
                salt: LogFormat.word(segment, position + 16), position: position,
                number: LogFormat.word(segment, position + 32),
                itemCount: Int(LogFormat.half(segment, position + 40)),
                payloadSize: Int(LogFormat.half(segment, position + 44)))
            guard header.size <= segment.count - position,
                LogFormat.half(segment, position + 4)
                    == stratus_crc32c(
                        0, segment.baseAddress! + position + 8, header.payloadOffset - 8)
            else { return nil }
            return header
        }
    }

    static func word(_ bytes: UnsafeRawBufferPointer, _ offset: Int) -> UInt64 {
        UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self))
    }

    static func half(_ bytes: UnsafeRawBufferPointer, _ offset: Int) -> UInt32 {
        UInt32(littleEndian: bytes.loadUnaligned(fromByteOffset: offset, as: UInt32.self))
    }
}
