// Every number that tells one format or meaning from another, on disk or among nodes.
//
// A new number is added here first: under `later`, with the level of the release that brings it.
// Tests compare this table with what the decoders take, and look for gaps and duplicates. See
// `Docs/internals/levels.md` for the steps.

extension NumberFamily {
    // MARK: Rows

    /// ``Table``: also what a snapshot may carry.
    package static let table = NumberFamily(
        "table",
        [
            0: "meta", 1: "request", 2: "database", 3: "zone", 4: "record", 5: "feed", 6: "index",
            7: "reference", 8: "job", 9: "schema", 10: "identity", 11: "system", 12: "mail",
        ],
        later: [
            (.two, [13: "subscription", 14: "event", 16: "asset", 17: "body", 18: "key"])
        ], blocks: [16])
    package static let snapshotVersion = NumberFamily("snapshot version", [1: "first"])
    package static let snapshotFrame = NumberFamily("snapshot frame", [1: "rows", 2: "end"])
    /// The first byte of a job's key.
    package static let job = NumberFamily(
        "job",
        [
            1: "cascade", 2: "trim", 3: "purge", 4: "fill indexes", 5: "drop indexes",
            0x40: "dispatch", 0x41: "recall", 0x42: "letter", 0x43: "audit",
        ], later: [(.two, [6: "purge with assets"])], blocks: [0x40])
    /// The first byte of a key in ``Table/identity``; 0 orders the rows that expire.
    package static let identityRow = NumberFamily(
        "identity row",
        [
            1: "account", 2: "session", 3: "address", 4: "counter", 5: "api token",
            6: "server key", 7: "user", 8: "used link", 9: "audit", 10: "listing",
            11: "container", 12: "container listing", 13: "sealing key",
        ],
        later: [
            (
                .two,
                [
                    14: "device", 15: "container key", 40: "push key", 110: "master check",
                    120: "key rotation",
                ]
            )
        ], blocks: [40, 110, 120])
    /// The first byte of a key in ``Table/subscription``.
    package static let subscriptionRow = NumberFamily(
        "subscription row", [:],
        later: [
            (
                .two,
                [
                    0: "watch", 1: "subscription", 2: "interest", 3: "mark", 4: "follower",
                    5: "device follower",
                ]
            )
        ])
    /// The kinds of an index, as a partition's copy of a schema lists them.
    package static let indexKind = NumberFamily(
        "index kind",
        [1: "values", 2: "elements", 3: "tokens", 4: "cells", 5: "absence"],
        later: [(.two, [6: "long texts"])])
    /// The first byte of a key in ``Table/system``.
    package static let systemRow = NumberFamily(
        "system row",
        [
            1: "settings", 2: "node", 3: "replicas", 4: "move", 5: "join token", 6: "notice",
            7: "recovery",
        ], later: [(.two, [60: "withdrawn certificate"])], blocks: [60])
    package static let notice = NumberFamily(
        "notice", [1: "view", 2: "container", 3: "revocation"])

    // MARK: The log

    package static let entryVersion = NumberFamily("entry version", [1: "first"])
    package static let entryKind = NumberFamily(
        "entry kind", [1: "command", 2: "mail", 3: "configuration", 4: "noop"])
    package static let commandVersion = NumberFamily("command version", [1: "first"])
    package static let commandKind = NumberFamily(
        "command kind",
        [1: "records", 2: "identity", 3: "system", 4: "mail", 255: "reference"], blocks: [255])
    /// Part of the envelope of a command.
    package static let principalKind = NumberFamily(
        "principal kind",
        [0: "anonymous", 1: "user", 2: "server key", 3: "administrator", 4: "system"])

