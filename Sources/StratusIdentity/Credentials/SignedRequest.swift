package import StratusHTTP
package import StratusModel
import StratusSealing

/// The three header fields of a server-to-server request.
package struct SignedRequest: Sendable, Equatable {
    package static let keyField = "X-Apple-CloudKit-Request-KeyID"
    package static let dateField = "X-Apple-CloudKit-Request-ISO8601Date"
    package static let signatureField = "X-Apple-CloudKit-Request-SignatureV1"
    /// How far a request's date may be from the clock, in both directions.
    package static let windowMilliseconds: Int64 = 10 * 60_000

    package var keyID: String
    /// Exactly as sent: it is part of what was signed.
    package var date: String
    package var signature: String

    /// Whether any part of a signature is present. An incomplete one is refused, not overlooked.
    package static func isPresent(in head: RequestHead) -> Bool {
        head.headers.contains(Self.signatureField) || head.headers.contains(Self.keyField)
            || head.headers.contains(Self.dateField)
    }

    package static func isPresent(in view: RequestView, _ bytes: Span<UInt8>) -> Bool {
        view.has("x-apple-cloudkit-request-signaturev1", in: bytes)
            || view.has("x-apple-cloudkit-request-keyid", in: bytes)
            || view.has("x-apple-cloudkit-request-iso8601date", in: bytes)
    }

    /// Nil: one of the three is missing, or there twice.
    package init?(_ head: RequestHead) {
        func only(_ name: String) -> String? {
            let values = head.headers.values(of: name)
            return values.count == 1 ? values[0] : nil
        }
        guard let key = only(Self.keyField), let date = only(Self.dateField),
            let signature = only(Self.signatureField)
        else { return nil }
        self.keyID = key
        self.date = date
        self.signature = signature
    }

    /// The texts that clients are known to sign: with or without the query, and for an empty body
    /// the hash of no bytes or nothing at all.
    package enum Variant: UInt8, Sendable, Hashable, CaseIterable {
        case path = 0
        case target = 1
        case pathWithoutHash = 2
        case targetWithoutHash = 3
    }

    /// The variants that can be told apart in this request, the likely one first.
    package static func variants(
        of head: RequestHead, bodyIsEmpty: Bool, likely: Variant?
    ) -> [Variant] {
        let possible = Variant.allCases.filter { variant in
            switch variant {
            case .path: true
            case .target: head.query != nil
            case .pathWithoutHash: bodyIsEmpty
            case .targetWithoutHash: bodyIsEmpty && head.query != nil
            }
        }
        guard let likely, possible.contains(likely) else { return possible }
        return [likely] + possible.filter { $0 != likely }
    }

    /// SHA-256 of the text that this variant signs.
    package func digest(_ variant: Variant, head: RequestHead, bodyHash: Bytes) -> Bytes {
        var message = Bytes(self.date.utf8)
        message.append(UInt8(ascii: ":"))
        switch variant {
        case .path, .target: message.append(contentsOf: Base64.encode(bodyHash).utf8)
        case .pathWithoutHash, .targetWithoutHash: break
        }
        message.append(UInt8(ascii: ":"))
        message.append(contentsOf: head.path.utf8)
        switch variant {
        case .target, .targetWithoutHash:
            message.append(UInt8(ascii: "?"))
            message.append(contentsOf: (head.query ?? "").utf8)
        case .path, .pathWithoutHash: break
        }
        return SHA256.hash(message)
    }

    package var milliseconds: Int64? { Self.milliseconds(self.date) }

    /// How a date must look, for who sent another.
    package static let dateForm =
        "write the date as 2024-03-05T09:30:00Z, or with an offset as 2024-03-05T11:30:00+02:00"

    /// ISO 8601 as in ``dateForm``. Fractions of a second are dropped.
    package static func milliseconds(_ text: String) -> Int64? {
        let bytes = Bytes(text.utf8)
        guard (20...40).contains(bytes.count), bytes[4] == 0x2D, bytes[7] == 0x2D,
            bytes[10] == 0x54 || bytes[10] == 0x20, bytes[13] == 0x3A, bytes[16] == 0x3A
        else { return nil }
        func number(_ range: Range<Int>) -> Int64? {
            var value: Int64 = 0
            for byte in bytes[range] {
                guard byte >= 0x30, byte <= 0x39 else { return nil }
                value = value * 10 + Int64(byte - 0x30)
            }
            return value
        }
        guard let year = number(0..<4), let month = number(5..<7), let day = number(8..<10),
            let hour = number(11..<13), let minute = number(14..<16), let second = number(17..<19),
            year >= 1970, (1...12).contains(month), (1...31).contains(day), hour < 24,
            minute < 60, second <= 60
        else { return nil }
        var rest = bytes[19...]
        if rest.first == 0x2E {
            rest = rest.dropFirst().drop { (0x30...0x39).contains($0) }
        }
        guard let offset = Self.offsetMinutes(Bytes(rest)) else { return nil }
        // Days since 1970 of the civil calendar: years counted from March, eras of 400 years.
        let shifted = month <= 2 ? year - 1 : year
        let era = shifted / 400
        let yearOfEra = shifted - era * 400
        let dayOfYear = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1
        let dayOfEra = yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear
        let days = era * 146_097 + dayOfEra - 719_468
        return ((days * 24 + hour) * 60 + minute - offset) * 60_000 + second * 1_000
    }

    /// `Z`, `+02:00`, `+0200` or `+02`; nil for anything else.
    private static func offsetMinutes(_ text: Bytes) -> Int64? {
        if text == [UInt8(ascii: "Z")] { return 0 }
        guard let sign = text.first, [0x2B, 0x2D].contains(sign) else { return nil }
        var digits = text.dropFirst()
        if digits.count == 5 {
            let colon = digits.index(digits.startIndex, offsetBy: 2)
            guard digits[colon] == 0x3A else { return nil }
            digits.remove(at: colon)
        }
        guard digits.count == 4 || digits.count == 2,
            digits.allSatisfy({ (0x30...0x39).contains($0) })
        else { return nil }
        let numbers = digits.map { Int64($0 - 0x30) }
        let hours = numbers[0] * 10 + numbers[1]
        let minutes = numbers.count == 4 ? numbers[2] * 10 + numbers[3] : 0
        guard hours < 24, minutes < 60 else { return nil }
        return (hours * 60 + minutes) * (sign == 0x2D ? -1 : 1)
    }
}
