package import StratusCoding
package import StratusModel

/// One sign-in: what a web-auth token or an app password stands for.
///
/// | bytes  | session, format 1                                     |
/// | ------ | ----------------------------------------------------- |
/// | 1      | format, 1                                             |
/// | text   | container                                             |
/// | 1      | environment                                           |
/// | signed | opened, milliseconds                                  |
/// | flag   | whether the person chose to stay signed in            |
/// | text   | how the person's browser calls itself, cut            |
///
/// Format 2 is an app password's: format, container, environment and opened as above, then text
/// label, 1 byte of services (bit 0: WebDAV), flag read-only, flag everything. The first byte is a
/// flag for whose session it is: every build reads and writes both.
package struct Session: Sendable, Equatable {
    /// What an app password is good for.
    package struct AppPassword: Sendable, Hashable {
        /// The person's name for it. 1 to 64 bytes.
        package var label: String
        package var isReadOnly: Bool
        /// Shows what apps keep beside the folder `Documents` too.
        package var showsAll: Bool

        package static let labelSizeMax = 64
        static let webDAV: UInt8 = 1

        package init(label: String, isReadOnly: Bool = false, showsAll: Bool = false) {
            self.label = label
            self.isReadOnly = isReadOnly
            self.showsAll = showsAll
        }

        package static func isLabel(_ label: String) -> Bool {
            (1...Self.labelSizeMax).contains(label.utf8.count)
                && label.utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7F }
        }
    }

    package var container: ContainerReference
    package var openedMilliseconds: Int64
    package var stays: Bool
    package var agent: String
    /// Nil: a sign-in.
    package var appPassword: AppPassword?

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
        writer.write(UInt8(self.appPassword == nil ? 1 : 2))
        writer.write(text: self.container.container)
        writer.write(self.container.environment.rawValue)
        writer.write(signed: self.openedMilliseconds)
        if let appPassword {
            writer.write(text: appPassword.label)
            writer.write(AppPassword.webDAV)
            writer.write(flag: appPassword.isReadOnly)
            writer.write(flag: appPassword.showsAll)
            return writer.bytes
        }
        writer.write(flag: self.stays)
        writer.write(text: self.agent)
        return writer.bytes
    }

    package init(decoding bytes: Bytes) throws(DecodingError) {
        var reader = ByteReader(bytes)
        let format = try reader.byte()
        guard format == 1 || format == 2 else {
            throw DecodingError(.unknownVersion(format), at: reader.offset - 1)
        }
        let container = try reader.text()
        guard let environment = Environment(rawValue: try reader.byte()) else {
            throw DecodingError(.malformed, at: reader.offset - 1)
        }
        self.container = ContainerReference(container: container, environment: environment)
        self.openedMilliseconds = try reader.signed()
        if format == 2 {
            let label = try reader.text()
            guard try reader.byte() == AppPassword.webDAV else {
                throw DecodingError(.malformed, at: reader.offset - 1)
            }
            let isReadOnly = try reader.flag()
            self.appPassword = AppPassword(
                label: label, isReadOnly: isReadOnly, showsAll: try reader.flag())
            self.stays = false
            self.agent = ""
            try reader.finish()
            return
        }
        self.stays = try reader.flag()
        self.agent = try reader.text()
        try reader.finish()
    }
}
