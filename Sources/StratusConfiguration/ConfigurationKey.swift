import StratusCommandLine
package import StratusModel

/// One thing that can be configured: the only place where its name, its type, its default and its
/// explanation are written. The example file, the reference page, the checks and `config print` are
/// all made from the table of these, ``ConfigurationKey/all``.
package struct ConfigurationKey: Sendable {
    /// Dotted: `client.tls.keyFile`.
    package var path: String
    package var kind: ConfigurationKind
    /// The default as it would stand in the file. `null` if there is none: the key is then absent
    /// unless set.
    package var `default`: ConfigurationValue?
    /// Whole sentences, first what it is, then what to know before changing it.
    package var text: String
    /// SIGHUP applies a change. Everything else needs a restart.
    package var reloads: Bool

    package init(
        _ path: String, _ kind: ConfigurationKind, _ default: ConfigurationValue?,
        reloads: Bool = false, _ text: String
    ) {
        self.path = path
        self.kind = kind
        self.default = `default`
        self.reloads = reloads
        self.text = text
    }

    /// `STRATUS_CLIENT_TLS_KEY_FILE` for `client.tls.keyFile`.
    package var environmentName: String {
        var name = "STRATUS_"
        var previous: Character = "_"
        for character in self.path {
            if character == "." {
                name += "_"
            } else {
                // A run of capitals is one word: `baseURL` is `BASE_URL`.
                if character.isUppercase, !previous.isUppercase, previous != "." { name += "_" }
                name += character.uppercased()
            }
            previous = character
        }
        return name
    }

    /// The part before the last dot; empty at the top.
    package var section: String {
        self.path.lastIndex(of: ".").map { String(self.path[..<$0]) } ?? ""
    }

    /// The part after the last dot.
    package var name: String {
        self.path.lastIndex(of: ".").map { String(self.path[self.path.index(after: $0)...]) }
            ?? self.path
    }
}

/// The kind of value that a key may hold.
package indirect enum ConfigurationKind: Sendable, Equatable {
    case bool
    case integer(ClosedRange<Int>)
    /// Whole bytes, or a string with `KiB`, `MiB`, `GiB`.
    case size(ClosedRange<Int>)
    /// A string with `ms`, `s`, `m`, `h` or `d`.
    case duration(ClosedRange<Duration>)
    case choice([String])
    case text
    case address
    /// A file that must be there and be readable when the node starts.
    case file
    /// A `file` with secret content: others must not be able to read it.
    case secretFile
    /// A file or directory that the node makes when it is absent.
    case path
    case list(ConfigurationKind)

    /// The allowed values, for messages and the reference page.
    package var allowed: String {
        switch self {
        case .bool: "true or false"
        case .integer(let range): "a whole number from \(range.lowerBound) to \(range.upperBound)"
        case .size(let range):
            "a size such as \"16MiB\", from \(SizeText.write(range.lowerBound)) to "
                + SizeText.write(range.upperBound)
        case .duration(let range):
            "a duration such as \"30s\", from \(DurationText.write(range.lowerBound)) to "
                + DurationText.write(range.upperBound)
        case .choice(let words):
            "one of " + words.map { "\"\($0)\"" }.joined(separator: ", ")
        case .text: "a string"
        case .address: "\"HOST:PORT\", \"[IPV6]:PORT\" or \"unix:PATH\""
        case .file: "the path of a file"
        case .secretFile: "the path of a file that only its owner and group can read"
        case .path: "a path"
        case .list(let kind): "an array, each: \(kind.allowed)"
        }
    }
}

/// A value that was held against its kind.
package enum ConfigurationValue: Sendable, Equatable {
    case bool(Bool)
    case integer(Int)
    case size(ByteCount)
    case duration(Duration)
    case text(String)
    case list([ConfigurationValue])

    /// The value as it would stand in the file.
    package var source: String {
        switch self {
        case .bool(let flag): return flag ? "true" : "false"
        case .integer(let number): return "\(number)"
        case .size(let size): return "\"\(SizeText.write(size.raw))\""
        case .duration(let duration): return "\"\(DurationText.write(duration))\""
        case .text(let text): return Self.quoted(text)
        case .list(let values): return "[" + values.map(\.source).joined(separator: ", ") + "]"
        }
    }

    private static func quoted(_ text: String) -> String {
        var out = "\""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\"": out += "\\\""
            case "\\": out += "\\\\"
            case let scalar where scalar.value < 0x20 || scalar.value == 0x7F:
                let digits = String(scalar.value, radix: 16)
                out += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
            default: out.unicodeScalars.append(scalar)
            }
        }
        return out + "\""
    }
}

/// Sizes as people write them: `512`, `64KiB`, `16MiB`, `1GiB`.
package enum SizeText {
    private static let units = [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)]

    /// Nil for anything but a whole number (at most nine digits) and perhaps a unit.
    package static func parse(_ text: String) -> Int? {
        let unit = Self.units.first { text.hasSuffix($0.0) }
        let digits = text.dropLast(unit?.0.count ?? 0)
        guard (1...9).contains(digits.utf8.count),
            digits.utf8.allSatisfy({ (0x30...0x39).contains($0) }), let count = Int(digits)
        else { return nil }
        return count * (unit?.1 ?? 1)
    }

    package static func write(_ count: Int) -> String {
        for (suffix, factor) in Self.units where count != 0 && count % factor == 0 {
            return "\(count / factor)\(suffix)"
        }
        return "\(count)"
    }
}
