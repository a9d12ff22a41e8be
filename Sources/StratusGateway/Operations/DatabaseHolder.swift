import StratusCluster
import StratusIdentity
import StratusModel
import StratusRecords

/// Whose database a request is about, and how it is spread. ``Sender`` says who acts.
///
/// The shared database is a view: its holder is the sender, who keeps the list of zones, and each
/// zone has a holder of its own (``Exchange/holder(of:)``).
struct DatabaseHolder: Sendable {
    let container: ContainerReference
    let scope: DatabaseScope
    /// The record name of whose private database it is; also who asks of a public one.
    let owner: String
    let layout: ContainerLayout

    /// The public database, or the owner's private one: of a spread one its home.
    var database: DatabaseID {
        DatabaseID(
            container: self.container, scope: self.scope == .public ? .public : .private,
            owner: self.scope == .public ? "" : self.owner)
    }

    /// The home of the owner's private database, whatever the path names. Reserved zones lie there.
    var home: DatabaseID {
        DatabaseID(container: self.container, scope: .private, owner: self.owner)
    }

    var privateDatabase: PrivateDatabase {
        self.layout.privateDatabase(of: self.owner, in: self.container)
    }

    /// Nil: the database of the request is whole, or the public one.
    var spread: PrivateDatabase? {
        guard self.scope == .private, self.layout.zoneBucketCount > 1 else { return nil }
        return self.privateDatabase
    }
}
