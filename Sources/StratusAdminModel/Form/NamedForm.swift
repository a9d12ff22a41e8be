import StratusHTTP
import StratusModel

/// The members of an answer or a body, by their names. One function, ``NamedMembers/lay(in:)``,
/// lays them for both directions: into JSON that is written, or out of JSON that came.
///
/// Whoever reads a member that is absent, or null, keeps what it had: a node and a `stratusctl` of
/// different releases may know different members. A member of another kind is a ``Misfit``.
package struct NamedForm: ~Copyable {
    private var writer: JSONWriter
    /// What is read; nil while the form is written.
    private var value: JSONValue?
    /// The member that is read.
    private var name = ""
    private(set) var misfit: Misfit?

    /// A member that is not of the kind that it must have.
    package struct Misfit: Error, Equatable, CustomStringConvertible {
        package var name: String
        /// `a text`.
        package var kind: String

        package var description: String { "'\(self.name)' must be \(self.kind)" }
    }

    private init(reading value: JSONValue?, reserving count: Int) {
        self.writer = JSONWriter(reserving: count)
        self.value = value
    }

    static func write(_ value: some NamedValue) -> Bytes {
        var form = NamedForm(reading: nil, reserving: 512)
        var value = value
        value.lay(as: &form)
        return form.writer.finish()
    }

    static func read<Value: NamedValue>(_ json: JSONValue) -> (value: Value, misfit: Misfit?) {
        var form = NamedForm(reading: json, reserving: 0)
        var value = Value()
        value.lay(as: &form)
        let misfit = form.misfit
        _ = form.writer.finish()
        return (value, misfit)
    }

    // MARK: Members

    /// A member that is always written.
    package mutating func member(_ name: StaticString, _ member: inout some NamedValue) {
        guard self.value != nil else {
            self.writer.key(known: name)
            return member.lay(as: &self)
        }
        self.read(name) { $0.lay(member: &member) }
    }

    /// A member that is written where there is one.
    package mutating func member<Value: NamedValue>(
        _ name: StaticString, _ member: inout Value?
    ) {
        guard self.value != nil else {
            guard var known = member else { return }
            self.writer.key(known: name)
            return known.lay(as: &self)
        }
        self.read(name) { form in
            var known = Value()
            form.lay(member: &known)
            member = known
        }
    }

    /// A member that is null where there is none.
    package mutating func member<Value: NamedValue>(
        _ name: StaticString, orNull member: inout Value?
    ) {
        if self.value == nil, member == nil {
            self.writer.key(known: name)
            self.writer.writeNull()
        } else {
            self.member(name, &member)
        }
    }

    /// A mark that is written where it is set.
    package mutating func member(_ name: StaticString, ifSet member: inout Bool) {
        var known: Bool? = member ? true : nil
        self.member(name, &known)
        member = known ?? false
    }

    private mutating func lay(member: inout some NamedValue) { member.lay(as: &self) }

    private mutating func read(_ name: StaticString, _ lay: (inout NamedForm) -> Void) {
        guard let found = self.value?[name], !found.isNull else { return }
        let outer = (self.value, self.name)
        (self.value, self.name) = (found, name.description)
        lay(&self)
        (self.value, self.name) = outer
    }

    // MARK: Values

    mutating func leaf<Value>(
        _ value: inout Value, _ kind: String, _ read: (JSONValue) -> Value?,
        _ write: (inout JSONWriter, Value) -> Void
    ) {
        guard let found = self.value else { return write(&self.writer, value) }
        if let known = read(found) { value = known } else { self.note(kind) }
    }

    mutating func object(_ lay: (inout NamedForm) -> Void) {
        guard let found = self.value else {
            self.writer.beginObject()
            lay(&self)
            return self.writer.endObject()
        }
        if found.object != nil { lay(&self) } else { self.note("an object") }
    }

    mutating func list<Element: NamedValue>(_ list: inout [Element]) {
        guard let found = self.value else {
            self.writer.beginArray()
            for var element in list { element.lay(as: &self) }
            return self.writer.endArray()
        }
        guard let array = found.array else { return self.note("a list") }
        list = []
        for one in array {
            self.value = one
            var element = Element()
            element.lay(as: &self)
            list.append(element)
        }
        self.value = found
    }

    private mutating func note(_ kind: String) {
        self.misfit = self.misfit ?? Misfit(name: self.name, kind: kind)
    }
}
