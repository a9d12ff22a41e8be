import StratusGateway
import StratusIdentity
import StratusModel
import StratusSealing
import Testing

/// Upload tickets, receipts and download links: sealed texts in clients' hands.
@Suite struct AssetTextTests {
    static let ciphers = AssetCiphers(master: Bytes(repeating: 7, count: 32))
    static let container = ContainerReference(container: "iCloud.a", environment: .development)
    static let databases = [
        DatabaseID(container: container, scope: .private, owner: "_owner"),
        DatabaseID(container: container, scope: .public, owner: ""),
        DatabaseID(container: container, scope: .public, owner: "", bucket: Bucket(3, of: 4)),
        DatabaseID(
            container: container, scope: .private, owner: "_owner", bucket: Bucket(63, of: 64)),
    ]
    static let now: Int64 = 1_700_000_000_000

    private static func ticket(_ database: DatabaseID) -> UploadTicket {
        UploadTicket(
            upload: 0x0123_4567_89AB_CDEF_0011_2233_4455_6677, database: database, user: "_user",
            sizeMax: 1 << 30, expiresMilliseconds: now + 1)
    }

    private static func receipt(_ database: DatabaseID) -> AssetReceipt {
        AssetReceipt(
            asset: AssetID(.max), pin: UploadID(7), database: database, user: "_user",
            expiresMilliseconds: now + 1)
    }

    private static func link(_ database: DatabaseID) -> DownloadLink {
        DownloadLink(asset: AssetID(0), database: database, expiresMilliseconds: now + 1)
    }

    private static func export(_ database: DatabaseID) -> ExportTicket {
        ExportTicket(asset: AssetID(5), database: database, expiresMilliseconds: now + 1)
    }

    private func ticket(_ text: String, at now: Int64 = now) -> Result<
        UploadTicket, AssetTextRefusal
    > {
        Result { () throws(AssetTextRefusal) in
            try UploadTicket(text, openedWith: Self.ciphers.tickets, at: now)
        }
    }

    private func receipt(_ text: String, at now: Int64 = now) -> Result<
        AssetReceipt, AssetTextRefusal
    > {
        Result { () throws(AssetTextRefusal) in
            try AssetReceipt(text, openedWith: Self.ciphers.receipts, at: now)
        }
    }

    private func link(_ text: String, at now: Int64 = now) -> Result<
        DownloadLink, AssetTextRefusal
    > {
        Result { () throws(AssetTextRefusal) in
            try DownloadLink(text, openedWith: Self.ciphers.links, at: now)
        }
    }

    private func export(_ text: String, at now: Int64 = now) -> Result<
        ExportTicket, AssetTextRefusal
    > {
        Result { () throws(AssetTextRefusal) in
            try ExportTicket(text, openedWith: Self.ciphers.exports, at: now)
        }
    }

