package import StratusCoding
package import StratusModel

/// How an app looks to its people on the pages where they sign in: a row at the container's home.
///
/// | bytes | brand, format 1                                             |
/// | ----- | ----------------------------------------------------------- |
/// | 1     | format, 1                                                   |
/// | …     | texts name, welcome, addresses of privacy, terms and help   |
/// | 3     | colour                                                      |
/// | bytes | hash of the logo, empty: none                               |
///
/// The logo stands in a row of its own: pages read the brand, and browsers the logo, once.
package struct Brand: FormValue, Sendable, Equatable {
    package var name = ""
    package var welcome = ""
    /// Addresses, or empty.
    package var privacy = ""
    package var terms = ""
    package var help = ""
    package var colour = Colour.standard
    /// Names the picture at ``BrandLogo``.
    package var logo: Bytes?

    package init() {}

    package mutating func lay<F: Form>(in form: inout F) throws(F.Problem) {
        try form.lay(&self.name)
        try form.lay(&self.welcome)
        try form.lay(&self.privacy)
        try form.lay(&self.terms)
        try form.lay(&self.help)
        try form.lay(byte: &self.colour.red)
        try form.lay(byte: &self.colour.green)
        try form.lay(byte: &self.colour.blue)
        var hash = self.logo ?? []
        try form.lay(&hash)
        self.logo = hash.isEmpty ? nil : hash
    }

    /// As screens show it.
    package struct Colour: Sendable, Hashable {
        package var red: UInt8
        package var green: UInt8
        package var blue: UInt8

        package static let standard = Colour(red: 0x0B, green: 0x57, blue: 0xD0)

        package init(red: UInt8, green: UInt8, blue: UInt8) {
            self.red = red
            self.green = green
            self.blue = blue
        }

        /// `#0b57d0`, or `#05d` for `#0055dd`.
        package init?(_ text: String) {
            guard text.first == "#", text.dropFirst().allSatisfy(\.isHexDigit),
                let number = UInt32(text.dropFirst(), radix: 16)
            else { return nil }
            switch text.utf8.count {
            case 7:
                self.init(
                    red: UInt8(number >> 16), green: UInt8(number >> 8 & 0xFF),
                    blue: UInt8(number & 0xFF))
            case 4:
                self.init(
                    red: UInt8(number >> 8) * 17, green: UInt8(number >> 4 & 0xF) * 17,
                    blue: UInt8(number & 0xF) * 17)
            default: return nil
            }
        }

        package var text: String {
            "#"
                + [self.red, self.green, self.blue].map { byte in
                    let digits = String(byte, radix: 16)
                    return digits.utf8.count == 1 ? "0" + digits : digits
                }.joined()
        }
    }

    // MARK: What an administrator gives

    package static let nameLengthMax = 40
    package static let welcomeLengthMax = 160
    package static let addressSizeMax = 255

    /// What is wrong with it, for an administrator.
    package var fault: String? {
        if !Self.isLine(self.name, atMost: Self.nameLengthMax) || self.name.isEmpty {
            return "'name' must have 1 to \(Self.nameLengthMax) characters in one line"
        }
        if !Self.isLine(self.welcome, atMost: Self.welcomeLengthMax) {
            return "'welcome' may have \(Self.welcomeLengthMax) characters in one line"
        }
        let addresses = [
            ("privacy", self.privacy), ("terms", self.terms), ("help", self.help),
        ]
        for (key, address) in addresses where !address.isEmpty {
            guard address.hasPrefix("https://"), address.utf8.count <= Self.addressSizeMax,
                address.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F })
            else {
                return "'\(key)' must be an address that begins with https://, of "
                    + "\(Self.addressSizeMax) bytes at most"
            }
        }
        return nil
    }

    /// Text that cannot break a line, nor turn the direction of what stands behind it.
    private static func isLine(_ text: String, atMost max: Int) -> Bool {
        text.count <= max
            && text.unicodeScalars.allSatisfy { scalar in
                switch scalar.properties.generalCategory {
                case .control, .lineSeparator, .paragraphSeparator, .unassigned, .privateUse:
                    false
                // Joiners stand inside words of some scripts. All other marks that nobody sees go.
                case .format: scalar == "\u{200C}" || scalar == "\u{200D}"
                default: true
                }
            }
    }

    // MARK: Rows

    package func encoded() -> Bytes {
        var writer = ByteWriter(reserving: 256)
        writer.write(1 as UInt8)
        writer.write(form: self)
        return writer.bytes
    }

    package init(decoding bytes: Bytes) throws(DecodingError) {
        var reader = ByteReader(bytes)
        try reader.identityFormat(1)
        self = try reader.form(Self.self)
        try reader.finish()
    }
}

/// A picture in the form PNG, as an app's logo: a square, without what pages do not show.
package struct BrandLogo: Sendable, Equatable {
    package let bytes: Bytes
    package let hash: Bytes

    package static let sizeMax = ByteCount.kibibytes(64)
    package static let sides = 64...1_024

    private static let signature: Bytes = [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]
    /// What a picture is made of. Everything else is left out: text, times, places.
    private static let kept: Set<String> = ["IHDR", "PLTE", "tRNS", "IDAT", "IEND", "sRGB", "gAMA"]

    /// - Returns: nil where the bytes are no such picture.
    package init?(_ file: Bytes, hash: (Bytes) -> Bytes) {
        guard file.count <= Self.sizeMax.raw, file.starts(with: Self.signature) else { return nil }
        var picture = Self.signature
        var names: [String] = []
        var place = Self.signature.count
        while place < file.count {
            // Length, name, content, checksum.
            guard file.count - place >= 12 else { return nil }
            let size = Self.number(file, at: place)
            guard size <= file.count - place - 12 else { return nil }
            let end = place + 12 + size
            let name = String(decoding: file[place + 4..<place + 8], as: UTF8.self)
            if names.isEmpty {
                guard name == "IHDR", size == 13,
                    Self.sides.contains(Self.number(file, at: place + 8)),
                    Self.number(file, at: place + 8) == Self.number(file, at: place + 12)
                else { return nil }
            }
            if Self.kept.contains(name) {
                picture += file[place..<end]
                names.append(name)
            }
            place = end
            if name == "IEND" { break }
        }
        guard names.last == "IEND", names.contains("IDAT"), place == file.count,
            names.count(where: { $0 == "IHDR" }) == 1
        else { return nil }
        self.bytes = picture
        self.hash = hash(picture)
    }

    private static func number(_ bytes: Bytes, at place: Int) -> Int {
        bytes[place..<place + 4].reduce(0) { $0 << 8 | Int($1) }
    }
}
