import StratusHTTP

/// The parts of a record that go into an answer, and their form.
struct AnswerShape: Sendable, Hashable {
    /// Names of the fields to return, sorted; nil: all. System keys are returned regardless.
    var desiredKeys: [String]?
    /// Numbers in fields are written as strings.
    var numbersAsStrings = false

    init(desiredKeys: [String]? = nil, numbersAsStrings: Bool = false) {
        self.desiredKeys = desiredKeys?.sorted()
        self.numbersAsStrings = numbersAsStrings
    }

    /// The keys of a request that every operation with records has. Two spellings are documented.
    init(_ input: Input) throws(InputRefusal) {
        self.init(
            desiredKeys: try input.names("desiredKeys", limit: 10_000),
            numbersAsStrings: try Self.numbersAsStrings(input) ?? false)
    }

    /// The shape for one item: its own options override those of the request.
    func overridden(by input: Input) throws(InputRefusal) -> AnswerShape {
        AnswerShape(
            desiredKeys: try input.names("desiredKeys", limit: 10_000) ?? self.desiredKeys,
            numbersAsStrings: try Self.numbersAsStrings(input) ?? self.numbersAsStrings)
    }

    private static func numbersAsStrings(_ input: Input) throws(InputRefusal) -> Bool? {
        if let flag = try input.flag("numbersAsStrings") { return flag }
        return try input.flag("numberAsStrings")
    }

    func wants(_ field: String) -> Bool {
        guard let keys = self.desiredKeys else { return true }
        var low = 0
        var high = keys.count
        while low < high {
            let middle = (low + high) / 2
            if keys[middle] == field { return true }
            if keys[middle] < field { low = middle + 1 } else { high = middle }
        }
        return false
    }
}
