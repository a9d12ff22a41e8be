import StratusModel
import Testing

@testable import StratusHTTP

/// The XML that clients send: what is read, and what is refused.
@Suite struct XMLTests {
    private static func read(
        _ text: String, _ limits: XMLLimits = XMLLimits()
    ) throws(XMLError) -> XMLElement {
        try XMLReader.read(Bytes(text.utf8), limits: limits)
    }

    private static func refusal(
        _ text: String, _ limits: XMLLimits = XMLLimits()
    ) -> XMLError.Reason? {
        do throws(XMLError) {
            _ = try Self.read(text, limits)
            return nil
        } catch {
            return error.reason
        }
    }

    @Test func `names are resolved by the declarations around them`() throws {
        let root = try Self.read(
            """
            \u{FEFF}<?xml version="1.0" encoding='UTF-8' ?>
            <!-- before --><?target data?>
            <D:propfind xmlns:D="DAV:" xmlns="urn:a" D:depth="1" plain=' a\tb&#10;c&lt; '>
              <inner xml:lang="en"><D:prop xmlns:D="urn:b"/></inner><none xmlns=""/>
            </D:propfind>
            """)
        #expect(root.name == XMLName("DAV:", "propfind"))
        #expect(
            root.attributes == [
                .init(XMLName("DAV:", "depth"), "1"), .init(XMLName("", "plain"), " a b\nc< "),
            ])
        #expect(root.elements.map(\.name) == [XMLName("urn:a", "inner"), XMLName("", "none")])
        let inner = try #require(root.element(XMLName("urn:a", "inner")))
        #expect(inner.attributes[0].name == XMLName(XMLReader.xmlNamespace, "lang"))
        #expect(inner.elements.map(\.name) == [XMLName("urn:b", "prop")])
    }

    @Test func `text is text, whatever it stands in`() throws {
        let root = try Self.read("<a>x&amp;&#x41;\r\ny<![CDATA[<&]]]]><!-- c -->\r<b/>z</a>\n")
        #expect(root.text == "x&A\ny<&]]\nz")
        #expect(root.children.count == 3)
        #expect(try Self.read("<a></a>").children.isEmpty)
        #expect(try Self.read("<é.1>ü</é.1>").name.local == "é.1")
    }

    @Test(
        arguments: [
            ("", .truncated), ("  ", .truncated), ("<a>", .truncated), ("<a", .truncated),
            ("<a b", .attribute), ("<a><!-- x", .truncated), ("<a><![CDATA[x", .truncated),
            ("x<a/>", .content), ("<a/>x", .content), ("<a/><b/>", .content),
            ("&amp;<a/>", .content),
            ("<![CDATA[]]><a/>", .content), ("<a></b>", .unclosed), ("</a>", .unclosed),
            ("<a></a b>", .syntax), ("<1/>", .name), ("<a:/>", .name), ("<:a/>", .name),
            ("<a:b:c/>", .name), ("<a:1 xmlns:a='b'/>", .name), ("<a:b/>", .namespace),
            ("<a b:c='d'/>", .namespace), ("<a xmlns:b=''/>", .namespace),
            ("<a xmlns:xmlns='b'/>", .namespace), ("<a xmlns:xml='b'/>", .namespace),
            ("<a xmlns='http://www.w3.org/2000/xmlns/'/>", .namespace),
            ("<a b='1' b='2'/>", .attribute), ("<a b=1/>", .attribute), ("<a b/>", .attribute),
            ("<a xmlns:p='u' xmlns:q='u' p:x='' q:x=''/>", .attribute), ("<a b='<'/>", .attribute),
            ("<a b='1'c='2'/>", .syntax), ("<a><!-- -- --></a>", .syntax), ("<a>]]></a>", .syntax),
            ("<?XML v?><a/>", .syntax), ("<a><?xml v?></a>", .syntax),
            ("<a>&nbsp;</a>", .entity), ("<a>&amp</a>", .entity), ("<a>&</a>", .entity),
            ("<a>&#0;</a>", .character), ("<a>&#xD800;</a>", .character),
            ("<a>&#;</a>", .character),
            ("<a>&#x110000;</a>", .character), ("<a>&#+65;</a>", .character),
            ("<a>\u{1}</a>", .character), ("<a b='\u{1}'/>", .character),
            ("<?xml version='1.0' encoding='utf-16'?><a/>", .encoding),
        ] as [(String, XMLError.Reason)])
    func `what is no document is refused`(text: String, reason: XMLError.Reason) {
        #expect(Self.refusal(text) == reason, "\(text)")
    }

    @Test func `no document grows while it is read, and none names a file`() {
        let bomb = """
            <?xml version="1.0"?>
            <!DOCTYPE lolz [<!ENTITY lol "lol"><!ENTITY lol1 "&lol;&lol;&lol;&lol;&lol;&lol;">]>
            <lolz>&lol1;</lolz>
            """
        #expect(Self.refusal(bomb) == .documentType)
        #expect(
            Self.refusal("<!DOCTYPE a SYSTEM 'file:///etc/passwd'><a/>") == .documentType)
        #expect(Self.refusal("<a><!ENTITY b 'c'></a>") == .documentType)
        #expect(
            (try? XMLReader.read([0xFF, 0xFE, 0x3C, 0x00])) == nil
                && (try? XMLReader.read([0x3C, 0x61, 0x3E, 0x80, 0x3C])) == nil)
    }

    @Test func `every limit holds, and one less is read`() {
        var limits = XMLLimits()
        limits.depthMax = 3
        #expect(Self.refusal("<a><a><a/></a></a>", limits) == nil)
        #expect(Self.refusal("<a><a><a><a/></a></a></a>", limits) == .tooDeep)
        limits = XMLLimits()
        limits.elementCountMax = 3
        #expect(Self.refusal("<a><b/><b/></a>", limits) == nil)
        #expect(Self.refusal("<a><b/><b/><b/></a>", limits) == .tooManyElements)
        limits.attributeCountMax = 2
        #expect(Self.refusal("<a b='' xmlns:c='d'/>", limits) == nil)
        #expect(Self.refusal("<a b='' c='' d=''/>", limits) == .tooManyAttributes)
        limits.sizeMax = 8
        #expect(Self.refusal("<a></a> ", limits) == nil)
        #expect(Self.refusal("<a></a>  ", limits) == .tooLarge)
        // A document as large and deep as one may be is read in no time and without the stack.
        let deep = String(repeating: "<a>", count: 50_000)
        #expect(Self.refusal(deep) == .tooDeep)
    }

    @Test func `what is written is read as the same`() throws {
        let root = XMLElement(
            XMLName("DAV:", "multistatus"),
            attributes: [.init(XMLName("urn:x", "a"), "\"<&>'\t\r\n é")],
            children: [
                .text("a<b>&\r]]>"),
                .element(
                    XMLElement(
                        XMLName("", "plain"), attributes: [.init(XMLName("", "b"), "")],
                        children: [.element(XMLElement(XMLName(XMLReader.xmlNamespace, "x")))])),
            ])
        let written = XMLWriter.write(root, prefixes: [("DAV:", "D")])
        #expect(
            String(decoding: written, as: UTF8.self).contains("<D:multistatus xmlns:D=\"DAV:\""))
        #expect(try XMLReader.read(written) == root)
    }
}
