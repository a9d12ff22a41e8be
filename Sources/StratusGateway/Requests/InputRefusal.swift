package import StratusModel

/// Why a whole request is refused before or instead of its items. How each is told to the client is
/// decided in `ClientError.swift` and nowhere else.
package enum InputRefusal: Error, Sendable, Hashable {
    // The path.
    case unknownPath
    case unknownEnvironment(String)
    case unknownDatabase(String)
    case unknownOperation(String)
    /// The operation's label stands for it.
    case wrongMethod(String, method: String)
    case operationNotInDatabase(String, DatabaseScope)

    // The body.
    case bodyTooLarge(ByteCount)
    case bodyCutShort
    /// The bodies of all requests together take as much memory as they may.
    case noRoomForBody
    case noRoomToWait
    case unreadableJSON(offset: Int)
    case tooManyValues(limit: Int)
    case missingKey(String)
    /// A key holds something of the wrong shape, or a word that is none of the allowed ones.
    case unexpectedInput(key: String)
    case tooMany(key: String, count: Int, limit: Int)
    /// A filter names more values or words than one may.
    case tooManyOperands(filter: String, field: String?, limit: Int)
    case repeatedRecord(String)
    case repeatedZone(String)
    case twoZones(record: String)

    // What it asks for.
    case atomicInDefaultZone
    case changesInDefaultZone
    case zoneNotFound
    case unknownShortGUID
    case usersQueried
    case sharesQueried
    /// A share of what cannot be shared, or of nothing.
    case nothingToShare
    case recordShareUnavailable
    case invitationUnavailable
    /// A key asks for what no zone or share here can be. Subject: the key.
    case keyUnavailable(String)
    case unknownTokenType
    case invalidTokenFormat
    case invalidMarker
}
