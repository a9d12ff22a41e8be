/// What the encrypted fields of a zone are thought to be encrypted for. It is fixed when the zone is
/// made, and says only which shares the zone may have: the server holds the keys.
package enum EncryptionScope: UInt8, Sendable, Hashable, CaseIterable {
    case perRecord = 1
    /// The zone can be shared as a whole only.
    case perZone = 2
}