    package static let recordCommandVersion = NumberFamily("record command version", [1: "first"])
    package static let recordCommand = NumberFamily(
        "record command",
        [
            1: "modify records", 2: "modify zones", 3: "install schema", 4: "extend schema",
            5: "continue jobs", 6: "erase database", 7: "reserve references, first edition",
            8: "recover", 9: "reserve references, second edition", 10: "audit links",
        ],
        later: [
            (
                .two,
                [
                    11: "recover, second edition", 12: "modify subscriptions",
                    13: "follow news", 20: "pin asset", 21: "hold assets", 22: "put key",
                    25: "lose body", 28: "modify records with assets", 40: "modify key values",
                    44: "modify documents", 50: "placed", 51: "note buckets",
                    60: "modify records with words", 61: "modify records with words and assets",
                    62: "install schema with long texts", 63: "extend schema with long texts",
                    110: "reseal fields", 120: "rewrap key", 122: "forget outcomes",
                    131: "recover, third edition", 150: "find body",
                    151: "replace body", 152: "retire keys",
                ]
            )
        ], blocks: [20, 25, 28, 40, 44, 50, 60, 110, 120, 122, 131, 150])
    package static let identityCommandVersion = NumberFamily(
        "identity command version", [1: "first"])
    package static let systemCommandVersion = NumberFamily("system command version", [1: "first"])
    package static let systemCommand = NumberFamily(
        "system command",
        [
            1: "form", 2: "add token", 3: "revoke token", 4: "join", 5: "announce", 6: "drain",
            7: "undrain", 8: "remove", 9: "configure", 10: "begin move", 11: "finish move",
            12: "abandon move", 13: "notify", 14: "raise feature level", 15: "fence move",
            16: "recover",
        ],
        later: [
            (
                .two,
                [
                    17: "form around a converted node", 60: "withdraw certificate",
                    61: "restore certificate",
                ]
            )
        ], blocks: [60])
    package static let mailCommandVersion = NumberFamily("mail command version", [1: "first"])
    package static let mailCommand = NumberFamily(
        "mail command", [1: "deliver", 2: "release", 3: "begin epoch"])
    /// The body of one mail: what stands in outboxes and travels in deliveries.
    package static let mailVersion = NumberFamily("mail version", [1: "buckets"])
    package static let mail = NumberFamily(
        "mail",
        [
            1: "confirmed", 2: "removed", 3: "settled", 4: "cascade", 5: "question", 6: "stated",
            7: "inquiry",
        ])
    /// The versions of commands of the reference state that tests and the simulator replicate.
    package static let registerCommandVersion = NumberFamily(
        "register command version", [1: "first"], later: [(.two, [2: "second"])])
    package static let registerCommand = NumberFamily(
        "register command", [1: "write", 2: "compare and set", 3: "remove"])

    // MARK: Among nodes

    package static let peerProtocol = NumberFamily(
        "peer protocol", [1: "first", 2: "starts"], later: [(.two, [3: "purposes"])])
    package static let peerMessage = NumberFamily(
        "peer message",
        [
            1: "hello without data", 2: "welcome without data", 3: "refusal", 4: "taken",
            5: "hello", 6: "welcome", 7: "join", 8: "admission", 9: "starts", 16: "heartbeat",
            32: "consensus", 48: "request", 49: "response",
        ], later: [(.two, [10: "purpose", 64: "copy"])], blocks: [16, 32, 48, 64])
    package static let peerRefusal = NumberFamily(
        "peer refusal",
        [
            1: "other cluster", 2: "other node", 3: "unknown node", 4: "no common protocol",
            5: "fenced", 6: "other data", 7: "not admitted", 8: "older copy",
        ])
    package static let consensusVersion = NumberFamily("consensus version", [1: "first"])
    package static let consensusMessage = NumberFamily(
        "consensus message",
        [
            1: "pre-vote request", 2: "pre-vote answer", 3: "vote request", 4: "vote answer",
            5: "append", 6: "append accepted", 7: "append refused", 8: "probe",
            9: "probe answer", 10: "transfer now", 11: "resigned", 12: "snapshot chunk",
            13: "snapshot answer",
        ], later: [(.two, [14: "digest", 15: "held ask", 16: "held", 60: "acknowledged"])],
        blocks: [60])
    package static let heartbeatVersion = NumberFamily("heartbeat version", [1: "first"])
    package static let nodeQuestionVersion = NumberFamily("node question version", [1: "first"])
    package static let nodeQuestion = NumberFamily(
        "node question",
        [
            1: "view", 2: "observe", 3: "configure", 4: "transfer", 5: "changed", 6: "health",
            7: "offer",
        ], later: [(.two, [8: "attend", 9: "stirred", 32: "support", 121: "remains"])],
        blocks: [32, 121])
    package static let nodeReply = NumberFamily(
        "node reply", [1: "view", 2: "observed", 3: "done", 4: "health"],
        later: [(.two, [32: "support", 121: "remains"])], blocks: [32, 121])

    // MARK: Questions to a partition

    package static let recordQueryVersion = NumberFamily("record query version", [1: "first"])
    package static let recordQuery = NumberFamily(
        "record query",
        [
            1: "lookup", 2: "zones", 3: "zone changes", 4: "database changes", 5: "page",
            6: "schema", 7: "jobs", 8: "judge", 9: "use", 10: "work",
        ],
        later: [
            (
                .two,
                [
                    11: "page by a schema's version", 12: "subscriptions", 13: "news",
                    20: "asset", 21: "key", 22: "judge with assets",
                    40: "news of a device", 41: "waiting devices", 44: "documents",
                    50: "buckets", 60: "zone page", 70: "key values", 71: "key-value devices",
                    100: "held records", 110: "sealed records", 111: "lost files",
                    120: "wrapped keys", 123: "asset rows", 126: "database files",
                    140: "audience", 150: "bodies", 152: "older files",
                    153: "judge by a schema to come",
                ]
            )
        ], blocks: [20, 40, 44, 50, 60, 70, 100, 110, 120, 123, 126, 140, 150, 152])
    package static let identityQueryVersion = NumberFamily("identity query version", [1: "first"])
    package static let identityQuery = NumberFamily("identity query", [1: "rows", 2: "list"])
    package static let systemQueryVersion = NumberFamily("system query version", [1: "first"])
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
