/// Whether an answer may, and should, go out compressed (RFC 9110 §12.5.3).
package enum AcceptEncoding {
    /// True where the client named gzip, or anything at all, and does not like plain text better.
    /// A malformed part of the field counts as absent: plain text is always understood.
    package static func prefersGzip(_ headers: HeaderFields) -> Bool {
        var gzip: Int?
        var identity: Int?
        var anything: Int?
        for element in headers.list("accept-encoding") {
            let parts = element.utf8.split(separator: 0x3B).map(Self.trimmed)
            guard let coding = parts.first else { continue }
            var weight = 1000
            if parts.count > 1 {
                guard parts.count == 2, let stated = Self.weight(parts[1]) else { continue }
                weight = stated
            }
            if ASCII.equalIgnoringCase(coding, "gzip") || ASCII.equalIgnoringCase(coding, "x-gzip")
            {
                gzip = max(gzip ?? 0, weight)
            } else if ASCII.equalIgnoringCase(coding, "identity") {
                identity = weight
            } else if coding == "*" {
                anything = weight
            }
        }
        let wish = gzip ?? anything ?? 0
        return wish > 0 && wish >= (identity ?? 0)
    }

    private static func trimmed(_ part: Substring.UTF8View) -> String {
        String(Substring(part)).split(separator: " ").joined(separator: " ")
    }

    /// `q=0.5` in thousandths.
    private static func weight(_ parameter: String) -> Int? {
        let text = Array(parameter.utf8)
        guard text.count >= 3, text.count <= 7, text[0] | 0x20 == 0x71, text[1] == 0x3D,
            text[2] == 0x30 || text[2] == 0x31
        else { return nil }
        var weight = Int(text[2] - 0x30) * 1000
        guard text.count > 3 else { return weight }
        guard text[3] == 0x2E else { return nil }
        var scale = 100
        for digit in text[4...] {
            guard ASCII.isDigit(digit) else { return nil }
            weight += Int(digit - 0x30) * scale
            scale /= 10
        }
        return weight <= 1000 ? weight : nil
    }
}