    @Test(arguments: databases) func `each text comes back as it was`(database: DatabaseID) {
        let ticket = Self.ticket(database)
        #expect(self.ticket(ticket.text(sealedWith: Self.ciphers.tickets)) == .success(ticket))
        let receipt = Self.receipt(database)
        #expect(
            self.receipt(receipt.text(sealedWith: Self.ciphers.receipts)) == .success(receipt))
        let link = Self.link(database)
        #expect(self.link(link.text(sealedWith: Self.ciphers.links)) == .success(link))
        let export = Self.export(database)
        #expect(self.export(export.text(sealedWith: Self.ciphers.exports)) == .success(export))
    }

    @Test func `a text ends at its expiry`() {
        let ticket = Self.ticket(Self.databases[0]).text(sealedWith: Self.ciphers.tickets)
        #expect(self.ticket(ticket, at: Self.now + 1) == .failure(.expired))
        let receipt = Self.receipt(Self.databases[0]).text(sealedWith: Self.ciphers.receipts)
        #expect(self.receipt(receipt, at: Self.now + 1) == .failure(.expired))
        let link = Self.link(Self.databases[0]).text(sealedWith: Self.ciphers.links)
        #expect(self.link(link, at: Self.now + 1) == .failure(.expired))
        let export = Self.export(Self.databases[0]).text(sealedWith: Self.ciphers.exports)
        #expect(self.export(export, at: Self.now + 1) == .failure(.expired))
    }

    @Test func `an altered character makes a text unknown`() {
        let text = Self.link(Self.databases[1]).text(sealedWith: Self.ciphers.links)
        for position in text.utf8.indices {
            var bytes = Array(text.utf8)
            let offset = text.utf8.distance(from: text.startIndex, to: position)
            bytes[offset] = bytes[offset] == 0x41 ? 0x42 : 0x41
            let altered = String(decoding: bytes, as: UTF8.self)
            // The last character may hold bits that no byte has.
            let isSpare = offset == bytes.count - 1
            #expect(self.link(altered) == .failure(.unknown) || isSpare)
        }
        for altered in ["", "=", "a", String(text.dropLast(4)), text + "AAAA", "ü", text + "%20"] {
            #expect(self.link(altered) == .failure(.unknown))
        }
        #expect(self.link(String(repeating: "A", count: 100_000)) == .failure(.unknown))
    }

    @Test func `no kind of text is another, and another cluster's is none`() {
        let ticket = Self.ticket(Self.databases[0]).text(sealedWith: Self.ciphers.tickets)
        let receipt = Self.receipt(Self.databases[0]).text(sealedWith: Self.ciphers.receipts)
        let link = Self.link(Self.databases[0]).text(sealedWith: Self.ciphers.links)
        for other in [receipt, link] { #expect(self.ticket(other) == .failure(.unknown)) }
        for other in [ticket, link] { #expect(self.receipt(other) == .failure(.unknown)) }
        let export = Self.export(Self.databases[0]).text(sealedWith: Self.ciphers.exports)
        for other in [ticket, receipt, export] { #expect(self.link(other) == .failure(.unknown)) }
        for other in [ticket, receipt, link] { #expect(self.export(other) == .failure(.unknown)) }
        let asLink = Self.export(Self.databases[0]).text(sealedWith: Self.ciphers.links)
        #expect(self.link(asLink) == .failure(.unknown))
        // The kind is sealed in too, whatever the key.
        let shared = Self.receipt(Self.databases[0]).text(sealedWith: Self.ciphers.links)
        #expect(self.link(shared) == .failure(.unknown))
        let foreign = AssetCiphers(master: Bytes(repeating: 8, count: 32))
        let forged = Self.link(Self.databases[0]).text(sealedWith: foreign.links)
        #expect(self.link(forged) == .failure(.unknown))
    }

    @Test func `links that are made within five minutes are equal`() {
        let hour: Int64 = 3_600_000
        let step: Int64 = 5 * 60_000
        let start = Self.now / step * step
        #expect(DownloadLink.expiry(at: start, life: hour) == start + hour)
        #expect(DownloadLink.expiry(at: start + 1, life: hour) == start + hour + step)
        #expect(DownloadLink.expiry(at: start + step, life: hour) == start + hour + step)
        #expect(DownloadLink.expiry(at: start + step + 1, life: 0) == start + 2 * step)
    }

    @Test func `a text needs no escape in a URL`() {
        for database in Self.databases {
            let texts = [
                Self.ticket(database).text(sealedWith: Self.ciphers.tickets),
                Self.receipt(database).text(sealedWith: Self.ciphers.receipts),
                Self.link(database).text(sealedWith: Self.ciphers.links),
                Self.export(database).text(sealedWith: Self.ciphers.exports),
            ]
            for text in texts {
                #expect(
                    text.utf8.allSatisfy { byte in
                        switch byte {
                        case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, 0x2D, 0x5F: true
                        default: false
                        }
                    })
            }
        }
    }
}
