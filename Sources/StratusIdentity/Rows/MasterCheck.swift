package import StratusCoding
package import StratusModel

/// What the cluster has noted of one version of a named master key.
///
/// | bytes  | master check, format 1                                              |
/// | ------ | ------------------------------------------------------------------- |
/// | 1      | format, 1                                                           |
/// | 1      | 0 noted, 1 being forgotten, 2 free                                  |
/// | 8      | 0 and 1: the check value                                            |
/// | signed | 1: milliseconds since when                                          |
/// | count  | 8 each: the check values that were forgotten, the last one last     |
package struct MasterCheck: Sendable, Equatable {
    package enum State: Sendable, Equatable {
        case noted(Bytes)
        /// Nothing is wrapped under it any more, while somebody looks whether anything is.
        case leaving(Bytes, sinceMilliseconds: Int64)
        /// A key may come.
        case free
    }

    package static let checkSize = 8
    /// Check values that are kept.
    private static let forgottenMax = 16

    package var state: State
    /// Keys that were under this version. None of them comes again: a node that has its file still
    /// would bring it back.
    package private(set) var forgotten: [Bytes]

    package init(_ state: State, forgotten: [Bytes] = []) {
        self.state = state
        self.forgotten = forgotten
    }

    /// The check value of the key that is under the version.
    package var check: Bytes? {
        switch self.state {
        case .noted(let check), .leaving(let check, _): check
        case .free: nil
        }
    }

    package mutating func forget(_ check: Bytes) {
        self.state = .free
        self.forgotten = Array((self.forgotten + [check]).suffix(Self.forgottenMax))
    }

    package func encoded() -> Bytes {
        var writer = ByteWriter(reserving: 64)
        writer.write(1 as UInt8)
        switch self.state {
        case .noted(let check):
            writer.write(0 as UInt8)
            writer.write(raw: check)
        case .leaving(let check, let since):
            writer.write(1 as UInt8)
            writer.write(raw: check)
            writer.write(signed: since)
        case .free: writer.write(2 as UInt8)
        }
        writer.write(count: self.forgotten.count)
        for check in self.forgotten { writer.write(raw: check) }
        return writer.bytes
    }

    package init(decoding bytes: Bytes) throws(DecodingError) {
        var reader = ByteReader(bytes)
        let format = try reader.byte()
        guard format == 1 else { throw DecodingError(.unknownVersion(format), at: 0) }
        let state: State
        switch try reader.byte() {
        case 0: state = .noted(try reader.raw(Self.checkSize))
        case 1:
            let check = try reader.raw(Self.checkSize)
            state = .leaving(check, sinceMilliseconds: try reader.signed())
        case 2: state = .free
        default: throw DecodingError(.malformed, at: 1)
        }
        var forgotten: [Bytes] = []
        for _ in 0..<(try reader.count(minimumSize: Self.checkSize)) {
            forgotten.append(try reader.raw(Self.checkSize))
        }
        self.init(state, forgotten: forgotten)
        try reader.finish()
    }
}
