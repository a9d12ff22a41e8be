package import StratusModel

// Command, version 1
//
// | bytes  | what                                                     |
// | ------ | -------------------------------------------------------- |
// | 1      | version, 1                                               |
// | 1      | kind                                                     |
// | 8 + 8  | identity: high, low                                      |
// | signed | deadline, wall milliseconds                              |
// | text   | container                                                |
// | 1      | environment                                              |
// | varint | schema version                                           |
// | 1      | principal: kind                                          |
// | text   | principal: user record name                              |
// | count  | principal: roles, each a text                            |
// | rest   | prefixed bytes: the body, read by the owner of the kind  |

extension Command {
    package func encoded() -> Bytes {
        var writer = ByteWriter(reserving: self.body.count + 128)
        writer.write(1 as UInt8)
        writer.write(self.kind.rawValue)
        writer.write(fixed: self.identity.high)
        writer.write(fixed: self.identity.low)
        writer.write(signed: self.deadlineMilliseconds)
        writer.write(text: self.container.container)
        writer.write(self.container.environment.rawValue)
        writer.write(varint: self.schemaVersion)
        writer.write(self.principal.kind.rawValue)
        writer.write(text: self.principal.userRecordName)
        writer.write(count: self.principal.roles.count)
        for role in self.principal.roles { writer.write(text: role) }
        writer.write(prefixed: self.body)
        return writer.bytes
    }

    package init(decoding bytes: Bytes) throws(DecodingError) {
        var reader = ByteReader(bytes)
        let version = try reader.byte()
        guard version == 1 else { throw DecodingError(.unknownVersion(version), at: 0) }
        guard let kind = Kind(rawValue: try reader.byte()) else {
            throw DecodingError(.malformed, at: 1)
        }
        let identity = RequestIdentity(high: try reader.fixed64(), low: try reader.fixed64())
        let deadline = try reader.signed()
        let container = try reader.text()
        guard let environment = Environment(rawValue: try reader.byte()) else {
            throw DecodingError(.malformed, at: reader.offset - 1)
        }
        let schemaVersion = try reader.varint()
        guard let principalKind = Principal.Kind(rawValue: try reader.byte()) else {
            throw DecodingError(.malformed, at: reader.offset - 1)
        }
        let userRecordName = try reader.text()
        var roles: [String] = []
        for _ in 0..<(try reader.count()) { roles.append(try reader.text()) }
        let body = try reader.prefixed()
        try reader.finish()
        self.init(
            kind: kind, identity: identity, deadlineMilliseconds: deadline,
            container: ContainerReference(container: container, environment: environment),
            schemaVersion: schemaVersion,
            principal: Principal(
                kind: principalKind, userRecordName: userRecordName, roles: roles),
            body: body)
    }
}
