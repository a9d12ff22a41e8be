import StratusCoding
package import StratusModel
import StratusPlacement
import StratusSealing
import StratusStorage

// Sealed master value, version 1
//
// | bytes | what                                                                  |
// | ----- | --------------------------------------------------------------------- |
// | 1     | version, 1                                                            |
// | 8     | the check value of the key that seals it, which comes from the secret |
// | rest  | sealed as a token is: 32 bytes key, the administrators' token as text |
//
// The file MASTER in a data directory, version 1
//
// | bytes | what                                 |
// | ----- | ------------------------------------ |
// | 8     | "STRATUSM"                           |
// | 1     | version, 1                           |
// | bytes | the sealed master value, prefixed    |
// | 4     | CRC-32C of the bytes before          |

/// What all nodes share of a cluster that began as a single node: the key from which its names and
/// tokens come, and the administrators' token of that node.
///
/// The cluster's secret seals it, so neither the rows nor the data directory gives it away. A
/// cluster that was formed of empty nodes has none: there the key comes from the secret itself.
package struct ClusterMaster: Sendable, Equatable {
    package enum Refusal: Error, Sendable, Equatable, CustomStringConvertible {
        /// The secret is not the one it was sealed with.
        case otherSecret
        case missing
        case damaged(String)
        case disk(String)

        package var description: String {
            switch self {
            case .otherSecret:
                "'cluster.secretFile' holds another secret than the one that this cluster's "
                    + "master value was sealed with: give this node the secret of the other nodes"
            case .missing:
                "the file MASTER is missing in the data directory: copy it from another node of "
                    + "the cluster, or from a backup; without it nobody who signed in finds "
                    + "their data again"
            case .damaged(let what):
                "the file MASTER in the data directory is damaged (\(what)): copy it from another "
                    + "node of the cluster, or from a backup"
            case .disk(let text): "the file MASTER in the data directory: \(text)"
            }
        }
    }

    package static let path: DiskPath = "MASTER"
    package static let keySize = 32
    /// The most bytes of an administrators' token.
    package static let adminTokenSizeMax = ByteCount.kibibytes(4)
    private static let frame = FileFrame("STRATUSM")
    private static let version: UInt8 = 1
    private static let checkSize = 8
    private static let purpose = Bytes("stratus master value 1".utf8)

    /// 32 secret bytes, as `token.key` had them.
    package let key: Bytes
    /// The text of the administrators' token; empty if the node had none in a file.
    package let adminToken: Bytes

    package init(key: Bytes, adminToken: Bytes) {
        precondition(key.count == Self.keySize, "a master value of another size")
        precondition(adminToken.count <= Self.adminTokenSizeMax.raw, "a token of such a size")
        self.key = key
        self.adminToken = adminToken
    }

    // MARK: Sealed

    /// The same bytes for the same content and secret: sealed twice, nothing changes.
    package func sealed(under secret: Bytes) -> Bytes {
        let above = Self.key(of: secret)
        var writer = ByteWriter()
        writer.write(Self.version)
        writer.write(raw: Self.check(of: above))
        writer.write(
            raw: TokenCipher(key: above).seal(self.key + self.adminToken, for: Self.purpose))
        return writer.bytes
    }

    package init(opening sealed: Bytes, with secret: Bytes) throws(Refusal) {
        let above = Self.key(of: secret)
        guard sealed.first == Self.version, sealed.count > 1 + Self.checkSize else {
            throw .damaged("another version or size")
        }
        guard Bytes(sealed[1...Self.checkSize]) == Self.check(of: above) else {
            throw .otherSecret
        }
        let rest = Bytes(sealed[(1 + Self.checkSize)...])
        guard let content = TokenCipher(key: above).open(rest, for: Self.purpose),
            content.count >= Self.keySize,
            content.count <= Self.keySize + Int(Self.adminTokenSizeMax.raw)
        else { throw .damaged("it does not open") }
        self.init(
            key: Bytes(content[..<Self.keySize]), adminToken: Bytes(content[Self.keySize...]))
    }

    private static func key(of secret: Bytes) -> Bytes {
        ClusterFormation.key(for: "master value", secret: secret)
    }

    private static func check(of above: Bytes) -> Bytes {
        SealedKey.check(of: SecretBytes(copying: above))
    }

    // MARK: On disk

    /// The sealed value that a data directory has; nil if it has none.
    package static func kept(in world: any World) throws(Refusal) -> Bytes? {
        do {
            guard try world.files.exists(Self.path) else { return nil }
            let limit = 64 + Int(Formation.masterSizeMax.raw)
            let bytes = try world.files.contents(of: Self.path, limit: limit)
            return try Self.frame.decode(bytes) { (reader, _) throws(DecodingError) in
                try reader.prefixed()
            }
        } catch let error as DecodingError {
            throw .damaged("\(error)")
        } catch { throw .disk("\(error)") }
    }

    package static func keep(_ sealed: Bytes, in world: any World) throws(DiskError) {
        try world.files.replace(
            Self.path, with: Self.frame.encode { $0.write(prefixed: sealed) })
    }

    /// The sealed value of a node: what its directory has, or else what the cluster's view has,
    /// which is then written down too. A view and the file never differ: the value is sealed once.
    package static func found(in world: any World, view: Bytes?) throws(Refusal) -> Bytes? {
        if let kept = try Self.kept(in: world) { return kept }
        guard let view else { return nil }
        do throws(DiskError) { try Self.keep(view, in: world) } catch { throw .disk("\(error)") }
        return view
    }
}
