package import StratusModel
package import StratusRows

/// A row by itself, for tests that compare rows.
package struct KeyedRow: Sendable, Equatable {
    package let key: Bytes
    package let row: Bytes

    package init(key: Bytes, row: Bytes) {
        self.key = key
        self.row = row
    }
}

/// What tests ask of rows that they hold in memory, which can always be read.
extension Rows {
    /// Every row of a table, in the order of the keys.
    package func contents(of table: Table) -> [KeyedRow] {
        do throws(StoreError) {
            return try self.view.rows(table, from: [], to: [], limit: .max)
                .map { KeyedRow(key: $0.key, row: $0.row) }
        } catch { preconditionFailure("a test reads rows that cannot be read: \(error)") }
    }

    package func count(_ table: Table) -> Int { self.contents(of: table).count }

    /// Every row of each table that has one. Rows themselves go on changing; this does not.
    package var contents: [Table: [KeyedRow]] {
        var found: [Table: [KeyedRow]] = [:]
        for table in Table.all {
            let rows = self.contents(of: table)
            if !rows.isEmpty { found[table] = rows }
        }
        return found
    }

    /// The same rows in memory, which go their own way from here on.
    package func copied() -> Rows {
        let copy = Rows()
        do throws(StoreError) {
            for table in Table.all {
                for row in self.contents(of: table) { try copy.put(table, row.key, row.row) }
            }
            try copy.commit()
        } catch { preconditionFailure("rows in memory cannot be written: \(error)") }
        return copy
    }
}
