package import StratusHTTP
package import StratusModel

/// The meaning of an APNs answer for a push, its device and the lane to APNs.
package enum APNsVerdict: Sendable, Equatable {
    /// Under the identity that APNs gave it, ours unless we gave none.
    case accepted(identifier: String?)
    /// The app is gone from the device, or the token's time is over. To be removed if it was
    /// registered before this moment, milliseconds since 1970; without one, before the push was
    /// sent (P-03).
    case gone(before: Int64?)
    /// No token of this host: perhaps of the other one.
    case unknownDevice
    /// To be pruned once more, then dropped (P-11).
    case tooLarge
    /// Ours to mend: no repetition helps (P-04).
    case dropped(reason: String)
    /// The provider token is not believed (P-06): renewed once, then the lane is refused.
    case tokenRefused(reason: String)
    /// Too many pushes for this one device.
    case deviceBusy(after: Duration?)
    /// The lane rests, and the push is sent again under the same identity (P-07, P-09).
    case unavailable(reason: String, after: Duration?)

    /// - Parameter now: seconds since 1970.
    package init(_ head: ResponseHead, _ body: Bytes, at now: Int64) {
        let (reason, timestamp) = Self.read(body)
        let after = RetryAfter.duration(head.headers["retry-after"], at: now)
        switch head.status {
        case 200: self = .accepted(identifier: Self.identifier(head.headers["apns-id"]))
        case 410: self = .gone(before: timestamp)
        case 413: self = .tooLarge
        case 403: self = .tokenRefused(reason: reason)
        case 400 where reason == "BadDeviceToken": self = .unknownDevice
        // The reason is the connection's, not the push's.
        case 400 where reason == "IdleTimeout": self = .unavailable(reason: reason, after: after)
        case 429 where reason == "TooManyProviderTokenUpdates":
            self = .unavailable(reason: reason, after: after)
        case 429: self = .deviceBusy(after: after)
        case 500...599: self = .unavailable(reason: reason, after: after)
        default: self = .dropped(reason: reason == Self.unsaid ? "status \(head.status)" : reason)
        }
    }

    private static let unsaid = "no reason"

    /// `{"reason":"…","timestamp":…}`. What is not that says nothing; what it says goes into logs.
    private static func read(_ body: Bytes) -> (reason: String, timestamp: Int64?) {
        guard !body.isEmpty, body.count <= 4_096,
            let document = try? JSONDocument(
                parsing: body,
                limits: JSONLimits(depthMax: 4, sizeMax: 4_096, valueCountMax: 32))
        else { return (Self.unsaid, nil) }
        let root = document.root
        let reason = root["reason"]?.string ?? Self.unsaid
        let isFit =
            !reason.isEmpty && reason.utf8.count <= 64
            && reason.utf8.allSatisfy { $0 >= 0x20 && $0 < 0x7F }
        return (isFit ? reason : Self.unsaid, root["timestamp"]?.wholeInt64)
    }

    private static func identifier(_ text: String?) -> String? {
        guard let text, text.utf8.count == 36 else { return nil }
        let isFit = text.utf8.allSatisfy { ASCII.hexValue($0) != nil || $0 == 0x2D }
        return isFit ? text : nil
    }
}
