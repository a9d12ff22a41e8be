package import StratusCoding
package import StratusModel
package import StratusRows

/// Asks for a key of a database. For Stratus itself.
///
/// Its answer is nil where the database has no such key.
package struct KeyAsk: PointQuestion, DatabaseQuestion, Equatable {
    package typealias State = RecordState
    package static let number: UInt8 = 21
    package static let bound = WorkBound.point(10)

    package var database = DatabaseID()
    /// Nil: the newest that seals; never version 0.
    package var version: UInt32?

    package init() {}

    package var payer: Payer { .owner(of: self.database) }
    package var need: AccessNeed { .system }

    package mutating func lay<F: Form>(in form: inout F) throws(F.Problem) {
        try form.lay(&self.database)
        try form.lay(&self.version)
    }

    package func answer(to asker: Principal, over points: PointReader)
        throws(StoreError) -> Result<DatabaseKey?, RequestRefusal>
    {
        guard let row = try points.row(.database, Keys.database(self.database)) else {
            return .success(nil)
        }
        let number = try StoredRows.database(decoding: row).number
        guard let version = self.version else {
            let start = AssetKeys.databaseKeys(number)
            let last = try points.last(.key, from: start, to: Keys.end(of: start))
            return .success(try AssetRows.newestKey(last))
        }
        guard let row = try points.row(.key, AssetKeys.databaseKey(number, version)) else {
            return .success(nil)
        }
        let key = try AssetRows.key(decoding: row).key
        return .success(
            DatabaseKey {
                $0.version = version
                $0.key = key
            })
    }
}
