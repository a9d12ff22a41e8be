package import StratusCoding
package import StratusModel

/// Whom an invitation names, as it was given. Nobody is looked up for it.
package enum ShareIdentity: FormChoice, Sendable, Hashable {
    /// A user's record name.
    case user(String)
    /// An e-mail address as it was typed, and the keyed hash of what it means.
    case address(String, hash: Bytes)
    /// A phone number as it was typed.
    case phone(String)

    package init() { self = .user("") }

    /// Bytes of an address.
    package static let addressSizeMax = 254
    /// Bytes of a name.
    package static let nameSizeMax = 255

    package var number: UInt8 {
        switch self {
        case .user: 1
        case .address: 2
        case .phone: 3
        }
    }

    package init?(number: UInt8) {
        switch number {
        case 1: self = .user("")
        case 2: self = .address("", hash: [])
        case 3: self = .phone("")
        default: return nil
        }
    }

    package mutating func layFields<F: Form>(in form: inout F) throws(F.Problem) {
        switch self {
        case .user(var name):
            try form.lay(&name)
            self = .user(name)
        case .address(var text, var hash):
            try form.lay(&text)
            try form.lay(&hash)
            self = .address(text, hash: hash)
        case .phone(var text):
            try form.lay(&text)
            self = .phone(text)
        }
        try form.require(self.size <= Self.nameSizeMax)
    }

    private var size: Int {
        switch self {
        case .user(let text), .phone(let text): text.utf8.count
        case .address(let text, let hash): max(text.utf8.count, hash.count)
        }
    }

    /// The text that was given.
    package var text: String {
        switch self {
        case .user(let text), .address(let text, _), .phone(let text): text
        }
    }

    /// Whether the two are one person, whichever way an address was typed.
    package func isSame(as other: ShareIdentity) -> Bool {
        switch (self, other) {
        case (.address(_, let hash), .address(_, let other)): hash == other
        default: self == other
        }
    }
}

/// A person's name as others are shown it; empty where it is not shown.
package struct ShownName: FormValue, Sendable, Hashable {
    package var given = ""
    package var family = ""

    package init() {}

    package mutating func lay<F: Form>(in form: inout F) throws(F.Problem) {
        try form.lay(&self.given)
        try form.lay(&self.family)
        try form.require(self.given.utf8.count <= ShareIdentity.nameSizeMax)
        try form.require(self.family.utf8.count <= ShareIdentity.nameSizeMax)
    }

    package var isEmpty: Bool { self.given.isEmpty && self.family.isEmpty }
}
