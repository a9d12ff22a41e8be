import StratusModel

/// Which bytes of a file a `Range` field asks for (RFC 9110 §14).
package enum ByteRange: Sendable, Equatable {
    /// All of it: there is no range, none that is understood, or more than one.
    case whole
    /// Answered with 206 and exactly these.
    case part(Range<UInt64>)
    /// Answered with 416: no byte of the file is asked for.
    case unsatisfiable

    /// - Parameters:
    ///   - field: the value of `Range`, if there is one.
    ///   - size: of the file.
    package init(_ field: String?, size: UInt64) {
        guard let field, let range = Self.only(field) else {
            self = .whole
            return
        }
        switch range {
        case .from(let first, let last):
            guard first < size else {
                self = .unsatisfiable
                return
            }
            self = .part(first..<(last < size - 1 ? last + 1 : size))
        case .suffix(let count):
            guard count > 0, size > 0 else {
                self = .unsatisfiable
                return
            }
            self = .part((size - min(count, size))..<size)
        }
    }

    /// The value of `Content-Range` for a part.
    package static func contentRange(_ part: Range<UInt64>, size: UInt64) -> String {
        "bytes \(part.lowerBound)-\(part.upperBound - 1)/\(size)"
    }

    /// The value of `Content-Range` beside 416.
    package static func contentRange(unsatisfiedOf size: UInt64) -> String { "bytes */\(size)" }

    /// Whether a `Range` counts beside this `If-Range`: only if it is the strong tag of the file as
    /// it is.
    package static func counts(ifRange field: String?, tag: String) -> Bool {
        field == nil || field == tag
    }

    private enum Specification {
        case from(UInt64, last: UInt64)
        case suffix(UInt64)
    }

    /// The one range of a field. Nil: none, several, or no range at all.
    private static func only(_ field: String) -> Specification? {
        let bytes = Array(field.utf8)
        guard let equals = bytes.firstIndex(of: 0x3D),
            ASCII.equalIgnoringCase(String(decoding: bytes[..<equals], as: UTF8.self), "bytes")
        else { return nil }
        let elements = bytes[(equals + 1)...].split(separator: 0x2C).map { element in
            var element = element.drop { $0 == 0x20 || $0 == 0x09 }
            while let last = element.last, last == 0x20 || last == 0x09 {
                element = element.dropLast()
            }
            return element
        }.filter { !$0.isEmpty }
        guard elements.count == 1, let hyphen = elements[0].firstIndex(of: 0x2D) else {
            return nil
        }
        let (first, last) = (elements[0][..<hyphen], elements[0][(hyphen + 1)...])
        if first.isEmpty { return Self.number(last).map { .suffix($0) } }
        guard let start = Self.number(first) else { return nil }
        if last.isEmpty { return .from(start, last: .max) }
        guard let end = Self.number(last), end >= start else { return nil }
        return .from(start, last: end)
    }

    /// Digits alone. What 64 bits cannot say lies behind the end of every file.
    private static func number(_ digits: ArraySlice<UInt8>) -> UInt64? {
        guard !digits.isEmpty, digits.allSatisfy(ASCII.isDigit) else { return nil }
        var value: UInt64 = 0
        for digit in digits {
            let (product, isTooLarge) = value.multipliedReportingOverflow(by: 10)
            let (sum, overflows) = product.addingReportingOverflow(UInt64(digit - 0x30))
            if isTooLarge || overflows { return .max }
            value = sum
        }
        return value
    }
}
