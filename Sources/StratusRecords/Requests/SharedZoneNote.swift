package import StratusCoding
package import StratusModel

/// How a participant stands in a zone of somebody else's, as the owner's partition says it. It goes
/// to the participant's own list, which takes only what is newer than what it has.
package struct SharedZoneNote: FormValue, Sendable, Hashable {
    package var zone = ""
    package var incarnation = ZoneIncarnation(0)
    package var version = ShareVersion()
    package var state = SharedZoneState.accepted

    package init() {}

    package mutating func lay<F: Form>(in form: inout F) throws(F.Problem) {
        try form.lay(&self.zone)
        try form.lay(fixed: &self.incarnation.raw)
        try form.lay(&self.version)
        try form.lay(&self.state)
    }
}

/// Orders what an owner's partition says of one zone name. It grows for ever: over the incarnations
/// of the zone by their base tags, and within one by the number of changes of who stands in it.
package struct ShareVersion: FormValue, Sendable, Hashable, Comparable {
    package var baseTag: UInt64 = 0
    package var number: UInt64 = 0

    package init() {}

    package mutating func lay<F: Form>(in form: inout F) throws(F.Problem) {
        try form.lay(&self.baseTag)
        try form.lay(&self.number)
    }

    package static func < (one: Self, other: Self) -> Bool {
        (one.baseTag, one.number) < (other.baseTag, other.number)
    }
}
