/// Which members of one object count, where a key is repeated.
///
/// Most objects are small and repeat nothing, which is seen without comparing a single key: no two
/// agree in length, first and last byte. Large ones get a table.
enum JSONRepetition: Sendable {
    case none
    /// Some keys may be equal: each is compared with those that follow.
    case possible
    /// The last member of each key. Only looked up in, never iterated.
    case table([[UInt8]: Int])

    /// Beyond this many members comparing each with each would cost too much.
    private static let fewMembers = 24

    init(_ object: JSONObject) {
        let nodes = object.document.tape
        let bytes = object.document.bytes
        let tape = nodes.span
        let source = bytes.span
        var marks = InlineArray<24, UInt64>(repeating: 0)
        var count = 0
        var mayRepeat = false
        var at = object.start
        while at < object.end {
            let key = tape[at]
            guard count < Self.fewMembers else {
                self = Self.table(of: object)
                return
            }
            let mark =
                key.extent == 0
                ? 0
                : UInt64(key.extent) << 16 | UInt64(source[key.offset]) << 8
                    | UInt64(source[key.end - 1])
            // An escape hides the key's length and letters.
            if key.flag != 0 { mayRepeat = true }
            for earlier in 0..<count where marks[earlier] == mark { mayRepeat = true }
            marks[count] = mark
            count += 1
            at = tape[at + 1].successor(of: at + 1)
        }
        self = mayRepeat ? .possible : .none
    }

    private static func table(of object: JSONObject) -> Self {
        let nodes = object.document.tape
        let bytes = object.document.bytes
        var lastByKey: [[UInt8]: Int] = [:]
        var at = object.start
        while at < object.end {
            lastByKey[JSONText.utf8(bytes.span, nodes[at])] = at
            at = nodes[at + 1].successor(of: at + 1)
        }
        return .table(lastByKey)
    }

    /// Whether a member after `key` has the same key. `iterator` stands just behind that member.
    @inline(__always)
    func isOverruled(_ key: Int, _ iterator: JSONObject.Iterator) -> Bool {
        if case .none = self { return false }
        return self.isOverruledSlowly(key, iterator)
    }

    private func isOverruledSlowly(_ key: Int, _ iterator: JSONObject.Iterator) -> Bool {
        let nodes = iterator.document.tape
        let bytes = iterator.document.bytes
        let text = JSONText.utf8(bytes.span, nodes[key])
        if case .table(let lastByKey) = self { return lastByKey[text] != key }
        var other = iterator.position
        while other < iterator.end {
            if JSONText.isEqual(bytes.span, nodes[other], text.span) { return true }
            other = nodes[other + 1].successor(of: other + 1)
        }
        return false
    }
}
