import Foundation
import StratusHTTP
import StratusModel
import Testing

@Suite struct ByteRangeTests {
    static let rows: [(String?, UInt64, ByteRange)] = [
        (nil, 10, .whole), ("", 10, .whole), ("bytes", 10, .whole), ("bytes=", 10, .whole),
        ("bytes=0-0", 10, .part(0..<1)), ("bytes=0-9", 10, .part(0..<10)),
        ("bytes=0-10", 10, .part(0..<10)), ("bytes=0-", 10, .part(0..<10)),
        ("bytes=9-", 10, .part(9..<10)), ("bytes=9-9", 10, .part(9..<10)),
        ("bytes=10-", 10, .unsatisfiable), ("bytes=10-11", 10, .unsatisfiable),
        ("bytes=-1", 10, .part(9..<10)), ("bytes=-10", 10, .part(0..<10)),
        ("bytes=-11", 10, .part(0..<10)), ("bytes=-0", 10, .unsatisfiable),
        ("bytes=0-0", 0, .unsatisfiable), ("bytes=-5", 0, .unsatisfiable),
        ("bytes=5-4", 10, .whole), ("bytes=a-4", 10, .whole), ("bytes=1-b", 10, .whole),
        ("bytes=--1", 10, .whole), ("bytes=-", 10, .whole), ("bytes=1", 10, .whole),
        ("bytes=+1-2", 10, .whole), ("bytes=1.0-2", 10, .whole), ("bytes 0-1", 10, .whole),
        ("BYTES=2-3", 10, .part(2..<4)), ("items=0-1", 10, .whole),
        ("bytes= 2-3 ", 10, .part(2..<4)), ("bytes=2 - 3", 10, .whole),
        ("bytes=0-1,4-5", 10, .whole), ("bytes=0-1,", 10, .part(0..<2)),
        ("bytes=,,0-1", 10, .part(0..<2)),
        ("bytes=99999999999999999999-", 10, .unsatisfiable),
        ("bytes=2-99999999999999999999", 10, .part(2..<10)),
        ("bytes=-99999999999999999999", 10, .part(0..<10)),
        ("bytes=18446744073709551615-", .max, .unsatisfiable),
        ("bytes=0-18446744073709551615", .max, .part(0..<UInt64.max)),
    ]

    @Test(arguments: rows)
    func `one range is a part of the file, everything else the whole or nothing`(
        field: String?, size: UInt64, expected: ByteRange
    ) {
        #expect(ByteRange(field, size: size) == expected, "\(field ?? "absent") of \(size)")
    }

    @Test func `what answers say of ranges`() {
        #expect(ByteRange.contentRange(2..<5, size: 10) == "bytes 2-4/10")
        #expect(ByteRange.contentRange(unsatisfiedOf: 10) == "bytes */10")
        #expect(ByteRange.counts(ifRange: nil, tag: "\"a\""))
        #expect(ByteRange.counts(ifRange: "\"a\"", tag: "\"a\""))
        #expect(!ByteRange.counts(ifRange: "\"b\"", tag: "\"a\""))
        #expect(!ByteRange.counts(ifRange: "W/\"a\"", tag: "\"a\""))
        #expect(!ByteRange.counts(ifRange: "Sun, 06 Nov 1994 08:49:37 GMT", tag: "\"a\""))
    }
}

@Suite struct ContentDispositionTests {
    static let rows: [(String?, String, String)] = [
        (nil, "attachment", "application/octet-stream"),
        ("", "attachment", "application/octet-stream"),
        ("photo.jpg", "inline; filename=\"photo.jpg\"", "image/jpeg"),
        ("PHOTO.JPG", "inline; filename=\"PHOTO.JPG\"", "image/jpeg"),
        ("notes.txt", "inline; filename=\"notes.txt\"", "text/plain; charset=utf-8"),
        ("page.html", "attachment; filename=\"page.html\"", "application/octet-stream"),
        ("drawing.svg", "attachment; filename=\"drawing.svg\"", "application/octet-stream"),
        ("paper.pdf", "attachment; filename=\"paper.pdf\"", "application/octet-stream"),
        ("photo.jpg.html", "attachment; filename=\"photo.jpg.html\"", "application/octet-stream"),
        ("jpg", "attachment; filename=\"jpg\"", "application/octet-stream"),
        (
            "Größe 1.png",
            "inline; filename=\"Gr__e 1.png\"; filename*=UTF-8''Gr%C3%B6%C3%9Fe%201.png",
            "image/png"
        ),
        (
            "100%.txt", "inline; filename=\"100_.txt\"; filename*=UTF-8''100%25.txt",
            "text/plain; charset=utf-8"
        ),
        (
            "../../etc/passwd", "attachment; filename=\"_.._etc_passwd\"",
            "application/octet-stream"
        ),
        ("a\"; filename=\"b.exe", "attachment; filename=\"a__ filename=_b.exe\"", ""),
        (
            "a\r\nSet-Cookie: x", "attachment; filename=\"aSet-Cookie_ x\"",
            "application/octet-stream"
        ),
        ("gpj\u{202E}exe.png", "inline; filename=\"gpjexe.png\"", "image/png"),
        (".hidden.png ", "inline; filename=\"hidden.png\"", "image/png"),
        ("...", "attachment", "application/octet-stream"),
    ]

