// Every number that tells one format or meaning from another, on disk or among nodes.
//
// A new number is added here first, and the level of the release that brings it under `since`. Tests
// compare this table with what the decoders take and with what the product makes, and look for gaps
// and duplicates. See `Docs/internals/levels.md` for the steps.

extension NumberFamily {
    // MARK: Rows

    /// ``Table``: the tables of a partition's rows, and what a snapshot may carry.
    package static let table = NumberFamily(
        "table",
        [
            0: "meta", 1: "request", 2: "database", 3: "zone", 4: "record", 5: "feed", 6: "index",
            7: "reference", 8: "job", 9: "schema", 10: "identity", 11: "system", 12: "mail",
            13: "subscription", 14: "event", 15: "asset", 16: "body", 17: "key",
        ])
    /// The first byte of a snapshot: how its frames are laid out.
    package static let snapshotVersion = NumberFamily("snapshot version", [1: "first"])
    /// The kinds of a snapshot's frames. The end says how many rows there were, and their digest.
    package static let snapshotFrame = NumberFamily("snapshot frame", [1: "rows", 2: "end"])
    /// The first byte of a job's key. Jobs are carried out in the order of their keys.
    package static let job = NumberFamily(
        "job",
        [
            1: "cascade", 2: "trim", 3: "purge", 4: "fill indexes", 5: "drop indexes",
            6: "dispatch", 7: "recall", 8: "letter", 9: "audit", 10: "clear fields",
        ])
    /// The first byte of a key in ``Table/identity``; 0 orders the rows that expire.
    package static let identityRow = NumberFamily(
        "identity row",
        [
            1: "account", 2: "session", 3: "address", 4: "counter", 5: "api token",
            6: "server key", 7: "user", 8: "used link", 9: "audit", 10: "listing",
            11: "container", 12: "container listing", 13: "sealing key", 14: "device",
            15: "container key", 16: "push key", 17: "master check", 18: "key rotation",
        ])
    /// The first byte of a key in ``Table/subscription``.
    package static let subscriptionRow = NumberFamily(
        "subscription row",
        [
            0: "watch", 1: "subscription", 2: "interest", 3: "mark", 4: "follower",
            5: "device follower",
        ])
    /// The kinds of an index, as a partition's copy of a schema lists them. A field has one index of
    /// each kind that its definition asks for.
    package static let indexKind = NumberFamily(
        "index kind",
        [1: "values", 2: "elements", 3: "tokens", 4: "cells", 5: "absence", 6: "long texts"])
    /// The first byte of a key in ``Table/system``.
    package static let systemRow = NumberFamily(
        "system row",
        [
            1: "settings", 2: "node", 3: "replicas", 4: "move", 5: "join token", 6: "notice",
            7: "recovery", 8: "withdrawn certificate",
        ])
    /// What the system partition tells every node, in the rows of notices.
    package static let notice = NumberFamily("notice", [1: "view"])

    // MARK: The log

    /// The first byte of an entry.
    package static let entryVersion = NumberFamily("entry version", [1: "first"])
    /// What an entry's payload is: an envelope, a configuration of the group, or nothing.
    package static let entryKind = NumberFamily(
        "entry kind", [1: "command", 2: "mail", 3: "configuration", 4: "noop"])
    /// The first byte of the envelope around a command's body.
    package static let commandVersion = NumberFamily("command version", [1: "first"])
    /// ``Command/Kind``: which state reads the body. The same numbers say which state a query is
    /// for. Only tests and the simulator make the last.
    package static let commandKind = NumberFamily(
        "command kind", [1: "records", 2: "identity", 3: "system", 4: "mail", 5: "reference"])
    /// Who asks: part of the envelope of a command, and of a question about records.
    package static let principalKind = NumberFamily(
        "principal kind",
        [0: "anonymous", 1: "user", 2: "server key", 3: "administrator", 4: "system"])

    /// The first byte of a command to a state of records. What follows is one header for all
    /// operations: number, flags, database, tag floor.
    package static let recordCommandVersion = NumberFamily("record command version", [1: "first"])
    /// The operations on records. The outcome of each begins with the same number, or with 0 where
    /// it was refused.
    package static let recordCommand = NumberFamily(
        "record command",
        [
            1: "modify records", 2: "modify zones", 3: "install schema", 4: "extend schema",
            5: "continue jobs", 6: "erase database", 7: "reserve references", 8: "recover",
            9: "audit links", 10: "modify subscriptions", 11: "follow news", 12: "note buckets",
            13: "modify key values", 14: "modify documents", 15: "pin asset", 16: "hold assets",
            17: "lose body", 18: "find body", 19: "replace body", 20: "put key",
            21: "rewrap key", 22: "retire keys", 23: "reseal fields", 24: "forget outcomes",
        ])
    /// The first byte of a command to the identity state: conditional edits of its rows.
    package static let identityCommandVersion = NumberFamily(
        "identity command version", [1: "first"])
    /// The first byte of a command to the system partition.
    package static let systemCommandVersion = NumberFamily("system command version", [1: "first"])
    /// The changes of the cluster itself: who is in it, and where replicas are.
    package static let systemCommand = NumberFamily(
        "system command",
        [
            1: "form", 2: "add token", 3: "revoke token", 4: "join", 5: "announce", 6: "drain",
            7: "undrain", 8: "remove", 9: "configure", 10: "begin move", 11: "finish move",
            12: "abandon move", 13: "fence move", 14: "raise feature level", 15: "recover",
            16: "withdraw certificate", 17: "restore certificate",
        ])
    /// The first byte of a command about mail among partitions.
    package static let mailCommandVersion = NumberFamily("mail command version", [1: "first"])
    /// A receiver gets mail delivered, and its sender lets go of what was received.
    package static let mailCommand = NumberFamily("mail command", [1: "deliver", 2: "release"])
    /// The body of one mail: what stands in outboxes and travels in deliveries.
    package static let mailVersion = NumberFamily("mail version", [1: "buckets"])
    /// What one bucket of a public database tells another about links between their records.
    package static let mail = NumberFamily(
        "mail",
        [
            1: "confirmed", 2: "removed", 3: "settled", 4: "cascade", 5: "question", 6: "stated",
            7: "inquiry",
        ])
    /// The first byte of a command to the reference state, which tests and the simulator replicate.
    /// The second version says the same as the first. It is the one number above this build's level,
    /// and the example of how a later number is registered.
    package static let registerCommandVersion = NumberFamily(
        "register command version", [1: "first", 2: "second"], since: [2: .next])
    /// The operations of the reference state.
    package static let registerCommand = NumberFamily(
        "register command", [1: "write", 2: "compare and set", 3: "remove"])

