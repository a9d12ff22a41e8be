import StratusCoding
import StratusHTTP
import StratusIdentity
package import StratusModel
import StratusSealing

/// Where a push provider finds a device. It is a secret: whoever has it can send.
package enum PushAddress: Sendable, Hashable {
    case apns(token: Bytes)
    /// - endpoint: a URL that ``AddressGuard`` has judged.
    /// - publicKey: `p256dh`, 65 bytes. secret: `auth`, 16 bytes.
    case webPush(endpoint: String, publicKey: Bytes, secret: Bytes)

    /// How long a registration is good that is not renewed.
    static let life = Duration.seconds(365 * 86_400)
    /// APNs says that tokens may grow.
    static let tokenSizes = 32...100

    /// A device token as apps have it (hexadecimal) or as their libraries send it (base64).
    static func deviceToken(_ text: String) -> Bytes? {
        guard text.utf8.count <= 400,
            let bytes = Hexadecimal.bytes(text) ?? Base64.decode(Bytes(text.utf8).span),
            Self.tokenSizes.contains(bytes.count)
        else { return nil }
        return bytes
    }

    /// | bytes    | address                                                         |
    /// | -------- | --------------------------------------------------------------- |
    /// | 1        | 1 APNs, 2 Web Push                                              |
    /// | prefixed | APNs: token                                                     |
    /// | …        | Web Push: text endpoint, prefixed public key, prefixed secret   |
    func encoded() -> Bytes {
        var writer = ByteWriter(reserving: 256)
        switch self {
        case .apns(let token):
            writer.write(1 as UInt8)
            writer.write(prefixed: token)
        case .webPush(let endpoint, let publicKey, let secret):
            writer.write(2 as UInt8)
            writer.write(text: endpoint)
            writer.write(prefixed: publicKey)
            writer.write(prefixed: secret)
        }
        return writer.bytes
    }

    func sealed(for name: DeviceName, _ cipher: TokenCipher) -> Bytes {
        cipher.seal(self.encoded(), for: Self.purpose(name))
    }

    /// Nil for anything but what ``sealed(for:_:)`` made of the same device.
    init?(opening sealed: Bytes, of name: DeviceName, _ cipher: TokenCipher) {
        guard let bytes = cipher.open(sealed, for: Self.purpose(name)) else { return nil }
        var reader = ByteReader(bytes)
        do {
            switch try reader.byte() {
            case 1: self = .apns(token: try reader.prefixed())
            case 2:
                let endpoint = try reader.text()
                let publicKey = try reader.prefixed()
                self = .webPush(
                    endpoint: endpoint, publicKey: publicKey, secret: try reader.prefixed())
            default: return nil
            }
            try reader.finish()
        } catch { return nil }
    }

    private static func purpose(_ name: DeviceName) -> Bytes {
        Bytes("stratus device address 1".utf8) + name.bytes
    }
}
