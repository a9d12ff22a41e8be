package import StratusHTTP
package import StratusModel

/// What can be the value of a member.
package protocol NamedValue: Sendable, Equatable {
    init()
    mutating func lay(as form: inout NamedForm)
}

/// An object of JSON as a type: an answer of the administrators' API, the body of a request, or a
/// part of one. It names each of its members once.
package protocol NamedMembers: NamedValue {
    mutating func lay(in form: inout NamedForm)
}

extension NamedMembers {
    package mutating func lay(as form: inout NamedForm) {
        form.object { self.lay(in: &$0) }
    }

    package init(_ fill: (inout Self) throws -> Void) rethrows {
        self.init()
        try fill(&self)
    }

    /// The object as JSON.
    package var json: Bytes { NamedForm.write(self) }

    /// The object as JSON, on a line of its own.
    package var line: Bytes { self.json + [0x0A] }

    package init(reading json: JSONValue) throws(NamedForm.Misfit) {
        let (value, misfit) = NamedForm.read(json) as (Self, NamedForm.Misfit?)
        if let misfit { throw misfit }
        self = value
    }

    package init(reading json: Bytes) throws(NamedForm.Misfit) {
        let document: JSONDocument
        do throws(JSONError) { document = try JSONDocument(parsing: json) } catch {
            throw NamedForm.Misfit(name: "", kind: "JSON")
        }
        try self.init(reading: document.root)
    }
}

/// An object without members: the answer to a change that has nothing to tell.
package struct EmptyAnswer: NamedMembers {
    package init() {}
    package mutating func lay(in form: inout NamedForm) {}
}

/// A row of an answer that is one list.
package protocol ListedRow: NamedMembers {
    /// The name of the list in the answer.
    static var list: StaticString { get }
}

/// An answer that is one list.
package struct Listing<Row: ListedRow>: NamedMembers {
    package var rows: [Row] = []

    package init() {}
    package init(_ rows: [Row]) { self.rows = rows }

    package mutating func lay(in form: inout NamedForm) { form.member(Row.list, &self.rows) }
}

extension String: NamedValue {
    package mutating func lay(as form: inout NamedForm) {
        form.leaf(&self, "a text", \.string) { $0.write($1) }
    }
}

extension Bool: NamedValue {
    package mutating func lay(as form: inout NamedForm) {
        form.leaf(&self, "true or false", \.bool) { $0.write($1) }
    }
}

extension Int64: NamedValue {
    package mutating func lay(as form: inout NamedForm) {
        form.leaf(&self, "a whole number", \.int64) { $0.write($1) }
    }
}

extension Double: NamedValue {
    package mutating func lay(as form: inout NamedForm) {
        form.leaf(&self, "a number", \.double) { $0.write($1) }
    }
}

extension Array: NamedValue where Element: NamedValue {
    package mutating func lay(as form: inout NamedForm) { form.list(&self) }
}

/// A value that is JSON and is passed on as it stands.
package struct RawJSON: NamedValue {
    package var bytes = Bytes("null".utf8)

    package init() {}
    package init(_ bytes: some Sequence<UInt8>) { self.bytes = Bytes(bytes) }

    package var text: String { String(decoding: self.bytes, as: UTF8.self) }

    package mutating func lay(as form: inout NamedForm) {
        form.leaf(&self, "JSON", { RawJSON($0.source) }) { $0.write(raw: $1.bytes) }
    }
}
