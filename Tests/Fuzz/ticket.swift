// modules: StratusGateway
import StratusIdentity
import StratusModel
import StratusSealing

@testable import StratusGateway

/// Fuzzes the texts about files: tickets to upload, receipts, links to download, and tickets of
/// exports.
///
/// The bytes are taken as a text, and as what such a text seals. Whatever they are: nothing traps,
/// what has expired is not accepted, and an accepted value is written and read again as the same
/// value.
#if LIBFUZZER
    @_cdecl("LLVMFuzzerTestOneInput")
#endif
public func fuzzTicket(_ start: UnsafePointer<UInt8>, _ count: Int) -> CInt {
    let bytes = Bytes(UnsafeBufferPointer(start: start, count: count))
    open(String(decoding: bytes, as: UTF8.self))
    for kind in [UploadTicket.kind, AssetReceipt.kind, DownloadLink.kind, ExportTicket.kind] {
        open(Base64URL.encode(cipher.seal(bytes, for: kind)))
    }
    if count >= 16 {
        func word(_ offset: Int) -> Int64 {
            Int64(bitPattern: bytes[offset..<(offset + 8)].reduce(0) { $0 << 8 | UInt64($1) })
        }
        // Of a clock and a setting.
        let (now, life) = (word(0) >> 8, word(8) >> 8)
        let end = DownloadLink.expiry(at: now, life: life)
        precondition(end >= now + max(0, life) && end % DownloadLink.stepMilliseconds == 0)
    }
    return 0
}

private let cipher = TokenCipher(key: Bytes(repeating: 9, count: 32))
private let now: Int64 = 1_700_000_000_000

private func open(_ text: String) {
    if let ticket = try? UploadTicket(text, openedWith: cipher, at: now) {
        precondition(ticket.expiresMilliseconds > now)
        let again = try? UploadTicket(
            ticket.text(sealedWith: cipher), openedWith: cipher, at: now)
        precondition(again == ticket, "\(ticket)")
    }
    if let receipt = try? AssetReceipt(text, openedWith: cipher, at: now) {
        precondition(receipt.expiresMilliseconds > now)
        let again = try? AssetReceipt(
            receipt.text(sealedWith: cipher), openedWith: cipher, at: now)
        precondition(again == receipt, "\(receipt)")
    }
    if let link = try? DownloadLink(text, openedWith: cipher, at: now) {
        precondition(link.expiresMilliseconds > now)
        let again = try? DownloadLink(link.text(sealedWith: cipher), openedWith: cipher, at: now)
        precondition(again == link, "\(link)")
    }
    if let export = try? ExportTicket(text, openedWith: cipher, at: now) {
        precondition(export.expiresMilliseconds > now)
        let again = try? ExportTicket(
            export.text(sealedWith: cipher), openedWith: cipher, at: now)
        precondition(again == export, "\(export)")
    }
}
