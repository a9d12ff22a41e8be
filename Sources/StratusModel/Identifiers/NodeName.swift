/// The name of a node, as the configuration and administrators write it.
package enum NodeName {
    /// Whether a text can name a node. The rules are those of a host's name: it stands in the
    /// node's certificate.
    package static func isName(_ name: String) -> Bool {
        (1...63).contains(name.utf8.count) && !name.hasPrefix("-") && !name.hasSuffix("-")
            && name.utf8.allSatisfy { byte in
                switch byte {
                case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"),
                    UInt8(ascii: "-"):
                    true
                default: false
                }
            }
    }
}
