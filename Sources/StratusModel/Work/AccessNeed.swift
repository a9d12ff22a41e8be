/// What a caller must be, so that a partition carries out an operation or answers a question. The
/// tables check it before anything else.
package enum AccessNeed: Sendable, Hashable {
    case everybody
    /// Whoever may use the database: its owner, or anybody where it is public.
    case owner
    /// Stratus itself, or an administrator of the cluster.
    case system
}
