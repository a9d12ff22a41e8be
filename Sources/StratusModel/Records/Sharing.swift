/// What somebody may do in a share. The raw value is in rows and in the log for ever.
package enum SharePermission: UInt8, Sendable, Hashable, CaseIterable {
    case none = 0
    case readOnly = 1
    case readWrite = 2
}

/// What somebody is in a share.
package enum ShareRole: UInt8, Sendable, Hashable, CaseIterable {
    case owner = 1
    /// Nobody is one yet.
    case administrator = 2
    /// Somebody who was invited.
    case user = 3
    /// Somebody who came by the link while the share was public.
    case publicUser = 4
}

/// Whether a participant has accepted. Who was removed, or has left, is no participant.
package enum ShareStatus: UInt8, Sendable, Hashable, CaseIterable {
    case invited = 1
    case accepted = 2
}

/// What a participant's own list says of a shared zone.
package enum SharedZoneState: UInt8, Sendable, Hashable, CaseIterable {
    case accepted = 1
    /// The participant has left.
    case left = 2
    /// The owner removed the participant, or ended the share.
    case removed = 3
    /// The owner deleted the zone.
    case deleted = 4
}

/// The names that belong to sharing.
package enum ShareNames {
    /// The record type of shares.
    package static let type = "cloudkit.share"
    /// The name of the record that shares a whole zone.
    package static let zoneWide = "cloudkit.zoneshare"
    package static let title = "cloudkit.title"
    package static let thumbnail = "cloudkit.thumbnailImageData"
    package static let kind = "cloudkit.type"
}
