import StratusIdentity

/// An app's colour made readable on light and on dark pages: its hue stays, its lightness moves
/// until text in it, and text on it, have a contrast of 4.5 (WCAG 2, level AA).
struct BrandColours {
    static let contrastMin = 4.5
    static let light = Brand.Colour(red: 0xFF, green: 0xFF, blue: 0xFF)
    static let dark = Brand.Colour(red: 0x16, green: 0x16, blue: 0x16)

    /// A colour for text and buttons, and the colour of the text on such a button.
    struct Pair {
        let colour: Brand.Colour
        let textOnIt: Brand.Colour
        var text: String { self.colour.text }
    }

    let onLight: Pair
    let onDark: Pair

    init(_ colour: Brand.Colour) {
        // The ground of the page is the text on the button: one ratio is enough for both.
        self.onLight = Pair(
            colour: Self.moved(colour, to: 0, against: Self.light), textOnIt: Self.light)
        self.onDark = Pair(
            colour: Self.moved(colour, to: 255, against: Self.dark), textOnIt: Self.dark)
    }

    private static func moved(_ colour: Brand.Colour, to end: Int, against ground: Brand.Colour)
        -> Brand.Colour
    {
        for step in 0...Self.steps {
            func mixed(_ byte: UInt8) -> UInt8 {
                UInt8(Int(byte) + (end - Int(byte)) * step / Self.steps)
            }
            let mixed = Brand.Colour(
                red: mixed(colour.red), green: mixed(colour.green), blue: mixed(colour.blue))
            if Self.contrast(mixed, ground) >= Self.contrastMin { return mixed }
        }
        return end == 0
            ? Brand.Colour(red: 0, green: 0, blue: 0)
            : Brand.Colour(red: 255, green: 255, blue: 255)
    }

    private static let steps = 32

    static func contrast(_ one: Brand.Colour, _ other: Brand.Colour) -> Double {
        let (first, second) = (Self.luminance(one), Self.luminance(other))
        return (max(first, second) + 0.05) / (min(first, second) + 0.05)
    }

    private static func luminance(_ colour: Brand.Colour) -> Double {
        0.2126 * Self.linear(colour.red) + 0.7152 * Self.linear(colour.green)
            + 0.0722 * Self.linear(colour.blue)
    }

    private static func linear(_ byte: UInt8) -> Double { Self.table[Int(byte)] }

    private static let table: [Double] = (0...255).map { byte in
        let value = Double(byte) / 255
        return value <= 0.04045 ? value / 12.92 : Self.power((value + 0.055) / 1.055)
    }

    /// `value` to the power of 2.4: its square times the square of its fifth root, which Newton's
    /// steps reach from above.
    private static func power(_ value: Double) -> Double {
        var root = 1.0
        for _ in 0..<24 {
            let fourth = root * root * root * root
            root -= (fourth * root - value) / (5 * fourth)
        }
        return value * value * root * root
    }
}
