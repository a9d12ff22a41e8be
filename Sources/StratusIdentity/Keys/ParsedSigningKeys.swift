import StratusCoding
import StratusModel
import StratusRecords
import StratusSealing

/// The signing keys of one container, each with the row that it was read from.
///
/// To parse a private key takes OpenSSL about five million instructions, and the rows are read
/// again every second. A row's bytes change with its revision, so equal bytes hold an equal key.
struct ParsedSigningKeys {
    private struct Key {
        let name: Bytes
        let body: Bytes
        let signing: SigningKey
    }

    private var keys: [Key] = []
    /// How often a key was parsed, for tests.
    private(set) var parseCount = 0

    /// - Parameter pem: what the row holds, opened.
    /// - Returns: nil where that is no key.
    mutating func key(of listed: IdentityAnswer.Listed, pem: Bytes) -> SigningKey? {
        let position = self.keys.firstIndex { $0.name == listed.name }
        if let position, self.keys[position].body == listed.row.body {
            return self.keys[position].signing
        }
        self.parseCount += 1
        guard let signing = SigningKey(pem: pem) else { return nil }
        if let position { self.keys.remove(at: position) }
        self.keys.append(Key(name: listed.name, body: listed.row.body, signing: signing))
        return signing
    }

    /// Forgets the keys whose rows are gone.
    mutating func keep(_ rows: [IdentityAnswer.Listed]) {
        self.keys.removeAll { key in !rows.contains { $0.name == key.name } }
    }
}
