import StratusHTTP
import StratusModel

/// An object of a request's body, read the way clients need it read: unknown keys do not exist,
/// `null` is absence, and what is there must have the right shape.
struct Input {
    let object: JSONObject

    init(_ object: JSONObject) { self.object = object }

    /// An object by its key, or a refusal that names the key.
    init(_ value: JSONValue?, at key: String) throws(InputRefusal) {
        guard let value, !value.isNull else { throw .missingKey(key) }
        guard let object = value.object else { throw .unexpectedInput(key: key) }
        self.init(object)
    }

    subscript(_ key: String) -> JSONValue? {
        guard let value = self.object[key], !value.isNull else { return nil }
        return value
    }

    func string(_ key: String) throws(InputRefusal) -> String? {
        guard let value = self[key] else { return nil }
        guard let string = value.string else { throw .unexpectedInput(key: key) }
        return string
    }

    func requiredString(_ key: String) throws(InputRefusal) -> String {
        guard let string = try self.string(key) else { throw .missingKey(key) }
        return string
    }

    /// `1` and `"true"` count too: clients of loosely typed languages send them.
    func flag(_ key: String) throws(InputRefusal) -> Bool? {
        guard let value = self[key] else { return nil }
        if let bool = value.bool { return bool }
        if let number = value.wholeInt64, number == 0 || number == 1 { return number == 1 }
        switch value.string?.lowercased() {
        case "true", "1": return true
        case "false", "0": return false
        default: throw .unexpectedInput(key: key)
        }
    }

    func array(_ key: String) throws(InputRefusal) -> JSONArray? {
        guard let value = self[key] else { return nil }
        guard let array = value.array else { throw .unexpectedInput(key: key) }
        return array
    }

    /// The elements of a required array, held against a limit before anything is made of them.
    func requiredElements(_ key: String, limit: Int) throws(InputRefusal) -> [JSONValue] {
        guard let array = try self.array(key) else { throw .missingKey(key) }
        let elements = Array(array)
        guard elements.count <= limit else {
            throw .tooMany(key: key, count: elements.count, limit: limit)
        }
        return elements
    }

    /// `filterBy` and `sortBy`: an array, a single object, an empty array, null or nothing.
    func oneOrMany(_ key: String, limit: Int) throws(InputRefusal) -> [JSONValue] {
        guard let value = self[key] else { return [] }
        if value.object != nil { return [value] }
        return try self.requiredElements(key, limit: limit)
    }

    /// Names of fields or types; nil: all of them.
    func names(_ key: String, limit: Int) throws(InputRefusal) -> [String]? {
        guard let array = try self.array(key) else { return nil }
        var names: [String] = []
        for element in array {
            guard let name = element.string else { throw .unexpectedInput(key: key) }
            names.append(name)
            // Duplicates and unknown names are allowed, an endless list is not.
            guard names.count <= limit else {
                throw .tooMany(key: key, count: names.count, limit: limit)
            }
        }
        return names
    }

    /// How many results a page may hold: absent, `null` and 0 mean the server's own maximum, and
    /// more than that is that.
    func resultsLimit(_ key: String = "resultsLimit", max limit: Int) throws(InputRefusal) -> Int? {
        guard let value = self[key] else { return nil }
        guard let number = value.wholeInt64 ?? value.string.flatMap({ Int64($0) }), number >= 0
        else { throw .unexpectedInput(key: key) }
        return number == 0 ? limit : Int(min(number, Int64(limit)))
    }
}
