package import StratusModel
package import StratusSealing

/// The ciphers of the texts about assets that clients carry, one for each kind of text.
///
/// ``SealingKeyRing`` changes their keys with all others, so a revoked key ends these texts too.
package struct AssetCiphers: Sendable {
    package let tickets: TokenCipher
    package let receipts: TokenCipher
    package let links: TokenCipher
    package let exports: TokenCipher

    /// - Parameter master: 32 secret bytes, the same on every node and over every restart.
    package init(master: Bytes) {
        func cipher(_ purpose: String) -> TokenCipher {
            TokenCipher(key: KeyedHash.derive(master, "stratus assets 1", Bytes(purpose.utf8)))
        }
        self.tickets = cipher("tickets")
        self.receipts = cipher("receipts")
        self.links = cipher("links")
        self.exports = cipher("exports")
    }

    /// Each cipher with the purpose that later keys are derived for.
    var purposes: [(purpose: String, cipher: TokenCipher)] {
        [
            ("asset tickets", self.tickets), ("asset receipts", self.receipts),
            ("asset links", self.links), ("asset exports", self.exports),
        ]
    }
}
