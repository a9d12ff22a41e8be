package import StratusCoding
package import StratusModel

/// A change of one partition: its fields, its outcome, and what it does.
///
/// What must be said of every operation has no default. An operation on a database is a
/// ``DatabaseOperation``.
package protocol PartitionOperation<State>: FormValue, FixedLevel, Submittable
where Response == Outcome, Refusal == State.Refusal {
    associatedtype State: OperationState
    associatedtype Outcome: FormValue & Sendable
    /// Its number in the registry, for ever.
    static var number: UInt8 { get }
    static var bound: WorkBound { get }
    var payer: Payer { get }
    var need: AccessNeed { get }
    /// Whether it may add rows. It is refused then while the disk has only its reserve.
    var adds: Bool { get }
    /// What stands before its fields.
    var head: OperationHead { get }
    /// - Returns: false where no operation of this type has such a head.
    mutating func take(_ head: OperationHead) -> Bool
    /// Reads first, decides everything, then writes.
    ///
    /// - Throws: only what `rows` threw.
    func apply(
        in state: inout State, at entry: borrowing EntryContext, over rows: Rows
    ) throws(StoreError) -> Result<Outcome, State.Refusal>
}

/// An operation on one database, which stands in its head and not among its fields.
package protocol DatabaseOperation<State>: PartitionOperation {
    var database: DatabaseID { get set }
}

/// An operation that brings numbers of the registry into rows, beside its own. A build that does not
/// know one of them must not apply it.
package protocol LevelledContent {
    /// The level of what it brings into rows.
    var contentLevel: FeatureLevel { get }
}

/// An operation that goes to a whole database, and never to a bucket of one.
package protocol WholeDatabaseOperation: DatabaseOperation {}

/// What stands before the fields of every operation.
package struct OperationHead: Sendable, Equatable {
    /// Nil: the operation is about a container or a partition.
    package var database: DatabaseID?

    package init(database: DatabaseID? = nil) { self.database = database }
}

extension PartitionOperation {
    package static var level: FeatureLevel { .one }
    package var head: OperationHead { OperationHead() }
    package var namedDatabase: DatabaseID? { self.head.database }
    package mutating func take(_ head: OperationHead) -> Bool { head == OperationHead() }
}

extension DatabaseOperation {
    package init(_ database: DatabaseID, _ fill: (inout Self) -> Void) {
        self.init()
        self.database = database
        fill(&self)
    }

    package var head: OperationHead { OperationHead(database: self.database) }

    package mutating func take(_ head: OperationHead) -> Bool {
        guard let database = head.database else { return false }
        self.database = database
        return true
    }
}

extension WholeDatabaseOperation {
    package mutating func take(_ head: OperationHead) -> Bool {
        guard let database = head.database, database.zoneBucket == nil else { return false }
        self.database = database
        return true
    }
}

// Operation, format 1: the body of a `Command`. The container is the envelope's.
//
// | bytes  | what                                                                          |
// | ------ | ----------------------------------------------------------------------------- |
// | 1      | format, 1                                                                     |
// | 1      | number of the operation                                                       |
// | 1      | flags: 1 a database follows                                                   |
// | …      | the database, without its container                                           |
// | …      | the fields of the operation                                                   |

extension PartitionOperation {
    package func encoded() -> Bytes {
        var writer = ByteWriter(reserving: 256)
        writer.write(1 as UInt8)
        writer.write(Self.number)
        let database = self.head.database
        writer.write(database == nil ? 0 : 1 as UInt8)
        if let database { writer.write(partOf: database) }
        writer.write(form: self)
        return writer.bytes
    }

    /// - Parameter container: the envelope's.
    package init(decoding body: Bytes, container: ContainerReference) throws(DecodingError) {
        var reader = ByteReader(body)
        try self.init(from: &reader, container: container)
        try reader.finish()
    }

    init(from reader: inout ByteReader, container: ContainerReference) throws(DecodingError) {
        let version = try reader.byte()
        guard version == 1 else { throw DecodingError(.unknownVersion(version), at: 0) }
        guard try reader.byte() == Self.number else { throw DecodingError(.malformed, at: 1) }
        let flags = try reader.byte()
        guard flags <= 1 else { throw DecodingError(.malformed, at: 2) }
        let database = flags == 0 ? nil : try reader.databasePart(container: container)
        self.init()
        guard self.take(OperationHead(database: database)) else {
            throw DecodingError(.malformed, at: 2)
        }
        try self.lay(in: &reader)
    }

    package static func encoded(_ result: Result<Outcome, State.Refusal>) -> Bytes {
        Reply.encoded(result, to: Self.number)
    }

    /// The outcome of an operation of this type, or its refusal. What answers another kind is
    /// malformed.
    package static func result(decoding body: Bytes) throws(DecodingError)
        -> Result<Outcome, State.Refusal>
    { try Reply.result(decoding: body, to: Self.number) }

    package static var family: Command.Kind { State.kind }

    package static func outcome(decoding body: Bytes, detail: Bytes) throws -> Outcome {
        try Self.result(decoding: body).mapError { PartitionError.refused($0) }.get()
    }
}
