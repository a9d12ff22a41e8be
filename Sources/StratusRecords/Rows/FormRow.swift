import StratusCoding
import StratusModel
import StratusRows

/// A row that is 1 byte of format, 1, and then its fields as they are laid.
protocol FormRow: FormValue, FixedLevel {}

extension FormRow {
    static var level: FeatureLevel { .one }

    func encoded() -> Bytes {
        var writer = ByteWriter(reserving: 64)
        writer.write(1 as UInt8)
        writer.write(form: self)
        return writer.bytes
    }

    init(decoding row: Bytes) throws(DecodingError) {
        var reader = ByteReader(row)
        try reader.format(1)
        self = try reader.form(Self.self)
        try reader.finish()
    }

    /// The row of a key, if it is there.
    static func stored(_ table: Table, _ key: Bytes, over rows: RowView) throws(StoreError)
        -> Self?
    {
        guard let row = try rows.row(table, key) else { return nil }
        return try decodingRow("row of a form") { () throws(DecodingError) in
            try Self(decoding: row)
        }
    }

    static func stored(_ table: Table, _ key: Bytes, over points: PointReader) throws(StoreError)
        -> Self?
    {
        guard let row = try points.row(table, key) else { return nil }
        return try decodingRow("row of a form") { () throws(DecodingError) in
            try Self(decoding: row)
        }
    }
}
