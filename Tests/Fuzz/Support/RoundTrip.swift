import StratusModel

/// Reads bytes, and holds what was accepted against itself written and read once more.
func check<Value, Failure>(
    _ bytes: Bytes, _ read: (Bytes) throws(Failure) -> Value, _ write: (Value) -> Bytes
) {
    guard let value = try? read(bytes) else { return }
    let once = write(value)
    guard let again = try? read(once) else {
        preconditionFailure("what was written cannot be read: \(value)")
    }
    precondition(write(again) == once, "reading and writing again changed \(value)")
}
