package import StratusCoding
package import StratusModel

/// What an installation knows of a container in one environment. Stands at the container's home.
///
/// | bytes  | container descriptor, format 1                         |
/// | ------ | ------------------------------------------------------ |
/// | 1      | format, 1                                              |
/// | 1      | state: 1 active, 2 being erased, 3 erased              |
/// | signed | created, milliseconds                                  |
/// | signed | deleted, milliseconds; 0: never                        |
/// | varint | how often the name was taken into use, 1 at first      |
package struct ContainerDescriptor: Sendable, Equatable {
    package enum State: UInt8, Sendable, CaseIterable {
        case active = 1
        /// Nobody gets in any more; what it held is being removed.
        case erasing = 2
        /// Nothing is left. The name stays closed until it is created again.
        case erased = 3

        package var name: String {
            switch self {
            case .active: "active"
            case .erasing: "erasing"
            case .erased: "erased"
            }
        }
    }

    package var state: State
    package var createdMilliseconds: Int64
    package var deletedMilliseconds: Int64
    package var generation: UInt64

    package init(
        state: State = .active, createdMilliseconds: Int64, deletedMilliseconds: Int64 = 0,
        generation: UInt64 = 1
    ) {
        self.state = state
        self.createdMilliseconds = createdMilliseconds
        self.deletedMilliseconds = deletedMilliseconds
        self.generation = generation
    }

    package func encoded() -> Bytes {
        var writer = ByteWriter(reserving: 32)
        writer.write(1 as UInt8)
        writer.write(self.state.rawValue)
        writer.write(signed: self.createdMilliseconds)
        writer.write(signed: self.deletedMilliseconds)
        writer.write(varint: self.generation)
        return writer.bytes
    }

    package init(decoding bytes: Bytes) throws(DecodingError) {
        var reader = ByteReader(bytes)
        try reader.identityFormat(1)
        guard let state = State(rawValue: try reader.byte()) else {
            throw DecodingError(.malformed, at: 1)
        }
        self.state = state
        self.createdMilliseconds = try reader.signed()
        self.deletedMilliseconds = try reader.signed()
        self.generation = try reader.varint()
        try reader.finish()
    }
}
