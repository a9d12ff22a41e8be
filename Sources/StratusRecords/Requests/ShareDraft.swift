package import StratusCoding
package import StratusModel

/// What an operation says of a share, beside the fields of its record. A save of a share has one;
/// a deletion needs none.
///
/// The tag of the share's record is the operation's, and is always compared.
package struct ShareDraft: FormValue, Sendable, Hashable {
    /// Private people that one operation may name, the owner included.
    package static let invitationCountMax = 100

    /// The record that the share begins at; nil: it is of the whole zone. A share of a record is
    /// refused until there are any.
    package var root: Root?
    /// Nil: not mentioned, so it stays. A new share begins with ``SharePermission/none``.
    package var publicPermission: SharePermission?
    /// Whether the list of private people is mentioned. It then takes the place of the stored one.
    package var statesInvitations = false
    package var invitations: [ShareInvitation] = []
    /// The old link ends, and ``drawnLink`` is the new one.
    package var asksForNewLink = false
    /// The link of the share, should it get one: a zone that was shared before keeps its own. Nil:
    /// the owner's name fits no link, and nothing of theirs can be shared.
    package var drawnLink: ShareLink?
    /// The owner's participant ID, should the share be new.
    package var drawnOwnerID: UInt128 = 0
    /// The owner's name as participants are shown it; empty where it is not shown.
    package var ownerName = ShownName()
    /// The name of the API token that the request came with.
    package var token = ""

    package struct Root: FormValue, Sendable, Hashable {
        package var recordName = ""
        /// Nil: the client gave none.
        package var changeTag: String?

        package init() {}

        package mutating func lay<F: Form>(in form: inout F) throws(F.Problem) {
            try form.lay(&self.recordName)
            try form.lay(&self.changeTag)
        }
    }

    package init() {}

    package mutating func lay<F: Form>(in form: inout F) throws(F.Problem) {
        try form.lay(&self.root)
        try form.lay(optional: &self.publicPermission, first: .none)
        try form.lay(&self.statesInvitations)
        try form.lay(&self.invitations, atMost: Self.invitationCountMax + 1)
        try form.lay(&self.asksForNewLink)
        try form.lay(&self.drawnLink)
        try form.lay(name: &self.drawnOwnerID)
        try form.lay(&self.ownerName)
        try form.lay(&self.token)
        try form.require(self.statesInvitations || self.invitations.isEmpty)
        try form.require(self.token.utf8.count <= ShareIdentity.nameSizeMax)
    }
}

/// One entry of the list of participants, as a client sent it. An entry of the owner is ignored.
package struct ShareInvitation: FormValue, Sendable, Hashable {
    /// As the client gave it; 0: it gave none, or one that nobody can have.
    package var participantID: UInt128 = 0
    /// The participant's ID, should the entry be a new one. Never 0.
    package var drawnID: UInt128 = 0
    /// Nil: the entry names nobody beside its ID.
    package var identity: ShareIdentity?
    /// Nil: not mentioned, so it stays. A new entry begins with ``SharePermission/readOnly``.
    package var permission: SharePermission?
    /// Nil: not mentioned. The role of a new entry is ``ShareRole/user``.
    package var role: ShareRole?
    /// The client says `REMOVED`.
    package var isRemoved = false

    package init() {}

    package mutating func lay<F: Form>(in form: inout F) throws(F.Problem) {
        try form.lay(name: &self.participantID)
        try form.lay(name: &self.drawnID)
        try form.lay(&self.identity)
        try form.lay(optional: &self.permission, first: .none)
        try form.lay(optional: &self.role, first: .user)
        try form.lay(&self.isRemoved)
    }
}
