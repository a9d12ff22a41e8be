/// The account that work is charged to.
package enum Payer: Sendable, Hashable {
    /// Stratus itself: a partition, or the cluster.
    case stratus
    /// The jobs of a container, which count as one user.
    case jobs(ContainerReference)
    /// A user of a container, by record name.
    case user(ContainerReference, String)

    /// The owner of a database. A public database has none: it pays as a user of its own.
    package static func owner(of database: DatabaseID) -> Self {
        .user(database.container, database.owner)
    }
}
