/// A position in a file: both counted from 1, columns in characters.
package struct SourcePosition: Sendable, Equatable, Comparable {
    package var line: Int
    package var column: Int

    package init(line: Int, column: Int) {
        self.line = line
        self.column = column
    }

    package static func < (one: Self, other: Self) -> Bool {
        (one.line, one.column) < (other.line, other.column)
    }
}

/// A value of a JSON5 file and where it begins.
package struct JSON5Value: Sendable, Equatable {
    package enum Kind: Sendable, Equatable {
        case null
        case bool(Bool)
        case number(Double)
        case string(String)
        case array([JSON5Value])
        /// In the order written. No key stands twice: the parser refuses that.
        case object([Member])
    }

    package struct Member: Sendable, Equatable {
        package var key: String
        package var position: SourcePosition
        package var value: JSON5Value
    }

    package var kind: Kind
    package var position: SourcePosition

    /// For messages: `a string`, `an object`.
    package var kindName: String {
        switch self.kind {
        case .null: "null"
        case .bool: "true or false"
        case .number: "a number"
        case .string: "a string"
        case .array: "an array"
        case .object: "an object"
        }
    }
}

package struct JSON5Error: Error, Sendable, Equatable {
    package var position: SourcePosition
    package var text: String

    package init(position: SourcePosition, text: String) {
        self.position = position
        self.text = text
    }
}
