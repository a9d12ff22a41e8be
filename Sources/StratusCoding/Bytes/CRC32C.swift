package import StratusModel

/// CRC-32C (Castagnoli), by table, eight bytes at a time. For the pure modules; shells that check
/// pages and log frames use the processor's instruction.
package enum CRC32C {
    private static let tables: [[UInt32]] = {
        var tables: [[UInt32]] = [[]]
        for byte in 0..<256 as Range<UInt32> {
            var crc = byte
            for _ in 0..<8 { crc = crc & 1 == 1 ? (crc >> 1) ^ 0x82F6_3B78 : crc >> 1 }
            tables[0].append(crc)
        }
        for slice in 1..<8 {
            tables.append((0..<256).map { tables[slice - 1][$0] })
            for byte in 0..<256 {
                let previous = tables[slice - 1][byte]
                tables[slice][byte] = (previous >> 8) ^ tables[0][Int(previous & 0xFF)]
            }
        }
        return tables
    }()

    /// The checksum of `bytes`, continuing from `crc` (0 to start).
    package static func of(_ bytes: Bytes, continuing crc: UInt32 = 0) -> UInt32 {
        let tables = Self.tables
        var crc = ~crc
        var position = 0
        while position + 8 <= bytes.count {
            let low =
                crc ^ UInt32(bytes[position]) ^ UInt32(bytes[position + 1]) << 8
                ^ UInt32(bytes[position + 2]) << 16 ^ UInt32(bytes[position + 3]) << 24
            crc =
                tables[7][Int(low & 0xFF)] ^ tables[6][Int(low >> 8 & 0xFF)]
                ^ tables[5][Int(low >> 16 & 0xFF)] ^ tables[4][Int(low >> 24)]
                ^ tables[3][Int(bytes[position + 4])] ^ tables[2][Int(bytes[position + 5])]
                ^ tables[1][Int(bytes[position + 6])] ^ tables[0][Int(bytes[position + 7])]
            position += 8
        }
        while position < bytes.count {
            crc = (crc >> 8) ^ tables[0][Int((crc ^ UInt32(bytes[position])) & 0xFF)]
            position += 1
        }
        return ~crc
    }
}