    // MARK: Among nodes

    /// The protocols of a link: which messages there are on it, and in which order it begins. Both
    /// sides speak the newest that both know.
    package static let peerProtocol = NumberFamily("peer protocol", [1: "first"])
    /// The first byte of a message on a link. Hello, welcome and refusal never change, so that a
    /// node of any release can be told why it is refused.
    package static let peerMessage = NumberFamily(
        "peer message",
        [
            1: "hello", 2: "welcome", 3: "refusal", 4: "taken", 5: "join", 6: "admission",
            7: "starts", 8: "purpose", 9: "heartbeat", 10: "consensus", 11: "request",
            12: "response", 13: "copy",
        ])
    /// Why a link is refused.
    package static let peerRefusal = NumberFamily(
        "peer refusal",
        [
            1: "other cluster", 2: "other node", 3: "unknown node", 4: "no common protocol",
            5: "fenced", 6: "other data", 7: "not admitted", 8: "older copy",
        ])
    /// The first byte of a message of consensus.
    package static let consensusVersion = NumberFamily("consensus version", [1: "first"])
    /// The messages among the replicas of one group.
    package static let consensusMessage = NumberFamily(
        "consensus message",
        [
            1: "pre-vote request", 2: "pre-vote answer", 3: "vote request", 4: "vote answer",
            5: "append", 6: "append accepted", 7: "append refused", 8: "probe",
            9: "probe answer", 10: "transfer now", 11: "resigned", 12: "snapshot chunk",
            13: "snapshot answer", 14: "digest", 15: "held ask", 16: "held", 17: "acknowledged",
        ])
    /// The first byte of what a node says of itself to every peer, all the time.
    package static let heartbeatVersion = NumberFamily("heartbeat version", [1: "first"])
    /// The first byte of a question for the node itself, and of its answer.
    package static let nodeQuestionVersion = NumberFamily("node question version", [1: "first"])
    /// The questions that one node asks another for the cluster.
    package static let nodeQuestion = NumberFamily(
        "node question",
        [
            1: "view", 2: "observe", 3: "configure", 4: "transfer", 5: "changed", 6: "health",
            7: "offer", 8: "attend", 9: "stirred", 10: "support", 11: "remains",
        ])
    /// The answers to them. A question that only tells something is answered by "done".
    package static let nodeReply = NumberFamily(
        "node reply",
        [1: "view", 2: "observed", 3: "done", 4: "health", 5: "support", 6: "remains"])

    // MARK: Questions to a partition

    /// The first byte of a question to a state of records. Questions and answers are never stored.
    package static let recordQueryVersion = NumberFamily("record query version", [1: "first"])
    /// The questions about records. The answer to each begins with the same number, or with 0 where
    /// it was refused.
    package static let recordQuery = NumberFamily(
        "record query",
        [
            1: "lookup", 2: "zones", 3: "zone page", 4: "zone changes", 5: "database changes",
            6: "page", 7: "schema", 8: "jobs", 9: "work", 10: "judge", 11: "use",
            12: "subscriptions", 13: "news", 14: "waiting devices", 15: "audience",
            16: "buckets", 17: "key values", 18: "key-value devices", 19: "documents",
            20: "asset", 21: "key", 22: "held records", 23: "sealed records",
            24: "lost files", 25: "database files", 26: "asset rows", 27: "older files",
            28: "bodies", 29: "wrapped keys",
        ])
    /// The first byte of a question to the identity state.
    package static let identityQueryVersion = NumberFamily("identity query version", [1: "first"])
    /// Rows by their keys, or the rows of a kind in their order.
    package static let identityQuery = NumberFamily("identity query", [1: "rows", 2: "list"])
    /// The first byte of a question to the system partition.
    package static let systemQueryVersion = NumberFamily("system query version", [1: "first"])
    /// The cluster's view, the notices after one, and the tokens by which nodes join.
    package static let systemQuery = NumberFamily(
        "system query", [1: "view", 2: "notices", 3: "tokens"])

    package static let all: [NumberFamily] = [
        .table, .snapshotVersion, .snapshotFrame, .job, .identityRow, .subscriptionRow, .indexKind,
        .systemRow, .notice,
        .entryVersion, .entryKind, .commandVersion, .commandKind, .principalKind,
        .recordCommandVersion, .recordCommand, .identityCommandVersion, .systemCommandVersion,
        .systemCommand, .mailCommandVersion, .mailCommand, .mailVersion, .mail,
        .registerCommandVersion, .registerCommand, .peerProtocol, .peerMessage, .peerRefusal,
        .consensusVersion, .consensusMessage, .heartbeatVersion, .nodeQuestionVersion,
        .nodeQuestion, .nodeReply, .recordQueryVersion, .recordQuery, .identityQueryVersion,
        .identityQuery, .systemQueryVersion, .systemQuery,
    ]
}
