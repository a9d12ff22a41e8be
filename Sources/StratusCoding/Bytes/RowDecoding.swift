package import StratusModel

/// Decodes a row. Bytes that do not decode were written by a newer version or are damaged: a fault
/// of the world.
package func decodingRow<Value>(
    _ what: StaticString, _ decode: () throws(DecodingError) -> Value
) throws(StoreError) -> Value {
    do { return try decode() } catch { throw StoreError(.unreadable, "\(what): \(error)") }
}
