package import StratusModel

/// Seals files anew under the newest key of their database.
package protocol FileResealing: Sendable {
    /// May be carried out twice: a file that is under the newest key is left as it is.
    ///
    /// - Throws: a `RouteError` where another try may go well.
    func reseal(_ asset: AssetID, of database: DatabaseID) async throws -> ResealedFile
}

/// What became of a file that was to be sealed anew.
package enum ResealedFile: Sendable, Equatable {
    /// It has a new body.
    case sealed(size: UInt64)
    /// It has the body that it had.
    case left(reason: String)
}
