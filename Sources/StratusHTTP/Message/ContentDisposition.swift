import StratusModel

/// How a file that a user uploaded is offered to a browser, by the name that whoever links to it
/// chose.
///
/// Only a listed kind of file is shown in place, with the type of its ending. Everything else is to
/// be saved, as bytes without a type, so that no browser runs what somebody uploaded.
package struct ContentDisposition: Sendable, Equatable {
    /// The value of `Content-Disposition`.
    package let field: String
    /// The value of `Content-Type`.
    package let contentType: String

    /// Kinds that no browser runs.
    private static let shown: [String: String] = [
        "aac": "audio/aac", "avif": "image/avif", "bmp": "image/bmp", "flac": "audio/flac",
        "gif": "image/gif", "heic": "image/heic", "heif": "image/heif", "jpeg": "image/jpeg",
        "jpg": "image/jpeg", "m4a": "audio/mp4", "m4v": "video/mp4", "mov": "video/quicktime",
        "mp3": "audio/mpeg", "mp4": "video/mp4", "ogg": "audio/ogg", "opus": "audio/ogg",
        "png": "image/png", "tif": "image/tiff", "tiff": "image/tiff",
        "txt": "text/plain; charset=utf-8", "wav": "audio/wav", "webm": "video/webm",
        "webp": "image/webp",
    ]
    private static let otherType = "application/octet-stream"
    private static let nameSizeMax = 200

    /// - Parameter name: as the last segment of a link has it, decoded. Nil or empty: the file has
    ///   none.
    package init(name: String?) {
        let name = Self.sanitised(name ?? "")
        let ending = name.utf8.lastIndex(of: 0x2E).map {
            String(
                decoding: name.utf8[name.utf8.index(after: $0)...].map(ASCII.lowered), as: UTF8.self
            )
        }
        let shownType = ending.flatMap { Self.shown[$0] }
        self.contentType = shownType ?? Self.otherType
        var field = shownType == nil ? "attachment" : "inline"
        if !name.isEmpty {
            let plain = String(
                decoding: name.unicodeScalars.map { scalar -> UInt8 in
                    let isPlain =
                        scalar.isASCII && scalar != "\"" && scalar != "\\" && scalar != "%"
                    return isPlain ? UInt8(truncatingIfNeeded: scalar.value) : 0x5F
                }, as: UTF8.self)
            field += "; filename=\"\(plain)\""
            // RFC 8187: who knows it takes this one.
            if plain != name { field += "; filename*=UTF-8''\(PercentCoding.encode(name))" }
        }
        self.field = field
    }

    /// A name that no system takes for a path, and that says what it shows: no separators, controls
    /// or marks of direction, no dots at its ends, and not too long.
    static func sanitised(_ name: String) -> String {
        var scalars = String.UnicodeScalarView()
        var size = 0
        for scalar in name.unicodeScalars {
            let kept: Unicode.Scalar
            switch scalar.value {
            case 0x00...0x1F, 0x7F...0x9F, 0x200B...0x200F, 0x2028...0x202E, 0x2060...0x206F,
                0xFEFF, 0xFFF9...0xFFFB, 0xE0000...0xE007F:
                continue
            case 0x22, 0x2A, 0x2F, 0x3A, 0x3C, 0x3E, 0x3F, 0x5C, 0x7C: kept = "_"
            default: kept = scalar
            }
            size += UTF8.width(kept)
            if size > Self.nameSizeMax { break }
            scalars.append(kept)
        }
        let isEdge = { (scalar: Unicode.Scalar) in scalar == "." || scalar == " " }
        var trimmed = scalars.drop(while: isEdge)
        while let last = trimmed.last, isEdge(last) { trimmed = trimmed.dropLast() }
        return String(String.UnicodeScalarView(trimmed))
    }
}
