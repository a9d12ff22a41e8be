package import StratusModel

/// The codes of errors of the administrators' API. Scripts read them, so a code keeps its meaning.
package enum AdminCode: String, CaseIterable, Sendable {
    case ambiguous = "AMBIGUOUS"
    case badRequest = "BAD_REQUEST"
    case badSchema = "BAD_SCHEMA"
    case badTicket = "BAD_TICKET"
    case confirmationNeeded = "CONFIRMATION_NEEDED"
    case conflict = "CONFLICT"
    case containerDeleted = "CONTAINER_DELETED"
    case containerResetting = "CONTAINER_RESETTING"
    case exists = "EXISTS"
    case finalised = "FINALISED"
    case hasRecords = "HAS_RECORDS"
    case incomplete = "INCOMPLETE"
    case internalError = "INTERNAL_ERROR"
    case lost = "LOST"
    case methodNotAllowed = "METHOD_NOT_ALLOWED"
    case nameIsFull = "NAME_IS_FULL"
    case noSuchNode = "NO_SUCH_NODE"
    case noSuchPartition = "NO_SUCH_PARTITION"
    case notAuthenticated = "NOT_AUTHENTICATED"
    case notClustered = "NOT_CLUSTERED"
    case notDeleted = "NOT_DELETED"
    case notFormed = "NOT_FORMED"
    case notFound = "NOT_FOUND"
    case notResetting = "NOT_RESETTING"
    case notTold = "NOT_TOLD"
    case outcomeUnknown = "OUTCOME_UNKNOWN"
    case overtaken = "OVERTAKEN"
    case productionIsClosed = "PRODUCTION_IS_CLOSED"
    case quotaExceeded = "QUOTA_EXCEEDED"
    case refused = "REFUSED"
    case schemaConflict = "SCHEMA_CONFLICT"
    case tooManyKeys = "TOO_MANY_KEYS"
    case tryAgainLater = "TRY_AGAIN_LATER"
    case unavailable = "UNAVAILABLE"

    /// What it means, for the reference page.
    package var meaning: String {
        switch self {
        case .ambiguous: "More than one device has such a name."
        case .badRequest: "The request is malformed; the reason names the member."
        case .badSchema: "The schema cannot be read; the reason names line and column."
        case .badTicket: "The ticket of a file is unknown or has expired."
        case .confirmationNeeded:
            "The change cannot be undone: repeat the container's name as `confirm`."
        case .conflict: "The account's state does not allow it."
        case .containerDeleted: "The container was deleted, or is still being removed."
        case .containerResetting: "The environment is being reset."
        case .exists: "There is one already."
        case .finalised: "The upgrade is finalised already."
        case .hasRecords: "The public database holds records, so its layout is fixed."
        case .incomplete: "The last line of an answer that could not go on."
        case .internalError: "The node failed; its log says why, under the number of the request."
        case .lost: "No node has a sound copy of the file."
        case .methodNotAllowed: "The path takes other methods: see `Allow`."
        case .nameIsFull: "Two live keys have this name."
        case .noSuchNode: "No node of the cluster has this name."
        case .noSuchPartition: "The cluster has no such partition."
        case .notAuthenticated: "The administrators' token or a certificate is missing or wrong."
        case .notClustered: "The node works alone."
        case .notDeleted: "The container is not being deleted."
        case .notFormed: "The cluster is not formed yet."
        case .notFound: "There is no such thing, or the node has no such part."
        case .notResetting: "The environment is not being reset."
        case .notTold: "The device would be told nothing; the reason says why."
        case .outcomeUnknown: "The change may have been made: check before you repeat it."
        case .overtaken: "Somebody else changed it in the meantime."
        case .productionIsClosed: "Production's schema changes only by promotion."
        case .quotaExceeded: "The key-value store is full."
        case .refused: "The cluster refused the change; `cause` and `accept` may say more."
        case .schemaConflict: "The schema contradicts the one in force."
        case .tooManyKeys: "There are as many keys as there may be."
        case .tryAgainLater: "Nothing was changed: try again later."
        case .unavailable: "Nobody leads the partition, or a node does not answer."
        }
    }
}

/// An error: a code for scripts and a reason for people.
package struct ErrorAnswer: NamedMembers {
    package struct Detail: NamedMembers {
        package var code = ""
        package var reason = ""
        /// Why the cluster refused a change.
        package var cause: String?
        /// The number by which a refused change is confirmed.
        package var accept: Int64?

        package init() {}
        package mutating func lay(in form: inout NamedForm) {
            form.member("code", &self.code)
            form.member("reason", &self.reason)
            form.member("cause", &self.cause)
            form.member("accept", &self.accept)
        }
    }

    package var error = Detail()

    package init() {}
    package init(_ code: AdminCode, _ reason: String) {
        self.error.code = code.rawValue
        self.error.reason = reason
    }

    package mutating func lay(in form: inout NamedForm) { form.member("error", &self.error) }

    /// How a line begins that says why no more lines come.
    package static let mark = Bytes("{\"error\":".utf8)
}
