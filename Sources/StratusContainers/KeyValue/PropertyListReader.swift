package import StratusHTTP
package import StratusModel

/// Reads values of the key-value store. JSON cannot tell an integer from a real number or data from
/// text, so every value is an object with one member, whose name is the type.
package enum PropertyListReader {
    /// The reason why a value is refused, for the client.
    package struct Refusal: Error {
        package var reason: String

        package init(reason: String) { self.reason = reason }
    }

    /// Reads a value from its JSON.
    package static func value(_ json: JSONValue) throws(Refusal) -> PropertyListValue {
        try Self.value(json, depth: 1)
    }

    private static let form =
        "a value is an object with one member: 'string', 'integer', 'real', 'boolean', 'date', "
        + "'data', 'array' or 'dictionary'"

    private static func value(_ json: JSONValue, depth: Int) throws(Refusal) -> PropertyListValue {
        guard depth <= PropertyListValue.depthMax else {
            throw Refusal(reason: "more than \(PropertyListValue.depthMax) levels")
        }
        var members = json.object?.makeIterator()
        guard let member = members?.next(), members?.next() == nil else {
            throw Refusal(reason: Self.form)
        }
        let content = member.value
        func required<Value>(_ value: Value?, _ what: String) throws(Refusal) -> Value {
            guard let value else { throw Refusal(reason: "'\(member.name)' takes \(what)") }
            return value
        }
        switch member.name {
        case "string": return .string(try required(content.string, "text"))
        case "integer":
            let number = content.int64 ?? content.string.flatMap { Int64($0) }
            return .integer(try required(number, "a whole number of 64 bits"))
        case "real": return .real(try required(content.double, "a number"))
        case "boolean": return .boolean(try required(content.bool, "true or false"))
        case "date": return .date(try required(content.wholeInt64, "milliseconds since 1970"))
        case "data": return .data(try required(content.base64, "base64"))
        case "array":
            var values: [PropertyListValue] = []
            for element in try required(content.array, "an array") {
                values.append(try Self.value(element, depth: depth + 1))
            }
            return .array(values)
        case "dictionary":
            var entries: [PropertyListValue.Member] = []
            for entry in try required(content.object, "an object") {
                // Half of a surrogate pair is no name.
                guard let key = entry.key.string else { throw Refusal(reason: "an unreadable key") }
                entries.append(
                    PropertyListValue.Member(
                        key: key, value: try Self.value(entry.value, depth: depth + 1)))
            }
            // By bytes: names that Unicode calls equal are two names.
            entries.sort { $0.key.utf8.lexicographicallyPrecedes($1.key.utf8) }
            return .dictionary(entries)
        default: throw Refusal(reason: Self.form)
        }
    }
}

extension JSONWriter {
    /// Writes a value as ``PropertyListReader`` reads it.
    package mutating func write(_ value: PropertyListValue) {
        self.object { object in
            switch value {
            case .string(let text): object.member("string", text)
            case .integer(let number): object.member("integer", number)
            case .real(let number): object.member("real", number)
            case .boolean(let flag): object.member("boolean", flag)
            case .date(let milliseconds): object.member("date", milliseconds)
            case .data(let bytes): object.member("data", base64: bytes)
            case .array(let values):
                object.key("array")
                object.array { array in for value in values { array.write(value) } }
            case .dictionary(let members):
                object.key("dictionary")
                object.object { inner in
                    for member in members {
                        inner.key(member.key)
                        inner.write(member.value)
                    }
                }
            }
        }
    }
}
