/// Every fault that Stratus means to live with, by the number that tests carry in their names.
///
/// One line each: `number | what it is | what is not shown, and why`. The last part may be missing
/// where a test carries the number; where none does, it must be there.
enum FaultList {
    static let consensus = """
        C-01 | a leader that ends at any step of a write
        C-02 | an entry of an older term that a majority holds
        C-03 | reads asked of a leader that has been replaced
        C-04 | a leader that stood still and answers from memory
        C-05 | clocks that drift and jump
        C-06 | rows and their place in the log, stored apart
        C-07 | a write sent again after no answer
        C-08 | the first copy of a write that arrives after its repetition and a later write
        C-09 | a vote said before it is on disk
        C-10 | a term or a vote that the disk gives back older than it was
        C-11 | a node that was away long and comes back
        C-12 | survivors who refuse each other's candidacies
        C-13 | a leader that only one node still hears
        C-14 | majorities in a ring
        C-15 | links cut in one direction
        C-16 | a leader whose disk hangs
        C-17 | a follower whose disk hangs
        C-18 | an older append that arrives late
        C-19 | an older acknowledgement that arrives late
        C-20 | a follower that cannot write an entry
        C-21 | a leader that cannot write its own entry
        C-22 | a leader that counts itself too early
        C-23 | leadership handed over, and what can go wrong with it
        C-24 | a new leader that reads before it has committed
        C-25 | reads asked of a follower, who answers none
        C-26 | a snapshot for a log with another history
        C-27 | a snapshot older than the log it arrives at
        C-28 | two snapshots close together
        C-29 | an end inside the installation of a snapshot
        C-30 | a snapshot in pieces from two leaders
        C-31 | a follower that is slower than what is written
        C-32 | replicas that come to different rows
        C-33 | one replica that cannot apply
        C-34 | an entry that nobody can apply
        C-35 | entries and queues without bounds
        C-36 | very many groups that all start at once
        C-37 | a quiet group whose leader is gone
        C-38 | links cut and mended one by one
        C-39 | a link that comes and goes
        C-40 | bytes on a link that are no message
        C-41 | messages of a node's former life
        C-42 | a leader whose clock goes back
        C-43 | a feed read during a partition, from one node and then another
        C-44 | a feed read while its oldest part is forgotten
        C-45 | a change that comes twice in a feed
        C-46 | a token ahead of the replica it is shown to
        C-47 | a reader of a feed that does not keep up
        C-48 | everything at once
        C-49 | a node's heartbeat taken for a group's consent
        C-50 | a replica that stands still on a node that is well
        C-51 | a command that arrives after its deadline
        """

    static let storage = """
        S-01 | a sync of the log that fails once
        S-02 | a sync of the rows that fails
        S-03 | a disk that fills inside a batch of the log
        S-04 | a disk that fills while entries are applied
        S-05 | a full disk on which something must be freed
        S-06 | writes that are done in part
        S-07 | a last batch torn by the power
        S-08 | damage in the middle of the log
        S-09 | damage at its end, which looks like a tear
        S-10 | a sector that cannot be read
        S-11 | a write that lands elsewhere
        S-12 | a read that comes from elsewhere
        S-13 | a write that never happened
        S-14 | one flipped bit
        S-15 | zeros, and files of another length
        S-16 | a file that is gone
        S-17 | a node put back from an older copy | unless the copy was taken within the last start, or nobody that answers heard a later one; then its leader notices once it has restarted itself
        S-18 | names that were never synced
        S-19 | a file that replaces another, cut off at any step
        S-20 | writes that reach the medium in any order
        S-21 | a cut for one group in a log for all
        S-22 | a segment that goes too early
        S-23 | one failed sync that many wait for
        S-24 | a used-again segment with old batches in it
        S-25 | files left beside the rows
        S-26 | an end inside any operation on the rows
        S-27 | every refusal the rows can meet
        S-28 | rows that rot
        S-29 | rows ahead of their log
        S-30 | no memory
        S-31 | no descriptors
        S-32 | a file system that turns read-only
        S-33 | a slow disk
        S-34 | an end inside recovery, again and again
        S-35 | an empty disk in the place of a full one
        S-36 | two processes, one directory
        S-37 | another node's directory
        S-38 | data of a later version
        S-39 | a damaged or foreign backup
        S-40 | data that nobody reads, and that rots
        S-41 | a disk that says it has synced and has not
        S-42 | a start with a long log | its log is bounded; how long it takes is measured, not tested: see the [figures](../benchmarks/storage.md)
        S-43 | the same thing damaged everywhere
        S-44 | different things damaged everywhere
        S-45 | a checkpoint beside a commit
        S-46 | power lost everywhere before a checkpoint
        S-47 | a disk that fills inside a transaction
        """

    static let membership = """
        M-01 | a change by a leader that has committed nothing yet
        M-02 | two changes at once
        M-03 | a change that is taken back
        M-04 | a snapshot and a configuration of different moments
        M-05 | a change that ends at any of its steps
        M-06 | a node that does not know it was removed
        M-07 | a node that comes back without its data
        M-08 | a newcomer that counts before it has anything
        M-09 | a leader that is no voter any more
        M-10 | changes during partitions and ends of processes
        M-11 | a dead node replaced while another is away
        M-12 | nodes that know different placements
        M-13 | a partition that moves while it is written to
        M-14 | placement, partitions and clocks together
        M-15 | how much one newcomer moves
        M-16 | a node that comes and goes
        M-17 | one name for two nodes
        M-18 | two clusters that meet
        M-19 | a majority that is gone for good
        M-20 | removing more than may go
        M-21 | a node emptied before it goes
        M-22 | versions that know different entries
        M-23 | a node at another address
        M-24 | moves under load
        M-25 | members coming and going at random
        """

