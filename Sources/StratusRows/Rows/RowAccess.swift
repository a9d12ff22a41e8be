package import StratusModel

extension RowView {
    package func row(_ table: Table, _ key: Bytes) throws(StoreError) -> Bytes? {
        try unsafe self.row(table, key.span.bytes)
    }

    package func head(_ table: Table, _ key: Bytes, sizeMax: Int) throws(StoreError) -> Bytes? {
        try unsafe self.head(table, key.span.bytes, sizeMax: sizeMax)
    }

    /// The first `limit` rows of `[start, end)`, or the last ones when `descending`; fewer once
    /// they come to `sizeMax` bytes.
    package func rows(
        _ table: Table, from start: Bytes, to end: Bytes, descending: Bool = false, limit: Int,
        sizeMax: Int = .max
    ) throws(StoreError) -> [(key: Bytes, row: Bytes)] {
        if limit <= 0 { return [] }
        var found: [(key: Bytes, row: Bytes)] = []
        var size = 0
        try unsafe self.scan(
            table, from: start.span.bytes, to: end.span.bytes, descending: descending
        ) {
            key, row in
            found.append((Bytes(copying: key), Bytes(copying: row)))
            size += row.byteCount
            return found.count < limit && size < sizeMax ? .next : .stop
        }
        return found
    }
}

extension RowView {
    /// The first `limit` keys of `[start, end)`: a row may be a megabyte.
    package func keys(_ table: Table, from start: Bytes, to end: Bytes, limit: Int)
        throws(StoreError)
        -> [Bytes]
    {
        try self.keys(table, from: start, to: end, limit: limit, sizeMax: .max).keys
    }

    /// The same, and fewer once their rows come to `sizeMax` bytes.
    package func keys(_ table: Table, from start: Bytes, to end: Bytes, limit: Int, sizeMax: Int)
        throws(StoreError) -> (keys: [Bytes], size: Int)
    {
        if limit <= 0 || sizeMax <= 0 { return ([], 0) }
        var found: [Bytes] = []
        var size = 0
        try unsafe self.scan(
            table, from: start.span.bytes, to: end.span.bytes, descending: false
        ) { key, row in
            found.append(Bytes(copying: key))
            size += row.byteCount
            return found.count < limit && size < sizeMax ? .next : .stop
        }
        return (found, size)
    }
}

extension Rows {
    package func row(_ table: Table, _ key: Bytes) throws(StoreError) -> Bytes? {
        try unsafe self.row(table, key.span.bytes)
    }

    package func put(_ table: Table, _ key: Bytes, _ row: Bytes) throws(StoreError) {
        try unsafe self.put(table, key.span.bytes, row.span.bytes)
    }

    package func putNew(_ table: Table, _ key: Bytes, _ row: Bytes) throws(StoreError) {
        try unsafe self.putNew(table, key.span.bytes, row.span.bytes)
    }

    package func remove(_ table: Table, _ key: Bytes) throws(StoreError) {
        try unsafe self.remove(table, key.span.bytes)
    }
}
