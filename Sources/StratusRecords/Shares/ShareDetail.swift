package import StratusCoding
package import StratusModel

/// A share as one reader may see it. It holds nothing that the reader may not see, so whoever
/// renders it leaves nothing out.
package struct ShareDetail: FormValue, Sendable, Equatable {
    /// Who reads.
    package enum Reader: UInt8, Sendable, Hashable, CaseIterable {
        /// Sees everybody, and the addresses as they were typed.
        case owner = 1
        /// Sees the owner, the private people who have accepted, and themself.
        case participant = 2
        /// Was invited, or has the link of a public share. Sees the owner and themself.
        case invited = 3
    }

    /// Public users that the owner is shown: the newest.
    package static let shownPublicCountMax = 100
    package static let participantCountMax = 202

    package var reader = Reader.invited
    /// The name of the share's record, and that of its root; empty: the share is of the whole zone.
    package var recordName = ""
    package var rootName = ""
    package var link = ShareLink()
    package var publicPermission = SharePermission.none
    /// Those that the reader may see; the owner comes first, then in the order they were added.
    package var participants: [ShareParticipant] = []
    /// Everybody who came by the link; 0 for readers who may not know.
    package var publicCount: UInt64 = 0
    /// The reader as a participant. For somebody with the link of a public share it is who they
    /// would be: its ``ShareParticipant/id`` is 0, and it is none of ``participants``.
    package var caller = ShareParticipant()

    package init() {}

    package mutating func lay<F: Form>(in form: inout F) throws(F.Problem) {
        try form.lay(&self.reader)
        try form.lay(&self.recordName)
        try form.lay(&self.rootName)
        try form.lay(&self.link)
        try form.lay(&self.publicPermission)
        try form.lay(&self.participants, atMost: Self.participantCountMax)
        try form.lay(&self.publicCount)
        try form.lay(&self.caller)
    }
}

/// Somebody in a share, as one reader may see them.
package struct ShareParticipant: FormValue, Sendable, Hashable {
    /// Clients see it as an upper-case UUID.
    package var id: UInt128 = 0
    /// The user's record name, where it is known: of who has accepted or was invited by it.
    package var user = ""
    /// As the invitation gave it; nil: the reader may not see it, or there was no invitation.
    package var identity: ShareIdentity?
    package var role = ShareRole.user
    package var status = ShareStatus.invited
    package var permission = SharePermission.readOnly
    package var name = ShownName()
    /// When the participant was added, in milliseconds since 1970; 0: the reader may not see it.
    package var addedMilliseconds: Int64 = 0

    package init() {}

    package mutating func lay<F: Form>(in form: inout F) throws(F.Problem) {
        try form.lay(name: &self.id)
        try form.lay(&self.user)
        try form.lay(&self.identity)
        try form.lay(&self.role)
        try form.lay(&self.status)
        try form.lay(&self.permission)
        try form.lay(&self.name)
        try form.lay(&self.addedMilliseconds)
    }
}