    static let gateway = """
        G-01 | a length and an encoding at once
        G-02 | lengths that are no numbers
        G-03 | encodings that are not `chunked`
        G-04 | chunks that are none
        G-05 | more framing than body
        G-06 | trailers that change the request
        G-07 | header lines that are none
        G-08 | too many headers
        G-09 | request lines that are none
        G-10 | hosts missing, twice or wrong
        G-11 | many requests in one write
        G-12 | an answer before the body is read
        G-13 | protocols offered or demanded
        G-14 | proxies that read a request otherwise
        G-15 | slow clients, many of them
        G-16 | no descriptor for another connection
        G-17 | JSON at its limits
        G-18 | compressed bodies
        G-19 | headers made of names
        G-20 | requests from other origins
        G-21 | HTTP/2
        G-22 | old and weak TLS
        G-23 | a certificate replaced while connections are open
        G-24 | a gateway that ends inside a request
        G-25 | an outcome that nobody knows | clients get CloudKit's `TRY_AGAIN_LATER`; it has no code for "perhaps"
        G-26 | more requests than can be served | bounds are tested (C-35, G-15); what is done of three times what can be is measured by `cluster-overload/run`
        G-27 | all clients trying again at once | measured by `cluster-overload/run`
        G-28 | a leader that moves inside a request
        G-29 | batches of operations
        G-30 | writers who race for one tag
        G-31 | tokens used where they do not belong
        G-32 | pages while others write
        G-33 | queries as attacks
        G-34 | requests at their limits
        G-35 | names of every kind
        G-36 | numbers and dates at their ends
        G-37 | clients that go away
        G-38 | a server that stops
        G-39 | hours under load | not run
        """

    static let security = """
        X-01 | every route for every caller
        X-02 | credentials in several places
        X-03 | headers that only the inside may set
        X-04 | names that are guessed
        X-05 | fields that only the server sets
        X-06 | a signed request that was changed
        X-07 | a signed request sent again
        X-08 | signatures that are none
        X-09 | a stolen disk
        X-10 | secrets told by time | measured, not tested: see the [figures](../benchmarks/identity.md)
        X-11 | the life of a token
        X-12 | guessing passwords
        X-13 | who has an account
        X-14 | secrets in logs
        X-15 | lines forged in logs
        X-16 | the administrators' side
        X-17 | the peers' port | there is no list of revoked certificates: a node is shut out by removing it; that one has ended is seen by OpenSSL and by no test
        X-18 | tokens to join with
        X-19 | new certificates for all nodes | there is no rotation of the authority
        X-20 | names that become paths | no name does: files are named by numbers
        X-21 | text that becomes a statement
        X-22 | numbers that end the process
        X-23 | nesting without end
        X-24 | keys made to collide | Swift seeds its hashes for each process
        X-25 | peers that send anything
        X-26 | more than one's share
        X-27 | a neighbour that takes everything | partitions and large answers take turns, and that is tested; how long the other waits all the same is measured by `noisy-neighbour/run`: many times as long as alone, not twice
        X-28 | backups that were changed | there are dumps, not backups, and they are not signed
        X-29 | keys in memory
        X-30 | the first start
        X-31 | answers that are kept by others
        X-32 | the trail of what administrators did
        X-33 | a person who is erased
        X-34 | roles that change while they are used
        X-35 | development and production
        X-36 | known flaws of what is linked
        """

    static let operations = """
        O-01 | random kills for an hour | rounds of minutes: the stages `20-crash-rounds` and `40-cluster-rounds`; half an hour of them once, by `48-load` (benchmarks)
        O-02 | power cuts for an hour | in the simulator only (S-46)
        O-03 | restarts one by one
        O-04 | versions exchanged one by one
        O-05 | versions side by side for long
        O-06 | a configuration that is wrong
        O-07 | clocks far apart
        O-08 | next to no processor
        O-09 | a frozen process
        O-10 | a full volume for logs
        O-11 | health that tells the truth
        O-12 | faults that are seen | a move that stands still, damage on the disk and mail that nobody takes are shown by tests of the doctor and of the nodes, not by real ones
        O-13 | one node of three lost, two, all | all: there are no backups yet
        O-14 | dangerous commands | there are no backups to restore yet
        O-15 | a command that is cut off
        O-16 | nodes in containers | without an engine as processes in namespaces; with one it has run in containers
        O-17 | an address that cannot be had
        O-18 | ten times as much of everything | measured, not tested: see the [figures](../benchmarks/node.md)
        O-19 | a state of the past | not built
        O-20 | names in metrics
        """

    /// The faults of which nothing is built: they have no line each.
    static let notBuilt = [
        (
            "A-01 to A-35",
            "assets and their collection. Nodes keep files, alone and in a cluster: see [assets](../internals/assets.md)"
        ), ("P-01 to P-19", "pushes"),
    ]
}
