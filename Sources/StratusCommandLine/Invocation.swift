/// A parsed command line: a command and its values.
///
/// Every value was checked against its ``ValueKind``, and every required one is present. Asking for
/// a name that the command does not declare is a bug and stops the process.
package struct Invocation: Sendable, Equatable {
    /// The commands after the program's name: `["config", "check"]`.
    package let path: [String]
    let declared: [String]
    let values: [(name: String, value: String)]

    /// The value given last, or the default.
    package subscript(_ name: String) -> String? {
        self.check(name)
        return self.values.last { $0.name == name }?.value
    }

    /// The value of an option that is required or has a default.
    package func value(_ name: String) -> String {
        guard let value = self[name] else {
            preconditionFailure("'\(name)' may be absent in '\(self.path)': ask by subscript")
        }
        return value
    }

    /// Every value of an option that may repeat, in the order typed.
    package func all(_ name: String) -> [String] {
        self.check(name)
        return self.values.filter { $0.name == name }.map(\.value)
    }

    /// Whether the command takes an option or a positional of this name.
    package func declares(_ name: String) -> Bool { self.declared.contains(name) }

    /// The same with one value more.
    package func setting(_ name: String, to value: String) -> Invocation {
        self.check(name)
        return Invocation(
            path: self.path, declared: self.declared, values: self.values + [(name, value)])
    }

    package func flag(_ name: String) -> Bool { self[name] != nil }

    package func integer(_ name: String) -> Int? { self[name].flatMap { Int($0) } }

    package func duration(_ name: String) -> Duration? { self[name].flatMap(DurationText.parse) }

    package func address(_ name: String) -> ListenAddress? {
        self[name].flatMap(ListenAddress.init)
    }

    private func check(_ name: String) {
        precondition(
            self.declared.contains(name), "'\(self.path.joined(separator: " "))' has no '\(name)'")
    }

    package static func == (one: Self, other: Self) -> Bool {
        one.path == other.path && one.values.elementsEqual(other.values, by: ==)
    }
}
