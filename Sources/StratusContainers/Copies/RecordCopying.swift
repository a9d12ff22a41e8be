package import StratusModel

/// Copies records between the environments of a container.
package protocol RecordCopying: Sendable {
    /// Makes records in a public database. Those whose names are taken there stay as they are.
    ///
    /// - Parameters:
    ///   - records: of one part of a public database, with the creators that they shall have.
    ///   - layout: how the databases of the other environment are spread.
    /// - Returns: what became of each, in their order.
    /// - Throws: where another try may go well.
    func copy(
        _ records: [Record], of source: DatabaseID, to container: ContainerReference,
        layout: ContainerLayout
    ) async throws -> [CopiedRecord]
}

/// What became of a record that was to be copied.
package enum CopiedRecord: Sendable, Equatable {
    case made(fileSize: UInt64)
    /// The name is taken.
    case there
    /// A record that it refers to is not there yet.
    case waits(reason: String)
    case refused(reason: String)
}
