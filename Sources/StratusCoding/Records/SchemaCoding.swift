package import StratusModel

// Schema, format 1.
//
// | bytes  | what                                                                          |
// | ------ | ----------------------------------------------------------------------------- |
// | 1      | format, 1                                                                     |
// | varint | version                                                                       |
// | count  | record types                                                                  |
// | …      | each: text name; count of fields, each a text, 1 byte field type (`ScalarType`, |
// |        | 0x10 list, 0x20 encrypted), 1 byte indexes; count of grants, each a text role |
// |        | and a count of permissions, 1 byte each                                       |
// | count  | custom roles, each a text                                                     |

extension ByteWriter {
    package mutating func write(_ schema: Schema) {
        self.write(1 as UInt8)
        self.write(varint: schema.version)
        self.write(recordTypes: schema.types)
        self.write(count: schema.roles.count)
        for role in schema.roles { self.write(text: role) }
    }

    package mutating func write(recordTypes types: [RecordType]) {
        self.write(count: types.count)
        for type in types {
            self.write(text: type.name)
            self.write(count: type.fields.count)
            for field in type.fields {
                self.write(text: field.name)
                self.write(field.type)
                self.write(field.indexes.rawValue)
            }
            self.write(count: type.grants.count)
            for grant in type.grants {
                self.write(text: grant.role)
                self.write(count: grant.permissions.count)
                for permission in grant.permissions { self.write(permission.rawValue) }
            }
        }
    }
}

extension ByteReader {
    package mutating func schema() throws(DecodingError) -> Schema {
        let version = try self.byte()
        guard version == 1 else {
            throw DecodingError(.unknownVersion(version), at: self.offset - 1)
        }
        var schema = Schema(version: try self.varint(), types: [])
        schema.types = try self.recordTypes()
        for _ in 0..<(try self.count()) { schema.roles.append(try self.text()) }
        return schema
    }

    package mutating func recordTypes() throws(DecodingError) -> [RecordType] {
        var types: [RecordType] = []
        for _ in 0..<(try self.count(minimumSize: 3)) {
            var type = RecordType(name: try self.text(), fields: [], grants: [])
            for _ in 0..<(try self.count(minimumSize: 3)) {
                let name = try self.text()
                let fieldType = try self.fieldType()
                let indexes = FieldIndexes(rawValue: try self.byte())
                type.fields.append(
                    FieldDefinition(name: name, type: fieldType, indexes: indexes))
            }
            for _ in 0..<(try self.count(minimumSize: 2)) {
                var grant = Grant(role: try self.text(), permissions: [])
                for _ in 0..<(try self.count()) {
                    guard let permission = Grant.Permission(rawValue: try self.byte()) else {
                        throw DecodingError(.malformed, at: self.offset - 1)
                    }
                    grant.permissions.append(permission)
                }
                type.grants.append(grant)
            }
            types.append(type)
        }
        return types
    }
}
