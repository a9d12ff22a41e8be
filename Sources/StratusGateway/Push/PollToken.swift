import StratusHTTP
import StratusIdentity
import StratusModel
import StratusRecords
import StratusSealing

/// The token of one web client's polls: 16 random bytes, and 16 of their keyed hash. It is known as
/// ours without a look-up.
struct PollToken: Sendable, Equatable {
    static let life: Duration = .seconds(43_200)
    /// Kept longer than told, because clocks differ and polls are long.
    static let margin: Duration = .seconds(3_600)

    /// The random part: names the token among the followers of news.
    let name: Bytes
    let bytes: Bytes

    init(drawnBy random: () -> UInt64, _ cipher: TokenCipher) {
        let name = (0..<2).flatMap { _ in withUnsafeBytes(of: random().bigEndian) { Bytes($0) } }
        self.name = name
        self.bytes = name + Self.proof(of: name, cipher)
    }

    /// Nil: not one of ours.
    init?(_ bytes: Bytes, _ cipher: TokenCipher) {
        guard bytes.count == 32 else { return nil }
        let name = Bytes(bytes[..<16])
        var difference: UInt8 = 0
        for (one, other) in zip(Self.proof(of: name, cipher), bytes[16...]) {
            difference |= one ^ other
        }
        guard difference == 0 else { return nil }
        self.name = name
        self.bytes = bytes
    }

    /// Standard base64, or hexadecimal digits.
    init?(text: String, _ cipher: TokenCipher) {
        let bytes = Hexadecimal.bytes(text) ?? Base64.decode(Bytes(text.utf8).span)
        guard let bytes else { return nil }
        self.init(bytes, cipher)
    }

    private static func proof(of name: Bytes, _ cipher: TokenCipher) -> Bytes {
        let identity = cipher.identity(of: Bytes("stratus poll token 1".utf8) + name)
        return [identity.high, identity.low].flatMap { word in
            withUnsafeBytes(of: word.bigEndian) { Bytes($0) }
        }
    }

    var text: String {
        var writer = JSONWriter()
        writer.write(base64: self.bytes)
        return String(decoding: writer.finish().dropFirst().dropLast(), as: UTF8.self)
    }

    /// What a courier's address names it by.
    var path: String {
        "\(PollService.path)?tok=\(Hexadecimal.text(self.bytes))"
            + "&ttl=\(Self.life.components.seconds)"
    }

    var device: DeviceName { DeviceName(self.name) }
}
