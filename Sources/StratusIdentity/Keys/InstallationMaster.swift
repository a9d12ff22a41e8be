package import StratusModel
package import StratusSealing

/// The master key of an installation that was given none: version 0.
///
/// It comes from `token.key` on a node alone and from the cluster's secret otherwise. So it
/// protects from whoever has the rows without that secret.
package struct InstallationMaster: MasterKeys {
    private let zero: SecretBytes

    /// - Parameter secret: 32 bytes, the same on every node and over every restart.
    package init(secret: Bytes) {
        precondition(secret.count == 32, "a secret has 32 bytes")
        self.zero = KeyDerivation.derive(
            from: SecretBytes(copying: secret), info: Bytes("stratus master key 0".utf8))
    }

    package var sealing: UInt32 { 0 }
    package var versions: [UInt32] { [0] }

    package func key(_ version: UInt32) -> SecretBytes? { version == 0 ? self.zero : nil }
}