    @Test(arguments: rows)
    func `X-20 X-21 a name is offered as a name and nothing else`(
        name: String?, field: String, type: String
    ) {
        let disposition = ContentDisposition(name: name)
        if type.isEmpty {
            #expect(
                !disposition.field.dropFirst("attachment; filename=\"".count).dropLast().contains(
                    "\""))
        } else {
            #expect(disposition.field == field)
            #expect(disposition.contentType == type)
        }
    }

    @Test(arguments: 0..<300 as Range<UInt64>)
    func `whatever the name, the field is one line of ASCII and its quotes are closed`(seed: UInt64)
    {
        var random = SeededGenerator(seed: seed)
        let scalars: [Unicode.Scalar] = [
            "a", "\"", "\\", "/", "\r", "\n", "\0", "é", "😀", "\u{202E}", ";", "%", ".", " ", "=",
        ]
        var name = String.UnicodeScalarView()
        for _ in 0..<Int.random(in: 0...300, using: &random) {
            name.append(scalars[Int.random(in: 0..<scalars.count, using: &random)])
        }
        let field = ContentDisposition(name: String(name)).field
        #expect(field.utf8.allSatisfy { $0 >= 0x20 && $0 < 0x7F }, "seed \(seed)")
        #expect([0, 2].contains(field.utf8.count { $0 == 0x22 }), "seed \(seed): \(field)")
        #expect(field.utf8.count < 1_000, "seed \(seed)")
    }
}

@Suite struct MultipartReaderTests {
    enum Outcome: Equatable {
        case file(String)
        case refused(MultipartReader.Refusal)
    }

    static func read(_ body: String, boundary: String = "B", cut: Int = .max) -> Outcome {
        var reader = MultipartReader(boundary: boundary)
        var file = Bytes()
        var rest = Array(body.utf8)[...]
        do throws(MultipartReader.Refusal) {
            while !rest.isEmpty {
                let piece = rest.prefix(cut)
                file += try reader.read(piece)
                rest = rest.dropFirst(piece.count)
            }
            try reader.finish()
            return .file(String(decoding: file, as: UTF8.self))
        } catch { return .refused(error) }
    }

    static func part(
        _ content: String, _ disposition: String = "form-data; name=\"f\"; filename=\"a\""
    )
        -> String
    {
        "--B\r\nContent-Disposition: \(disposition)\r\nContent-Type: text/plain\r\n\r\n\(content)\r\n"
    }

