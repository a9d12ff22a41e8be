package import StratusModel

extension RequestIdentity {
    /// The identity as CloudKit writes it: in `X-Apple-Request-UUID`, in the `uuid` of an error,
    /// and in the log line that belongs to both. `6f0c1d7e-0c38-4f0b-8a55-9b0f2b1f6f10`.
    package var uuid: String { self.hexadecimal(isGrouped: true) }
}
