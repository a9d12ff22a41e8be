/// What a caller must be, so that a partition carries out an operation or answers a question. The
/// tables check it before anything else.
package enum AccessNeed: Sendable, Hashable {
    case everybody
    /// Whoever may use the database: its owner, or anybody where it is public.
    case owner
    /// Stratus itself, or an administrator of the cluster.
    case system
    /// Anybody who is signed in. What the caller may learn is found on the way.
    case link
    /// Whoever may read in the zone: who may use the database, and participants of its shares.
    case reader(zone: String)
    /// The same, without participants who may only read.
    case writer(zone: String)
}
