package import StratusModel

// A database: text container, 1 environment, then its part. The part: 1 scope, text owner; or 1 byte
// 3, 1 bucket's number, 1 count of buckets: a bucket of a public one; or 1 byte 4, text owner, 1
// number, 1 count: a bucket of a private one.

extension ByteWriter {
    /// A database without its container, which the envelope says.
    package mutating func write(partOf database: DatabaseID) {
        if let bucket = database.recordBucket {
            self.write(ByteReader.bucketScope)
            self.write(bucket.number)
            self.write(bucket.count)
            return
        }
        if let bucket = database.zoneBucket {
            self.write(ByteReader.zoneBucketScope)
            self.write(text: database.owner)
            self.write(bucket.number)
            self.write(bucket.count)
            return
        }
        self.write(database.scope.rawValue)
        self.write(text: database.owner)
    }

    package mutating func write(_ database: DatabaseID) {
        self.write(database.container)
        self.write(partOf: database)
    }

    package mutating func write(_ container: ContainerReference) {
        self.write(text: container.container)
        self.write(container.environment.rawValue)
    }
}

extension ByteReader {
    /// In the place of a scope: a bucket of a public database.
    fileprivate static let bucketScope: UInt8 = 3
    /// In the place of a scope: a bucket of a private one.
    fileprivate static let zoneBucketScope: UInt8 = 4

    package mutating func databasePart(container: ContainerReference) throws(DecodingError)
        -> DatabaseID
    {
        let start = self.offset
        let first = try self.byte()
        if first == Self.zoneBucketScope {
            let owner = try self.text()
            let number = Int(try self.byte())
            let count = Int(try self.byte())
            guard !owner.isEmpty, !owner.holdsZero, Bucket.isBucket(number, of: count),
                !container.container.holdsZero
            else { throw DecodingError(.malformed, at: start) }
            return DatabaseID(
                container: container, scope: .private, owner: owner,
                bucket: Bucket(number, of: count))
        }
        if first == Self.bucketScope {
            let number = Int(try self.byte())
            let count = Int(try self.byte())
            guard Bucket.isBucket(number, of: count), !container.container.holdsZero else {
                throw DecodingError(.malformed, at: start)
            }
            return DatabaseID(
                container: container, scope: .public, owner: "", bucket: Bucket(number, of: count))
        }
        guard let scope = DatabaseScope(rawValue: first) else {
            throw DecodingError(.malformed, at: start)
        }
        let owner = try self.text()
        // What `DatabaseID` would trap on, wrong bytes must not reach. A zero byte separates the
        // parts of a database's key.
        guard scope != .shared, (scope == .public) == owner.isEmpty,
            !owner.holdsZero, !container.container.holdsZero
        else { throw DecodingError(.malformed, at: start) }
        return DatabaseID(container: container, scope: scope, owner: owner)
    }

    package mutating func database() throws(DecodingError) -> DatabaseID {
        try self.databasePart(container: try self.container())
    }

    package mutating func container() throws(DecodingError) -> ContainerReference {
        let container = try self.text()
        guard let environment = Environment(rawValue: try self.byte()) else {
            throw DecodingError(.malformed, at: self.offset - 1)
        }
        return ContainerReference(container: container, environment: environment)
    }
}

/// A value that stands for none: whoever makes a value with a database names its database.
extension DatabaseID: FormValue {
    package init() { self.init(container: ContainerReference(), scope: .public, owner: "") }

    package mutating func lay<F: Form>(in form: inout F) throws(F.Problem) {
        try form.lay(&self, by: { $0.write($1) }) { (reader) throws(DecodingError) in
            try reader.database()
        }
    }
}

extension ContainerReference: FormValue {
    package init() { self.init(container: "", environment: .development) }

    package mutating func lay<F: Form>(in form: inout F) throws(F.Problem) {
        try form.lay(&self.container)
        try form.lay(&self.environment)
    }
}
