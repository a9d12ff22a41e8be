package import StratusCoding
package import StratusModel

/// One sign-in: what a web-auth token stands for.
///
/// | bytes  | session, format 1                                     |
/// | ------ | ----------------------------------------------------- |
/// | 1      | format, 1                                             |
/// | text   | container                                             |
/// | 1      | environment                                           |
/// | signed | opened, milliseconds                                  |
/// | flag   | whether the person chose to stay signed in            |
/// | text   | how the person's browser calls itself, cut            |
package struct Session: Sendable, Equatable {
    package var container: ContainerReference
    package var openedMilliseconds: Int64
    package var stays: Bool
    package var agent: String

    package init(
        container: ContainerReference, openedMilliseconds: Int64, stays: Bool, agent: String
    ) {
        self.container = container
        self.openedMilliseconds = openedMilliseconds
        self.stays = stays
        self.agent = agent
    }

    package func encoded() -> Bytes {
        var writer = ByteWriter(reserving: 128)
        writer.write(1 as UInt8)
        writer.write(text: self.container.container)
        writer.write(self.container.environment.rawValue)
        writer.write(signed: self.openedMilliseconds)
        writer.write(flag: self.stays)
        writer.write(text: self.agent)
        return writer.bytes
    }

    package init(decoding bytes: Bytes) throws(DecodingError) {
        var reader = ByteReader(bytes)
        try reader.identityFormat(1)
        let container = try reader.text()
        guard let environment = Environment(rawValue: try reader.byte()) else {
            throw DecodingError(.malformed, at: reader.offset - 1)
        }
        self.container = ContainerReference(container: container, environment: environment)
        self.openedMilliseconds = try reader.signed()
        self.stays = try reader.flag()
        self.agent = try reader.text()
        try reader.finish()
    }
}
