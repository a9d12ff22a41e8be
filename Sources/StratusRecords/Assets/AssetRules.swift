package import StratusCoding

/// The rules that one command about assets is decided by: they travel in it, as ``RecordRules`` do.
package struct AssetRules: FormValue, Sendable, Hashable {
    /// How long a pin holds an asset that no record holds.
    package var pinMilliseconds: Int64 = 24 * 3_600_000
    /// How long an asset stays after its last holder has gone. It is fixed when the asset is made.
    package var graceMilliseconds: Int64 = 3_600_000
    /// Bytes of assets that are pinned and that no record holds, in one database.
    package var unattachedSizeMax: UInt64 = 10 << 30
    /// How many of them there may be.
    package var unattachedCountMax: UInt64 = 100_000
    /// Bytes of records and assets that the database may hold, its quota; 0: as many as there is
    /// room for.
    package var databaseSizeMax: UInt64 = 0

    package init() {}

    package static let standard = AssetRules()

    package mutating func lay<F: Form>(in form: inout F) throws(F.Problem) {
        try Self.lay(&self.pinMilliseconds, in: &form)
        try Self.lay(&self.graceMilliseconds, in: &form)
        try form.lay(&self.unattachedSizeMax)
        try form.lay(&self.unattachedCountMax)
        try form.lay(&self.databaseSizeMax)
    }

    /// Milliseconds: a thousand years at most, so that they can be added to any time there is.
    private static func lay<F: Form>(_ span: inout Int64, in form: inout F) throws(F.Problem) {
        var raw = UInt64(max(0, span))
        try form.lay(&raw)
        try form.require(raw <= 1_000 * 366 * 86_400_000)
        span = Int64(clamping: raw)
    }
}
