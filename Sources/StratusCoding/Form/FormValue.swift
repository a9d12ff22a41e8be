package import StratusModel

/// A value that lays its fields in a ``Form``, each once and in their order.
///
/// Its properties have defaults, and it has no memberwise initialiser: whoever makes one names what
/// differs, `PutKey(database) { $0.version = 1 }`. A field then stands in two places, where it is
/// declared and where it is laid.
package protocol FormValue {
    init()
    mutating func lay<F: Form>(in form: inout F) throws(F.Problem)
}

extension FormValue {
    package init(_ fill: (inout Self) throws -> Void) rethrows {
        self.init()
        try fill(&self)
    }
}

/// An enumeration with payloads: the number of its case, then the fields of that case. An unknown
/// number is malformed.
package protocol FormChoice: FormValue {
    var number: UInt8 { get }
    /// The case of a number, with fields that are still to be laid.
    init?(number: UInt8)
    mutating func layFields<F: Form>(in form: inout F) throws(F.Problem)
}

extension FormChoice {
    package mutating func lay<F: Form>(in form: inout F) throws(F.Problem) {
        var number = self.number
        try form.lay(byte: &number)
        if number != self.number {
            guard let known = Self(number: number) else { return try form.require(false) }
            self = known
        }
        try self.layFields(in: &form)
    }
}

/// A flag, then the value if there is one.
extension Optional: FormValue where Wrapped: FormValue {
    package init() { self = nil }

    package mutating func lay<F: Form>(in form: inout F) throws(F.Problem) {
        var isThere = self != nil
        try form.lay(&isThere)
        guard isThere else { return self = nil }
        var value = self ?? Wrapped()
        try value.lay(in: &form)
        self = value
    }
}

extension Bool: FormValue {
    package mutating func lay<F: Form>(in form: inout F) throws(F.Problem) { try form.lay(&self) }
}

extension UInt32: FormValue {
    package mutating func lay<F: Form>(in form: inout F) throws(F.Problem) { try form.lay(&self) }
}

extension UInt64: FormValue {
    package mutating func lay<F: Form>(in form: inout F) throws(F.Problem) { try form.lay(&self) }
}

extension Int64: FormValue {
    package mutating func lay<F: Form>(in form: inout F) throws(F.Problem) { try form.lay(&self) }
}

extension String: FormValue {
    package mutating func lay<F: Form>(in form: inout F) throws(F.Problem) { try form.lay(&self) }
}

/// Bytes alone. A list of values names its bound.
extension Array: FormValue where Element == UInt8 {
    package mutating func lay<F: Form>(in form: inout F) throws(F.Problem) { try form.lay(&self) }
}

extension AssetID: FormValue {
    package init() { self.init(0) }
    package mutating func lay<F: Form>(in form: inout F) throws(F.Problem) {
        try form.lay(name: &self.raw)
    }
}

extension BodyID: FormValue {
    package init() { self.init(0) }
    package mutating func lay<F: Form>(in form: inout F) throws(F.Problem) {
        try form.lay(name: &self.raw)
    }
}

extension UploadID: FormValue {
    package init() { self.init(0) }
    package mutating func lay<F: Form>(in form: inout F) throws(F.Problem) {
        try form.lay(name: &self.raw)
    }
}

extension ChangeTag: FormValue {
    package init() { self.init(0) }
    package mutating func lay<F: Form>(in form: inout F) throws(F.Problem) {
        try form.lay(&self.raw)
    }
}

extension ShareLink: FormValue {
    package init() { self.init(drawn: 0, part: 0, owner: 0) }
    package mutating func lay<F: Form>(in form: inout F) throws(F.Problem) {
        try form.lay(name: &self.drawn)
        try form.lay(byte: &self.part)
        try form.lay(name: &self.owner)
    }
}
