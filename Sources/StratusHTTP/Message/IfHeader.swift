import StratusModel

/// The field `If` of WebDAV (RFC 4918 §10.4): lists of conditions on resources, one of which must
/// hold.
package struct IfHeader: Sendable, Equatable {
    package enum State: Sendable, Hashable {
        /// A lock's token, without the brackets.
        case token(String)
        /// An entity tag, with its quotation marks, and `W/` before them if it is weak.
        case tag(String)
    }

    package struct Condition: Sendable, Hashable {
        package var isNegated: Bool
        package var state: State
    }

    package struct List: Sendable, Hashable {
        /// The resource, as it was written between `<` and `>`; nil: the request's own.
        package var resource: String?
        /// Never empty. All of them must hold.
        package var conditions: [Condition]
    }

    /// Never empty.
    package var lists: [List]

    package static let sizeMax = 8 << 10
    package static let conditionCountMax = 256

    /// Every token, in the order written: what the client shows that it holds.
    package var tokens: [String] {
        self.lists.flatMap(\.conditions).compactMap {
            if case .token(let token) = $0.state { token } else { nil }
        }
    }

    /// - Returns: nil for what is no such field, or has too many parts.
    package init?(_ field: String) {
        guard field.utf8.count <= Self.sizeMax else { return nil }
        var scan = Scan(bytes: Bytes(field.utf8))
        var lists: [List] = []
        var resource: String?
        // A resource must have a list.
        var isOpen = false
        var isTagged = false
        var count = 0
        while true {
            scan.skipSpace()
            guard let next = scan.peek else { break }
            switch next {
            case UInt8(ascii: "<"):
                guard !isOpen, lists.isEmpty || isTagged, let text = scan.bracketed() else {
                    return nil
                }
                resource = text
                isOpen = true
                isTagged = true
            case UInt8(ascii: "("):
                guard let conditions = scan.list(&count) else { return nil }
                lists.append(List(resource: resource, conditions: conditions))
                isOpen = false
            default: return nil
            }
        }
        guard !lists.isEmpty, !isOpen else { return nil }
        self.lists = lists
    }

    private struct Scan {
        let bytes: Bytes
        var offset = 0

        var peek: UInt8? { self.offset < self.bytes.count ? self.bytes[self.offset] : nil }

        mutating func skipSpace() {
            while let byte = self.peek, byte == 0x20 || byte == 0x09 { self.offset += 1 }
        }

        /// What stands between `<` and `>`.
        mutating func bracketed() -> String? {
            self.offset += 1
            let start = self.offset
            while let byte = self.peek, byte != UInt8(ascii: ">") {
                guard byte > 0x20, byte != UInt8(ascii: "<"), byte != 0x7F else { return nil }
                self.offset += 1
            }
            guard self.peek != nil, self.offset > start else { return nil }
            defer { self.offset += 1 }
            return String(decoding: self.bytes[start..<self.offset], as: UTF8.self)
        }

        mutating func list(_ count: inout Int) -> [Condition]? {
            self.offset += 1
            var conditions: [Condition] = []
            while true {
                self.skipSpace()
                guard let next = self.peek else { return nil }
                if next == UInt8(ascii: ")") {
                    self.offset += 1
                    return conditions.isEmpty ? nil : conditions
                }
                count += 1
                guard count <= IfHeader.conditionCountMax else { return nil }
                let isNegated = self.takesNot()
                if isNegated { self.skipSpace() }
                guard let state = self.state() else { return nil }
                conditions.append(Condition(isNegated: isNegated, state: state))
            }
        }

        private mutating func takesNot() -> Bool {
            guard self.offset + 3 <= self.bytes.count else { return false }
            let word = self.bytes[self.offset..<(self.offset + 3)].map { $0 | 0x20 }
            guard word == Bytes("not".utf8) else { return false }
            self.offset += 3
            return true
        }

        private mutating func state() -> State? {
            switch self.peek {
            case UInt8(ascii: "<"): return self.bracketed().map { .token($0) }
            case UInt8(ascii: "["):
                self.offset += 1
                let start = self.offset
                if self.peek == UInt8(ascii: "W") {
                    self.offset += 1
                    guard self.peek == UInt8(ascii: "/") else { return nil }
                    self.offset += 1
                }
                guard self.peek == UInt8(ascii: "\"") else { return nil }
                self.offset += 1
                while let byte = self.peek, byte != UInt8(ascii: "\"") {
                    guard byte >= 0x20, byte != 0x7F else { return nil }
                    self.offset += 1
                }
                guard self.peek != nil else { return nil }
                self.offset += 1
                let tag = String(decoding: self.bytes[start..<self.offset], as: UTF8.self)
                guard self.peek == UInt8(ascii: "]") else { return nil }
                self.offset += 1
                return .tag(tag)
            default: return nil
            }
        }
    }
}
