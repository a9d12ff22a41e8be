package import StratusCoding
package import StratusModel
import StratusRows

/// Looks for the name of a zone of which rows say only the number. A partition may have many zones,
/// and none is found by its number: so a search takes several questions, and this is how far it has
/// come.
package struct ZoneSearch: FormValue, Sendable, Equatable {
    /// Rows that one step looks at.
    static let stepCountMax = 400

    var number: UInt32 = 0
    /// The last zone that was looked at.
    var after: Bytes = []
    /// Whether it has ended. Without a zone then: there is none of this number.
    var isOver = false
    package private(set) var database: DatabaseID?
    package private(set) var zone: String?
    package private(set) var isDeleted = false

    package init() {}

    init(for number: ZoneNumber) { self.number = number.raw }

    package mutating func lay<F: Form>(in form: inout F) throws(F.Problem) {
        try form.lay(&self.number)
        try form.lay(&self.after)
        try form.lay(&self.isOver)
        try form.lay(&self.database)
        try form.lay(&self.zone)
        try form.lay(&self.isDeleted)
    }

    mutating func step(over view: RowView) throws(StoreError) {
        let zones = try view.rows(
            .zone, from: self.after.isEmpty ? [] : self.after + [0], to: [],
            limit: Self.stepCountMax)
        self.isOver = zones.count < Self.stepCountMax
        for (key, row) in zones {
            self.after = key
            guard Keys.isZone(key) else { continue }
            let zone = try StoredRows.zone(decoding: row)
            guard zone.number.raw == self.number else { continue }
            let number = DatabaseNumber(key[0..<4].reduce(0) { $0 << 8 | UInt32($1) })
            self.database = try AssetRows.database(of: number, over: view)
            self.zone = String(decoding: key.dropFirst(5), as: UTF8.self)
            self.isDeleted = zone.isDeleted
            self.isOver = true
            return
        }
    }
}
