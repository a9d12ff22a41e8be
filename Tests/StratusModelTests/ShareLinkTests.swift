import StratusModel
import Testing

/// The text of a share's link.
@Suite struct ShareLinkTests {
    @Test func `a link has one text, and comes back from it`() {
        var random = SeededGenerator(seed: 1)
        for _ in 0..<1_000 {
            let link = ShareLink(
                drawn: .random(in: 0...(.max), using: &random),
                part: .random(in: 0...255, using: &random),
                owner: .random(in: 0...(.max), using: &random))
            #expect(link.text.utf8.count == ShareLink.letterCount)
            #expect(link.bytes.count == ShareLink.byteCount)
            #expect(ShareLink(text: link.text) == link && ShareLink(bytes: link.bytes) == link)
        }
    }

    @Test func `links are written as ever`() {
        let first = ShareLink(drawn: 0, part: 0, owner: 0)
        #expect(first.text == String(repeating: "0", count: 45))
        #expect(ShareLink(drawn: 0, part: 0, owner: 61).text.hasSuffix("0z"))
        #expect(ShareLink(drawn: 0, part: 0, owner: 62).text.hasSuffix("010"))
        let last = ShareLink(drawn: .max, part: .max, owner: .max)
        #expect(ShareLink(text: last.text) == last)
    }

    @Test(arguments: [
        "", "0", String(repeating: "0", count: 44), String(repeating: "0", count: 46),
        String(repeating: "z", count: 45), String(repeating: "-", count: 45),
        String(repeating: "é", count: 22) + "0",
    ])
    func `what is no link is none`(text: String) { #expect(ShareLink(text: text) == nil) }
}
