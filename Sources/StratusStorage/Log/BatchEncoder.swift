import CShims
import StratusModel

/// Encodes batches as bytes, in one buffer that is reused for each: header, items, payloads. The
/// tables stand in `LogFormat.swift`.
///
/// Owned by the thread that flushes.
struct BatchEncoder: ~Copyable {
    /// The places of the payloads and their checksums, one of each for every queued item.
    struct Places {
        var offsets: [Int] = []
        var crcs: [UInt32] = []
    }

    private var buffer = UnsafeMutableRawBufferPointer.allocate(
        byteCount: 1 << 16, alignment: 16)
    private var size = 0

    deinit { self.buffer.deallocate() }

    /// The bytes of the last encoded batch.
    var bytes: UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(rebasing: self.buffer[..<self.size])
    }

    /// - Parameters:
    ///   - segmentHeader: of the segment that the batch is the first of.
    ///   - state: items written before those of the queue.
    mutating func encode(
        _ items: [QueuedItem], after state: [LogFormat.Item], _ header: LogFormat.BatchHeader,
        segmentHeader: LogFormat.SegmentHeader?
    ) -> Places {
        let prefix = segmentHeader == nil ? 0 : LogFormat.segmentHeaderSize
        self.reserve(prefix + header.size)
        segmentHeader?.write(to: self.buffer)
        let batch = self.buffer.baseAddress! + prefix
        var item = LogFormat.batchHeaderSize
        var payload = header.payloadOffset
        for state in state {
            state.write(to: batch + item)
            item += LogFormat.itemSize
        }
        var places = Places()
        places.offsets.reserveCapacity(items.count)
        places.crcs.reserveCapacity(items.count)
        for queued in items {
            var crc: UInt32 = 0
            places.offsets.append(header.position + payload)
            if case .entry(_, let entry, _) = queued {
                entry.payload.withUnsafeBytes { bytes in
                    crc = stratus_crc32c(0, bytes.baseAddress, bytes.count)
                    if !bytes.isEmpty {
                        (batch + payload).copyMemory(
                            from: bytes.baseAddress!, byteCount: bytes.count)
                    }
                }
                payload += entry.payload.count
            }
            places.crcs.append(crc)
            LogFormat.Item(queued, crc: crc).write(to: batch + item)
            item += LogFormat.itemSize
        }
        (batch + payload).initializeMemory(
            as: UInt8.self, repeating: 0, count: header.size - payload)
        header.write(to: batch)
        return places
    }

    private mutating func reserve(_ size: Int) {
        self.size = size
        guard self.buffer.count < size else { return }
        self.buffer.deallocate()
        self.buffer = .allocate(byteCount: size, alignment: 16)
    }
}
