package import StratusCommandLine
package import StratusModel

/// Every key with its value and the value's origin. Each value is of its key's kind, and within its
/// range. The typed accessors cannot fail for a key of the right kind, and stop the process for
/// others.
package struct ConfigurationSettings: Sendable, Equatable {
    package struct Entry: Sendable, Equatable {
        package var value: ConfigurationValue
        package var origin: ConfigurationOrigin
    }

    private var entries: [String: Entry] = [:]

    /// The defaults.
    package init() {
        for key in ConfigurationKey.all {
            guard let value = key.default else { continue }
            self.entries[key.path] = Entry(value: value, origin: .default)
        }
    }

    package mutating func set(
        _ path: String, _ value: ConfigurationValue, _ origin: ConfigurationOrigin
    ) {
        precondition(ConfigurationKey.named(path) != nil, "there is no key '\(path)'")
        self.entries[path] = Entry(value: value, origin: origin)
    }

    /// Takes one key's value and origin from other settings.
    package mutating func copy(_ path: String, from other: ConfigurationSettings) {
        self.entries[path] = other.entries[path]
    }

    /// Nil for a key without a default that nobody set.
    package func entry(_ path: String) -> Entry? {
        precondition(ConfigurationKey.named(path) != nil, "there is no key '\(path)'")
        return self.entries[path]
    }

    package func isSet(_ path: String) -> Bool { self.entry(path) != nil }

    package func origin(_ path: String) -> ConfigurationOrigin {
        self.entry(path)?.origin ?? .default
    }

    package func bool(_ path: String) -> Bool {
        guard case .bool(let flag) = self.entry(path)?.value else { self.mismatch(path) }
        return flag
    }

    package func integer(_ path: String) -> Int {
        guard case .integer(let number) = self.entry(path)?.value else { self.mismatch(path) }
        return number
    }

    package func size(_ path: String) -> ByteCount {
        guard case .size(let size) = self.entry(path)?.value else { self.mismatch(path) }
        return size
    }

    package func duration(_ path: String) -> Duration {
        guard case .duration(let duration) = self.entry(path)?.value else { self.mismatch(path) }
        return duration
    }

    /// Nil when nobody set it.
    package func text(_ path: String) -> String? {
        guard let entry = self.entry(path) else { return nil }
        guard case .text(let text) = entry.value else { self.mismatch(path) }
        return text
    }

    package func texts(_ path: String) -> [String] {
        guard case .list(let values) = self.entry(path)?.value else { self.mismatch(path) }
        return values.map { value in
            guard case .text(let text) = value else { self.mismatch(path) }
            return text
        }
    }

    package func address(_ path: String) -> ListenAddress? {
        self.text(path).flatMap { ListenAddress($0) }
    }

    package func addresses(_ path: String) -> [ListenAddress] {
        self.texts(path).compactMap { ListenAddress($0) }
    }

    /// The keys whose values differ, in the order of the table.
    package func changes(to other: ConfigurationSettings) -> [ConfigurationKey] {
        ConfigurationKey.all.filter {
            self.entries[$0.path]?.value != other.entries[$0.path]?.value
        }
    }

    private func mismatch(_ path: String) -> Never {
        preconditionFailure("'\(path)' is asked for as what it is not")
    }
}
