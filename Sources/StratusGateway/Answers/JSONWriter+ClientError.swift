import StratusHTTP
import StratusModel

extension JSONWriter {
    /// The body of an answer that fails as a whole.
    mutating func writeFailure(_ error: ClientError, uuid: String) {
        self.object {
            $0.member("uuid", uuid)
            $0.writeMembers(of: error)
        }
    }

    /// Writes a failure in a record's place.
    mutating func writeFailure(_ error: ClientError, recordName: String) {
        self.writeFailure(error, recordName: recordName) { _ in }
    }

    /// Writes a failure in a record's place, and more beside it.
    mutating func writeFailure(
        _ error: ClientError, recordName: String, beside: (inout JSONWriter) -> Void
    ) {
        self.object {
            $0.member("recordName", recordName)
            $0.writeMembers(of: error)
            beside(&$0)
        }
    }

    /// Writes a failure in a zone's place.
    mutating func writeFailure(_ error: ClientError, zone: ZoneID) {
        self.object {
            $0.key("zoneID")
            $0.writeZoneID(zone)
            $0.writeMembers(of: error)
        }
    }

    mutating func writeMembers(of error: ClientError) {
        self.member("serverErrorCode", error.code.rawValue)
        self.member("reason", error.reason)
        if let retryAfter = error.retryAfter { self.member("retryAfter", retryAfter) }
        if let limit = error.limit { self.member("limit", limit) }
        if let redirectURL = error.redirectURL { self.member("redirectURL", redirectURL) }
        if let finer = error.finer, self.hasExtensions {
            self.key("stratus")
            self.object {
                $0.member("code", finer.rawValue)
                if let limit = error.limit { $0.member("limit", limit) }
                if let name = error.recordName { $0.member("recordName", name) }
            }
        }
    }
}