    static let rows: [(String, String, Outcome)] = [
        ("one file", part("hello") + "--B--\r\n", .file("hello")),
        ("without the last line's end", part("hello") + "--B--", .file("hello")),
        ("an empty file", part("") + "--B--", .file("")),
        (
            "a preamble and an epilogue", "hi\r\n" + part("x") + "--B--\r\nbye\r\n--B\r\n",
            .file("x")
        ),
        (
            "a field first", part("no", "form-data; name=\"n\"") + part("yes") + "--B--",
            .file("yes")
        ),
        ("two files", part("one") + part("two") + "--B--", .file("one")),
        ("line ends inside", part("a\r\nb\n--\r\r\n-B") + "--B--", .file("a\r\nb\n--\r\r\n-B")),
        ("a beginning of a delimiter", part("a\r\n--\r\n--C") + "--B--", .file("a\r\n--\r\n--C")),
        (
            "spaces behind the delimiter",
            part("x").replacing("--B\r\n", with: "--B \t\r\n") + "--B--",
            .file("x")
        ),
        (
            "filename* counts", part("x", "form-data; name=f; filename*=UTF-8''a") + "--B--",
            .file("x")
        ),
        ("upper case", part("x").replacing("Content-D", with: "CONTENT-D") + "--B--", .file("x")),
        ("no file", part("x", "form-data; name=\"n\"") + "--B--", .refused(.noFile)),
        ("no part", "--B--", .refused(.noFile)),
        ("nothing", "", .refused(.truncated)),
        ("no delimiter", "hello", .refused(.truncated)),
        ("cut in the file", part("hello"), .refused(.truncated)),
        ("cut in the last delimiter", part("hello") + "--B-", .refused(.truncated)),
        ("a delimiter that goes on", part("a\r\n--Bx") + "--B--", .refused(.malformed)),
        ("no disposition", "--B\r\nContent-Type: a/b\r\n\r\nx\r\n--B--", .refused(.malformed)),
        (
            "two dispositions",
            part("x", "form-data; name=f\r\nContent-Disposition: form-data") + "--B--",
            .refused(.malformed)
        ),
        (
            "another disposition", part("x", "attachment; filename=a") + "--B--",
            .refused(.malformed)
        ),
        (
            "a parameter twice", part("x", "form-data; filename=a; filename=b") + "--B--",
            .refused(.malformed)
        ),
        ("open quotes", part("x", "form-data; filename=\"a") + "--B--", .refused(.malformed)),
        (
            "a bare line feed", part("x").replacing("plain\r\n", with: "plain\n") + "--B--",
            .refused(.malformed)
        ),
        ("a folded header", part("x", "form-data;\r\n filename=a") + "--B--", .refused(.malformed)),
        (
            "headers without end", "--B\r\nX: " + String(repeating: "a", count: 9_000),
            .refused(.headersTooLarge)
        ),
        (
            "parts without end",
            String(repeating: part("x", "form-data; name=n"), count: 65) + "--B--",
            .refused(.tooManyParts)
        ),
    ]

    @Test(arguments: rows)
    func `the first file is read, whatever stands around it`(
        name: String, body: String, expected: Outcome
    ) {
        for cut in [Int.max, 1, 2, 3, 7] {
            #expect(Self.read(body, cut: cut) == expected, "\(name), cut in \(cut)")
        }
    }

    static let types: [(String, String?)] = [
        ("multipart/form-data; boundary=abc", "abc"),
        ("Multipart/Form-Data; Boundary=\"a b\"", "a b"),
        ("multipart/form-data; charset=utf-8; boundary=----X", "----X"),
        ("multipart/form-data", nil), ("multipart/form-data; boundary=", nil),
        ("multipart/form-data; boundary=\"a \"", nil), ("multipart/mixed; boundary=a", nil),
        ("multipart/form-data; boundary=a; boundary=b", nil),
        ("multipart/form-data; boundary=\"a\"b", nil), ("text/plain; boundary=a", nil),
        ("multipart/form-data; boundary=" + String(repeating: "a", count: 71), nil),
        ("multipart/form-data; boundary=\"a\u{7F}\"", nil),
        ("multipart/form-data, boundary=a", nil),
    ]

    @Test(arguments: types)
    func `a boundary is one that a header may name`(type: String, expected: String?) {
        #expect(MultipartReader.boundary(of: type) == expected, "\(type)")
    }

    @Test(arguments: 0..<200 as Range<UInt64>)
    func `A-18 any content comes back, however it is cut`(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        let letters: [UInt8] = [0x0D, 0x0A, 0x2D, 0x42, 0x00, 0xFF]
        var content = (0..<Int.random(in: 0...400, using: &random)).map { _ in
            letters[Int.random(in: 0..<letters.count, using: &random)]
        }
        // The boundary is one that does not occur.
        let boundary = "BB-" + String(seed)
        if content.isEmpty { content = [1] }
        let body =
            Bytes("--\(boundary)\r\nContent-Disposition: form-data; filename=a\r\n\r\n".utf8)
            + content + Bytes("\r\n--\(boundary)--".utf8)
        var reader = MultipartReader(boundary: boundary)
        var file = Bytes()
        var rest = body[...]
        while !rest.isEmpty {
            let piece = rest.prefix(Int.random(in: 1...90, using: &random))
            file += try reader.read(piece)
            rest = rest.dropFirst(piece.count)
        }
        try reader.finish()
        #expect(file == content, "seed \(seed)")
    }
}
