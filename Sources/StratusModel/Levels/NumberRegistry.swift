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
            13: "subscription", 14: "event", 15: "asset", 16: "body", 17: "key", 18: "share",
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
            19: "brand",
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
        [
            1: "values", 2: "elements", 3: "tokens", 4: "cells", 5: "absence", 6: "long texts",
            7: "creators",
        ])
    /// The first byte of a key in ``Table/system``.
    package static let systemRow = NumberFamily(
        "system row",
        [
            1: "settings", 2: "node", 3: "replicas", 4: "move", 5: "join token", 6: "notice",
            7: "recovery", 8: "withdrawn certificate",
        ])
    /// What the system partition tells every node, in the rows of notices.
    package static let notice = NumberFamily("notice", [1: "view"])

    // MARK: Inside rows, commands and outcomes

    /// ``Environment``.
    package static let environment = NumberFamily(
        "environment",
        [0: "development", 1: "production"])
    /// ``DatabaseScope``.
    package static let databaseScope = NumberFamily(
        "database scope",
        [0: "public", 1: "private", 2: "shared"])
    /// ``ScalarType``: the low half of the byte before a field's value. The high half says whether it
    /// is a list, and whether it is sealed.
    package static let scalarType = NumberFamily(
        "scalar type",
        [
            1: "string", 2: "int64", 3: "double", 4: "timestamp", 5: "bytes", 6: "location",
            7: "reference", 8: "asset",
        ])
    /// ``Reference/Action``.
    package static let referenceAction = NumberFamily(
        "reference action",
        [0: "none", 1: "delete self", 2: "validate"])
    /// ``Schema``: what a grant of a type allows.
    package static let permission = NumberFamily(
        "permission",
        [1: "read", 2: "create", 3: "write"])
    /// ``Comparator``: stands in the predicates of subscriptions, and so in rows.
    package static let comparator = NumberFamily(
        "comparator",
        [
            1: "equals", 2: "not equals", 3: "less than", 4: "less than or equals",
            5: "greater than", 6: "greater than or equals", 7: "near", 8: "contains all tokens",
            9: "contains any tokens", 10: "in", 11: "not in", 12: "begins with",
            13: "not begins with", 14: "list contains", 15: "not list contains",
            16: "list contains all", 17: "not list contains all", 18: "list contains any",
            19: "not list contains any", 20: "list member begins with",
            21: "not list member begins with",
        ])
    /// ``SystemField``: the selectors of a predicate. 0 stands for a declared field and 255 for every
    /// searchable one.
    package static let systemField = NumberFamily(
        "system field",
        [
            1: "record name", 2: "created timestamp", 3: "modified timestamp",
            4: "created user record name", 5: "modified user record name", 6: "share", 7: "parent",
        ])
    /// What one operation of a batch does.
    package static let recordOperation = NumberFamily(
        "record operation",
        [
            1: "create", 2: "update", 3: "force update", 4: "replace", 5: "force replace",
            6: "delete", 7: "force delete",
        ])
    /// What one edit of zones does.
    package static let zoneEdit = NumberFamily(
        "zone edit",
        [1: "create", 2: "delete"])
    /// What a subscription watches.
    package static let subscriptionKind = NumberFamily(
        "subscription kind",
        [1: "query", 2: "zone", 3: "database"])
    /// What an item of the document store is.
    package static let documentKind = NumberFamily(
        "document kind",
        [1: "file", 2: "folder", 3: "package"])
    /// What becomes of an item whose name is taken.
    package static let documentClash = NumberFamily(
        "document clash",
        [1: "refuse", 2: "rename", 3: "replace"])
    /// How far a reference between buckets has come.
    package static let linkState = NumberFamily(
        "link state",
        [1: "reserved", 2: "confirmed", 3: "recalled"])
    /// Whether an index may answer.
    package static let indexState = NumberFamily(
        "index state",
        [1: "building", 2: "ready"])
    /// What a node is in its cluster.
    package static let nodeState = NumberFamily(
        "node state",
        [1: "joining", 2: "active", 3: "draining", 4: "removed"])
    /// Whether a person may sign in.
    package static let accountStatus = NumberFamily(
        "account status",
        [1: "active", 2: "disabled"])
    /// Whether somebody has vouched for a person's address.
    package static let verification = NumberFamily(
        "verification",
        [0: "unproven", 1: "administrator", 2: "proof"])
    /// Whether a container may be used.
    package static let containerState = NumberFamily(
        "container state",
        [1: "active", 2: "erasing", 3: "erased", 4: "resetting"])
    /// The push provider of a device.
    package static let deviceKind = NumberFamily(
        "device kind",
        [1: "apns", 2: "web push"])
    /// The rows of a container's push keys.
    package static let pushKey = NumberFamily(
        "push key",
        [1: "apns", 2: "vapid", 3: "pause", 4: "token"])
    /// How the bytes of a file's chunk are packed.
    package static let chunkCoding = NumberFamily(
        "chunk coding",
        [1: "raw", 2: "zstd"])
    /// What became of a command. Outcomes are remembered in rows until the command's deadline.
    package static let verdict = NumberFamily(
        "verdict",
        [0: "decided", 1: "expired", 2: "unreadable", 3: "none"])
    /// Why one operation of a batch was refused.
    package static let recordRefusal = NumberFamily(
        "record refusal",
        [
            1: "exists", 2: "tag mismatch", 3: "tag missing", 4: "not found", 5: "type unknown",
            6: "type missing", 7: "type mismatch", 8: "field unknown", 9: "field type mismatch",
            10: "too large", 11: "create denied", 12: "write denied",
            13: "reference target missing", 14: "referenced", 15: "too many referrers",
            16: "cross zone reference", 17: "parent missing", 18: "cascade too large",
            19: "atomic failure", 20: "name invalid", 21: "type reserved",
            22: "too many references", 23: "batch too large", 24: "deferred", 25: "database full",
            26: "not reserved", 27: "outbox full", 28: "reference pending", 29: "parent circle",
            30: "share root missing",
            31: "share of record", 32: "participant twice", 33: "share is public",
            34: "too many participants", 35: "participant unknown", 36: "role unavailable",
            37: "shared file", 38: "owner unnameable",
            40: "asset missing", 41: "asset mismatch", 42: "too many assets",
            43: "tree parent missing", 44: "parent of others", 45: "cascade pending",
            90: "field key missing",
        ], hasGaps: true)
    /// Why an edit of a zone was refused.
    package static let zoneRefusal = NumberFamily(
        "zone refusal",
        [
            1: "not found", 2: "name invalid", 3: "custom zones unavailable", 4: "exists",
            5: "no feed", 6: "position expired", 7: "access denied", 8: "too many zones",
            9: "scope fixed",
        ])
    /// ``DeletionReason``: why a zone is gone.
    package static let deletionReason = NumberFamily(
        "deletion reason", [1: "deleted", 2: "purged", 3: "encrypted data reset", 4: "removed"])
    /// ``EncryptionScope``: of what a zone's shares may be.
    package static let encryptionScope = NumberFamily(
        "encryption scope", [1: "per record", 2: "per zone"])
    /// Why a whole request was refused.
    package static let requestRefusal = NumberFamily(
        "request refusal",
        [
            1: "zone not found", 2: "atomic in default zone", 3: "duplicate record",
            4: "schema behind", 5: "access denied", 6: "too many items", 7: "position expired",
            8: "query invalid", 9: "type unknown", 10: "schema conflict", 11: "empty",
            12: "other bucket", 13: "zone elsewhere", 14: "index building",
            15: "share not found", 16: "share full", 17: "too many shared zones",
            40: "upload attached",
            41: "pin too late",
            42: "asset taken", 43: "key missing", 44: "database full", 45: "too much unattached",
        ], hasGaps: true)
    /// ``SharePermission``: what somebody may do in a share.
    package static let sharePermission = NumberFamily(
        "share permission", [0: "none", 1: "read only", 2: "read write"])
    /// ``ShareRole``: what somebody is in a share.
    package static let shareRole = NumberFamily(
        "share role", [1: "owner", 2: "administrator", 3: "user", 4: "public user"])
    /// ``ShareStatus``: whether a participant has accepted.
    package static let shareStatus = NumberFamily("share status", [1: "invited", 2: "accepted"])
    /// ``SharedZoneState``: what a participant's list says of a zone.
    package static let sharedZoneState = NumberFamily(
        "shared zone state", [1: "accepted", 2: "left", 3: "removed", 4: "deleted"])
    /// Whom an invitation names.
    package static let shareIdentity = NumberFamily(
        "share identity", [1: "user", 2: "address", 3: "phone"])
    /// What became of a subscription.
    package static let subscriptionResult = NumberFamily(
        "subscription result",
        [1: "saved", 2: "deleted", 3: "not found", 4: "zone not found", 5: "too many"])
    /// Why a key-value edit was refused.
    package static let keyValueRefusal = NumberFamily(
        "key-value refusal",
        [1: "key invalid", 2: "value too large", 3: "store full", 4: "too many keys"])
    /// Why an edit of documents was refused.
    package static let documentRefusal = NumberFamily(
        "document refusal",
        [
            1: "not found", 2: "name invalid", 3: "stays local", 4: "name taken",
            5: "folder not found", 6: "not a file", 7: "is root", 8: "circle", 9: "too deep",
            10: "too many items", 11: "stale", 12: "too many versions", 13: "content too large",
            14: "database full", 15: "id invalid", 16: "version not found", 17: "atomic failure",
            18: "locked", 19: "lock not found", 20: "asset missing", 21: "not a package",
            22: "versions wait",
        ])
    /// What became of a file that is sealed anew.
    package static let replacedBody = NumberFamily(
        "replaced body",
        [
            1: "replaced", 2: "gone", 3: "changed", 4: "key missing", 5: "late", 6: "taken",
            7: "differs",
        ])
    /// Why the cluster was not changed.
    package static let systemRefusal = NumberFamily(
        "system refusal",
        [
            1: "not allowed", 2: "not formed", 3: "already formed", 4: "bad request",
            5: "unknown node", 6: "node removed", 7: "name taken", 8: "address taken",
            9: "token unknown", 10: "token expired", 11: "token used", 12: "another directory",
            13: "feature level too low", 14: "too few nodes", 15: "last node", 16: "holds replicas",
            17: "move in progress", 18: "no such move", 19: "move impossible", 20: "too many",
        ])

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
            25: "join share", 26: "leave shares", 27: "note shared zone",
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
            18: "snapshot untrue",
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

    /// What a link is for.
    package static let peerPurpose = NumberFamily(
        "peer purpose",
        [0: "ordinary", 1: "bulk"])
    /// Why a node takes no copy.
    package static let copyRefusal = NumberFamily(
        "copy refusal",
        [
            1: "no replica", 2: "nearly full", 3: "busy", 4: "incomplete", 5: "failed",
            6: "too large",
        ])

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
            28: "bodies", 29: "wrapped keys", 30: "share by link", 31: "share detail",
            32: "shared zones",
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
        .systemRow, .notice, .environment, .databaseScope, .scalarType, .referenceAction,
        .permission, .comparator, .systemField, .recordOperation, .zoneEdit, .subscriptionKind,
        .documentKind, .documentClash, .linkState, .indexState, .nodeState, .accountStatus,
        .verification,
        .containerState, .deviceKind, .pushKey, .chunkCoding, .verdict, .recordRefusal,
        .zoneRefusal, .deletionReason, .encryptionScope, .requestRefusal, .sharePermission,
        .shareRole, .shareStatus,
        .sharedZoneState, .shareIdentity, .subscriptionResult, .keyValueRefusal, .documentRefusal,
        .replacedBody, .systemRefusal,
        .entryVersion, .entryKind, .commandVersion, .commandKind, .principalKind,
        .recordCommandVersion, .recordCommand, .identityCommandVersion, .systemCommandVersion,
        .systemCommand, .mailCommandVersion, .mailCommand, .mailVersion, .mail,
        .registerCommandVersion, .registerCommand, .peerProtocol, .peerMessage, .peerRefusal,
        .peerPurpose, .copyRefusal,
        .consensusVersion, .consensusMessage, .heartbeatVersion, .nodeQuestionVersion,
        .nodeQuestion, .nodeReply, .recordQueryVersion, .recordQuery, .identityQueryVersion,
        .identityQuery, .systemQueryVersion, .systemQuery,
    ]
}
