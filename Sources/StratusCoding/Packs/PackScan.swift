package import StratusModel

/// Finds what is sound in a pack, without its index.
package enum PackScan {
    /// The bytes at the beginning of a pack that ``header(_:of:number:)`` looks at.
    package static let startSize = PackFormat.headerSize + PackFormat.recordHeaderSize

    /// Nil: neither the header nor the first record is sound.
    ///
    /// The first record repeats what the header says, so one of them may rot.
    package static func header(_ start: Bytes, of group: GroupID, number: UInt64) -> PackHeader? {
        let size = PackFormat.headerSize
        if let header = try? PackFormat.decodeHeader(Bytes(start.prefix(size))),
            header.group == group, header.number == number
        {
            return header
        }
        guard start.count == Self.startSize else { return nil }
        let salt = start[(size + 8)..<(size + 16)].reversed().reduce(0 as UInt64) {
            $0 << 8 | UInt64($1)
        }
        let header = PackHeader(group: group, number: number, salt: salt)
        let first = PackFormat.record(Bytes(start[size...]), at: UInt64(size), in: header)
        return first == nil ? nil : header
    }

    /// The sound records of a part of a pack, and the place behind the last of them.
    ///
    /// Behind an unsound place the next sound record is looked for: where one follows it is rot,
    /// and only what is unsound is missing. Where none follows it is a tear.
    ///
    /// - Parameters:
    ///   - read: so many bytes of the pack, fewer at its end.
    ///   - isSound: whether the bytes behind a record's header are as it says.
    package static func records<Failure: Error>(
        in pack: PackHeader, from start: UInt64, to limit: UInt64,
        read: (_ count: Int, _ position: UInt64) throws(Failure) -> Bytes,
        isSound: (PackRecord) throws(Failure) -> Bool
    ) throws(Failure) -> ([PackRecord], UInt64) {
        var records: [PackRecord] = []
        var position = start
        var end = start
        while position + UInt64(PackFormat.recordHeaderSize) <= limit {
            let bytes = try read(PackFormat.recordHeaderSize, position)
            guard let record = PackFormat.record(bytes, at: position, in: pack),
                record.end <= limit
            else {
                guard let next = try Self.next(in: pack, behind: position, limit, read: read)
                else { break }
                position = next
                continue
            }
            position = record.end
            guard try isSound(record) else { continue }
            records.append(record)
            end = record.end
        }
        return (records, end)
    }

    /// The next place behind `position` where a sound record begins.
    private static func next<Failure: Error>(
        in pack: PackHeader, behind position: UInt64, _ limit: UInt64,
        read: (_ count: Int, _ position: UInt64) throws(Failure) -> Bytes
    ) throws(Failure) -> UInt64? {
        let step = UInt64(PackFormat.alignment)
        let blockSize: UInt64 = 64 << 10
        var start = position + step
        while start + UInt64(PackFormat.recordHeaderSize) <= limit {
            // Each block overlaps the next, so that no header lies across two.
            let count = Int(min(blockSize, limit - start))
            let block = try read(count, start)
            if block.count < PackFormat.recordHeaderSize { return nil }
            var offset = 0
            while offset + PackFormat.recordHeaderSize <= block.count {
                // A look at one letter spares most of the checksums.
                if block[offset] == UInt8(ascii: "S") {
                    let bytes = Bytes(block[offset..<(offset + PackFormat.recordHeaderSize)])
                    let place = start + UInt64(offset)
                    if let record = PackFormat.record(bytes, at: place, in: pack),
                        record.end <= limit
                    {
                        return place
                    }
                }
                offset += PackFormat.alignment
            }
            start += UInt64(offset)
        }
        return nil
    }
}
