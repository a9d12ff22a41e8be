// modules: StratusGateway
import StratusCoding
import StratusHTTP
import StratusIdentity
import StratusModel
import StratusSealing

@testable import StratusGateway
@testable import StratusQuery
@testable import StratusRecords

/// Fuzzes the texts that clients hold for us: positions in feeds, markers of queries, web-auth
/// tokens, links to sign in, names of polls, and the address of a device.
///
/// The bytes are taken as a text, and as what such a text seals: the key is known here, so that
/// what is behind the seal is reached, too. Whatever the bytes are: nothing traps, and a value is
/// written and read again as the same value.
#if LIBFUZZER
    @_cdecl("LLVMFuzzerTestOneInput")
#endif
public func fuzzToken(_ start: UnsafePointer<UInt8>, _ count: Int) -> CInt {
    let bytes = Bytes(UnsafeBufferPointer(start: start, count: count))
    open(String(decoding: bytes, as: UTF8.self))
    for kind in FeedToken.Kind.allCases {
        let sealed = cipher.seal(bytes, for: place.circumstances(kind))
        open(Base64.encode([kind.rawValue] + sealed))
    }
    let marker = cipher.seal(bytes, for: place.circumstances(ContinuationMarker.purpose, query))
    open(Base64.encode([ContinuationMarker.purpose] + marker))
    let forContainer = Bytes("web auth".utf8) + [0, 1] + Bytes("iCloud.c".utf8)
    open("s1_" + Base64URL.encode(cipher.seal(bytes, for: forContainer)))
    open(Base64URL.encode(cipher.seal(bytes, for: Bytes("sign-in link".utf8))))
    let device = DeviceName(Bytes(repeating: 4, count: 16))
    let address = cipher.seal(bytes, for: Bytes("stratus device address 1".utf8) + device.bytes)
    if let address = PushAddress(opening: address, of: device, cipher) {
        let again = PushAddress(opening: address.sealed(for: device, cipher), of: device, cipher)
        precondition(again == address)
    }
    return 0
}

private let cipher = TokenCipher(key: Bytes(repeating: 9, count: 32))
private let container = ContainerReference(container: "iCloud.c", environment: .development)
private let place = FeedPlace(container: container, scope: .private, owner: "_o", zone: "Z")
private let query: Bytes = [1, 2, 3]

private func open(_ text: String) {
    for kind in FeedToken.Kind.allCases {
        if let token = try? FeedToken(kind, text: text, at: place, openedWith: cipher) {
            let written = token.text(at: place, sealedWith: cipher)
            let again = try? FeedToken(kind, text: written, at: place, openedWith: cipher)
            precondition(again == token, "\(token)")
            _ = (token.feedPosition, token.databasePosition)
        }
        for count in [1, 4, 64] {
            guard
                let token = try? PartedToken(
                    kind, text: text, count: count, at: place, openedWith: cipher)
            else { continue }
            let written = token.text(at: place, sealedWith: cipher)
            let again = try? PartedToken(
                kind, text: written, count: count, at: place, openedWith: cipher)
            precondition(again == token, "\(token)")
        }
    }
    if let cursor = try? ContinuationMarker.cursor(
        text, of: query, at: place, openedWith: cipher)
    {
        _ = try? QueryPosition(decoding: cursor, for: 0)
    }
    if let token = WebAuthToken(text: text, in: container, openedWith: cipher) {
        let again = WebAuthToken(
            text: token.text(in: container, sealedWith: cipher), in: container, openedWith: cipher)
        precondition(again == token, "\(token)")
        for now in [0, 1_700_000_000_000, Int64.max] {
            _ = token.isAlive(at: now)
        }
    }
    if let link = SignInLink(text: text, openedWith: cipher) {
        let again = SignInLink(text: link.text(sealedWith: cipher), openedWith: cipher)
        precondition(again == link, "\(link)")
        for now in [0, 1_700_000_000_000, Int64.max] { _ = link.isAlive(at: now) }
    }
    if let token = PollToken(text: text, cipher) {
        precondition(PollToken(text: token.text, cipher)?.bytes == token.bytes)
    }
}
