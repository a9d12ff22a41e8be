package import StratusModel

// Shard key, version 1: what placement hashes, so these bytes can never change.
//
// | bytes | what                                                                   |
// | ----- | ---------------------------------------------------------------------- |
// | 1     | form: 1 database, 2 container, 3 account                               |
// | …     | database: text container, 1 environment, 1 scope, text owner,          |
// |       | optional text zone, flag and 2 bytes bucket                            |
// | …     | container: text container, 1 environment                               |
// | …     | account: text identifier                                               |

extension ShardKey {
    package func encoded() -> Bytes {
        var writer = ByteWriter()
        switch self {
        case .database(let database, let zone, let bucket):
            writer.write(1 as UInt8)
            writer.write(text: database.container.container)
            writer.write(database.container.environment.rawValue)
            writer.write(database.scope.rawValue)
            writer.write(text: database.owner)
            writer.write(optionalText: zone)
            let bucket = bucket ?? (database.bucket.map { UInt16($0.number) })
            writer.write(flag: bucket != nil)
            if let bucket { writer.write(fixed: bucket) }
        case .container(let container):
            writer.write(2 as UInt8)
            writer.write(text: container.container)
            writer.write(container.environment.rawValue)
        case .account(let identifier):
            writer.write(3 as UInt8)
            writer.write(text: identifier)
        }
        return writer.bytes
    }
}
