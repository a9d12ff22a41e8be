import StratusCommandLine
import StratusModel
import StratusRuntime

extension ConfigurationKey {
    /// Describes each section of the file, in the order of the file.
    package static let sections: [(path: String, text: String)] = [
        ("client", "The listener for CloudKit Web Services: apps, scripts and web pages."),
        ("client.tls", "TLS for clients. It is off without a certificate."),
        (
            "admin",
            "The administrators' listener. It has its own address; clients' ports never reach it."
        ),
        ("admin.tls", "TLS for administrators."),
        ("metrics", "A listener for metrics alone."),
        ("signIn", "The pages where people sign in."),
        (
            "signIn.mail",
            "The server that takes e-mail to people: links to prove an address and to choose a "
                + "password. Without it nothing is sent."
        ),
        ("push", "Sending to Apple's push service and to Web Push services."),
        ("push.apns", "Where Apple's push service is."),
        ("cluster", "The node among its peers. Without `cluster.peers` it works alone."),
        (
            "cluster.tls",
            "TLS 1.3 between peers, both sides with a certificate of the cluster's authority. "
                + "`stratus cluster certificates` makes them."
        ),
        ("storage", "What the node does with its disk in the background."),
        ("assets", "Files that records hold."),
        ("keys", "The keys that files and encrypted fields are sealed under."),
        ("log", "What the node writes to standard error."),
        ("limits", "What one client, one request or one record may use."),
        ("stop", "How the node stops."),
    ]

    /// Every key, in the order of the file.
    package static let all: [ConfigurationKey] = [
        ConfigurationKey(
            "dataDirectory", .path, .text("/var/lib/stratus"),
            "Where the node keeps everything it must not lose. One node per directory; made "
                + "when absent. It must be on a local disk, because network file systems do not "
                + "keep the promises of a sync."),
        ConfigurationKey(
            "loopCount", .integer(0...256), .integer(0),
            "The number of event loops, each on a thread of its own. 0: one for each core."),
        ConfigurationKey(
            "development", .bool, .bool(false),
            "Accepts any well-formed API token for any container's development environment, "
                + "and any web-auth token for the development user, as `stratus dev` does. Never "
                + "set this where others can reach the node."),
        ConfigurationKey(
            "developmentSchema", .choice(["strict", "justInTime"]), .text("strict"), reloads: true,
            "What a save may do in the development environment. `strict`: every type and "
                + "field must exist, as in Apple's web services. `justInTime`: a save creates the "
                + "types and fields it needs."),
        ConfigurationKey(
            "developmentZoneBuckets", .integer(1...64), .integer(1),
            "With `development`: how many buckets the custom zones of each private database are "
                + "spread over, in containers that are used without having been created. A power "
                + "of two; of another number the next smaller power counts. 1: they are whole."),
        ConfigurationKey(
            "developmentUsers", .choice(["any", "strict"]), .text("any"),
            "Which web-auth tokens are accepted with `development`. `any`: any text stands "
                + "for the development user. `strict`: only `development`, tokens that begin with "
                + "`stratus-user-`, and those of the sign-in pages; any other is answered 421, "
                + "like an expired one."),

        ConfigurationKey(
            "client.listen", .list(.address), .list([.text("127.0.0.1:8080")]),
            "Where clients connect. Port 0 lets the system choose one; the log says which."),
        ConfigurationKey(
            "client.allowPlain", .bool, .bool(false),
            "Allows an address that other machines can reach without TLS. Set this only if "
                + "something in front of the node speaks TLS, because tokens travel in the URL."),
        ConfigurationKey(
            "client.allowDevelopment", .bool, .bool(false),
            "Allows `development` on an address that other machines can reach. Nobody's "
                + "credentials are checked, so set this only if something else keeps others out, "
                + "such as a container's port that is published on the loopback."),
        ConfigurationKey(
            "client.extensions", .bool, .bool(true), reloads: true,
            "Whether answers have keys that Apple's service does not have: what an error means "
                + "exactly, the server's record beside a conflict, why a zone was deleted. False "
                + "is for clients that stop at a key they do not know."),
        ConfigurationKey(
            "client.http2", .bool, .bool(false),
            "Offers HTTP/2 beside HTTP/1.1 to clients that connect over TLS."),
        ConfigurationKey(
            "client.plainHTTP2", .bool, .bool(false),
            "Serves connections without TLS that begin with HTTP/2's preface. For a load "
                + "balancer that speaks TLS with clients and HTTP/2 with the node."),
        ConfigurationKey(
            "client.tls.certificateFile", .file, nil, reloads: true,
            "The certificate chain, PEM, the node's own certificate first. Read again on SIGHUP; "
                + "connections that are open keep the old one."),
        ConfigurationKey(
            "client.tls.keyFile", .secretFile, nil, reloads: true,
            "The private key of the certificate, PEM."),
        ConfigurationKey(
            "client.tls.minimumVersion", .choice(["1.2", "1.3"]), .text("1.3"),
            "The oldest version of TLS to speak. 1.2 is for clients from before 2019."),

        ConfigurationKey(
            "admin.listen", .address, .text("127.0.0.1:8081"),
            "Where `stratusctl` and Prometheus connect. A Unix socket (`unix:/run/stratus/admin`) is "
                + "guarded by the permissions of its directory as well."),
        ConfigurationKey(
            "admin.tokenFile", .path, nil,
            "The file with the administrators' token, made at the first start with mode 0600. "
                + "Unless set, it is `admin.token` in the data directory. To rotate the token, "
                + "replace the file's contents and send SIGHUP."),
        ConfigurationKey(
            "admin.openMetrics", .bool, .bool(false),
            "Serves `/metrics` without the token, for a Prometheus that cannot send one."),
        ConfigurationKey(
            "admin.tls.certificateFile", .file, nil, reloads: true,
            "The certificate chain for administrators, PEM. Needed as soon as other machines can "
                + "reach `admin.listen`."),
        ConfigurationKey(
            "admin.tls.keyFile", .secretFile, nil, reloads: true,
            "The private key of that certificate, PEM."),
        ConfigurationKey(
            "admin.tls.clientAuthorityFile", .file, nil, reloads: true,
            "Certificates of an authority, PEM. A client that shows a certificate signed by "
                + "it needs no token."),

        ConfigurationKey(
            "metrics.listen", .list(.address), .list([]),
            "Where Prometheus connects from other machines: addresses that serve `/metrics`, `/healthz` and "
                + "`/readyz` to everybody, and nothing else. Metrics tell how many of what there is, and never "
                + "what. Without one, `admin.listen` serves them."),

        ConfigurationKey(
            "signIn.url", .text, nil,
            "Where people reach the sign-in pages, such as `https://auth.example.org`. The "
                + "`redirectURL` of a 421 begins with it, and the pages' forms must come from this "
                + "origin, whatever `Host` a proxy sends. Unset: the address that the request came "
                + "to."),
        ConfigurationKey(
            "signIn.signUp", .bool, .bool(false),
            "Whether anybody may make an account. If not, `stratusctl user add` makes them. "
                + "In development everybody may."),
        ConfigurationKey(
            "signIn.mail.server", .text, nil,
            "The e-mail server, as `HOST:PORT`. With it signing up takes a proof of the address, "
                + "and people can ask for a link to choose a new password. Needs `signIn.url`, "
                + "which the links begin with."),
        ConfigurationKey(
            "signIn.mail.security", .choice(["implicit", "starttls"]), .text("implicit"),
            "When TLS begins: at once, as port 465 wants it, or by STARTTLS, as port 587 does. "
                + "Nothing is sent without TLS."),
        ConfigurationKey(
            "signIn.mail.from", .text, nil, "The address that messages come from."),
        ConfigurationKey(
            "signIn.mail.user", .text, nil,
            "The name by which the node signs in at the server. Unset: it does not."),
        ConfigurationKey(
            "signIn.mail.passwordFile", .secretFile, nil, "The password to it."),
        ConfigurationKey(
            "signIn.mail.authorityFile", .file, nil,
            "Certificates of authorities, PEM, that are believed about the server instead of the "
                + "system's."),
        ConfigurationKey(
            "push.enabled", .bool, .bool(true),
            "Whether this node sends pushes for the databases that it leads. Keys come from "
                + "`stratusctl push`; without one, nothing is sent."),
        ConfigurationKey(
            "push.authorityFile", .file, nil,
            "Certificates of authorities, PEM, that are believed about push providers instead of "
                + "the system's. For stand-ins and for proxies that look into TLS."),
        ConfigurationKey(
            "push.allowPrivateAddresses", .bool, .bool(false),
            "Takes Web Push endpoints at any host, port and address, and sends there. For "
                + "stand-ins only: with it, whoever may register makes the node connect to your "
                + "own network."),
        ConfigurationKey(
            "push.apns.productionURL", .text, .text("https://api.push.apple.com"),
            "The host for devices that run apps from a store."),
        ConfigurationKey(
            "push.apns.developmentURL", .text, .text("https://api.sandbox.push.apple.com"),
            "The host for devices that run development builds."),
        ConfigurationKey(
            "cluster.name", .text, nil,
            "This node's name: lower-case letters, digits and `-`. It is one of the names in "
                + "`cluster.peers`, stands in the node's certificate, and never changes."),
        ConfigurationKey(
            "cluster.peers", .list(.text), .list([]),
            "The nodes that form the cluster, this one too, each as `NAME@HOST:PORT`. Give "
                + "every node the same list: the cluster's identity comes from it and the secret, "
                + "and nodes with different lists refuse each other. Once the cluster is formed, "
                + "only addresses are read from here: a peer is looked for at this address and at "
                + "the one that it announced."),
        ConfigurationKey(
            "cluster.join", .list(.text), .list([]),
            "Instead of `cluster.peers`: members of the cluster that this node is to join, "
                + "each as `NAME@HOST:PORT`. It is enough if one of them answers. Used at the "
                + "first start only."),
        ConfigurationKey(
            "cluster.joinTokenFile", .path, nil,
            "The file with the token of `stratusctl cluster join-token`. It is read at the "
                + "first start only, admits one node once, and may be removed then."),
        ConfigurationKey(
            "cluster.address", .address, nil,
            "Where peers reach this node, unless `cluster.peers` says it. After a change, the "
                + "node tells the cluster the new address at its next start."),
        ConfigurationKey(
            "cluster.weight", .integer(1...100_000), .integer(100),
            "How much data this node holds, relative to the others, when it joins. Later "
                + "`stratusctl node weight` changes it."),
        ConfigurationKey(
            "cluster.rack", .text, nil,
            "The rack of this node when it joins: nodes that may fail together. The nodes of "
                + "one rack hold as few replicas of one partition as possible."),
        ConfigurationKey(
            "cluster.listen", .address, nil,
            "Where the node listens for peers. Unless set, it is this node's address in "
                + "`cluster.peers`, or `cluster.address`."),
        ConfigurationKey(
            "cluster.secretFile", .secretFile, nil,
            "The cluster's secret, 16 characters at least, the same on every node."),
        ConfigurationKey(
            "cluster.partitionCount", .integer(1...4_096), .integer(256),
            "The number of partitions that the data is divided into: a power of two, the same "
                + "on every node. It is read at the first start only and never changes."),
        ConfigurationKey(
            "cluster.tls.certificateFile", .file, nil, reloads: true,
            "The node's certificate, PEM. Its name must be that of `cluster.name`."),
        ConfigurationKey(
            "cluster.tls.keyFile", .secretFile, nil, reloads: true,
            "The private key of that certificate, PEM."),
        ConfigurationKey(
            "cluster.tls.authorityFile", .file, nil, reloads: true,
            "The certificate of the cluster's authority, PEM."),

        ConfigurationKey(
            "storage.scrubRate", .size(0...1 << 30), .size(.mebibytes(4)), reloads: true,
            "How much is read back from the disk in a second to find damage. The node reads "
                + "the entries of the log and the rows, one partition after another, and waits an "
                + "hour after each round. Damaged data is replaced from the other replicas. 0: "
                + "nothing is read back."),

        ConfigurationKey(
            "storage.snapshotRate", .size(0...1 << 40), .size(.mebibytes(32)), reloads: true,
            "How much is written or read in a second to copy partitions between nodes, all "
                + "copies together. A copy is made piece by piece, at the sender first, then at "
                + "the receiver; other work continues in between. 0: no limit."),

        ConfigurationKey(
            "storage.retainedLogSizeMax", .size(0...1 << 40), .size(.mebibytes(4_096)),
            "How large the node's log may grow on disk to keep the entries that followers "
                + "still need, all partitions together. A follower that was away, lost its rows or "
                + "joins then catches up while others write. Beyond this size, or while less than "
                + "`storage.reserve` is free, a follower that is behind is given up and gets a "
                + "snapshot."),

        ConfigurationKey(
            "storage.retainedSizeMax", .size(0...1 << 40), .size(.mebibytes(2_048)),
            "The same for one partition. Once half of it is used, the partition accepts "
                + "commands more slowly while the follower catches up, and answers the rest with "
                + "TRY_AGAIN_LATER. 0: only the entries after a snapshot that is being sent are "
                + "kept for followers."),

        ConfigurationKey(
            "storage.reserve", .size(0...1 << 50), .size(.mebibytes(256)), reloads: true,
            "How much must stay free on the disk. Space that deletions freed in a partition's "
                + "own file counts as free. A partition with less than this on most of its "
                + "replicas answers requests that add data with TRY_AGAIN_LATER; deletions "
                + "continue. Use the same value on every node. 0: no reserve."),

        ConfigurationKey(
            "storage.atRest", .bool, .bool(false),
            "Seals the log, the rows and all else in the data directory, so that a disk without "
                + "the master key shows nothing. It counts when a data directory is made, and a "
                + "node with another value than its directory does not start: `stratus "
                + "data-directory seal` and `unseal` convert the directory of a stopped node. "
                + "Each node of a cluster may have its own value. Whoever copies the directory with "
                + "its key can read it, and without `keys.sealingMaster` a node alone keeps the key "
                + "there, as `token.key`: name a master key outside it. The start, `stratus config "
                + "check` and `stratusctl doctor` warn until then."),

        ConfigurationKey(
            "assets.url", .text, nil, reloads: true,
            "Where clients reach uploads and downloads, as `https://assets.example.org`. Unset: the address that "
                + "the request for the URL came to."),
        ConfigurationKey(
            "assets.sizeMax", .size(1...64 << 30), .size(.mebibytes(1_024)), reloads: true,
            "The largest file. Beyond it the answer is 413."),
        ConfigurationKey(
            "assets.unattachedSizeMax", .size(1...1 << 50), .size(.mebibytes(10_240)),
            reloads: true,
            "What files may have together that were uploaded to one database and that no record holds."
        ),
        ConfigurationKey(
            "assets.graceTime", .duration(.zero ... .seconds(30 * 86_400)),
            .duration(.seconds(3_600)),
            reloads: true,
            "How long a file stays after the last record that held it is gone: links that were given out work "
                + "for as long."),
        ConfigurationKey(
            "assets.linkLife", .duration(.seconds(1) ... .seconds(7 * 86_400)),
            .duration(.seconds(3_600)), reloads: true,
            "How long a download URL is good, rounded up to five minutes."),
        ConfigurationKey(
            "assets.deduplicate", .bool, .bool(true), reloads: true,
            "Keeps equal files of one database once. In a public database only files of the same user."
        ),
        ConfigurationKey(
            "assets.compression", .bool, .bool(true), reloads: true,
            "Compresses files that gain by it before they are sealed."),
        ConfigurationKey(
            "assets.workers", .integer(0...256), .integer(0),
            "Threads that hash, compress and seal. 0: one for each core but one."),
        ConfigurationKey(
            "assets.bufferSizeMax", .size(16 << 20...1 << 40), .size(.mebibytes(256)),
            "The memory of all uploads and downloads together. One user has an eighth of it at most. Who finds "
                + "no room waits, and after ten seconds is answered 503."),
        ConfigurationKey(
            "assets.compactionRate", .size(0...1 << 40), .size(.mebibytes(32)), reloads: true,
            "How much of files is copied in a second to give back the room of those that are gone. 0: as much "
                + "as can be."),
        ConfigurationKey(
            "assets.repairRate", .size(0...1 << 40), .size(.mebibytes(32)), reloads: true,
            "How much of files a node of a cluster fetches from the others in a second, where its own copies are "
                + "missing or damaged. A rotation of keys reads and writes each file at this rate too. 0: as much "
                + "as can be."),

        ConfigurationKey(
            "keys.masterFiles", .list(.text), .list([]),
            "Files with master keys, each as `VERSION=PATH`: 64 hexadecimal digits that only the "
                + "owner and group can read. They wrap the keys of files and encrypted fields. Keep "
                + "them off the disk with the data. Every node needs the same."),
        ConfigurationKey(
            "keys.sealingMaster", .integer(0...1_000_000), .integer(0),
            "The version of the master key that wraps new keys. 0 stands for the key that comes "
                + "from `token.key` or the cluster's secret. Change it once every node has the "
                + "file, then run `stratusctl encryption-key rotate`."),
        ConfigurationKey(
            "keys.retiredMasters", .list(.text), .list([]),
            "Versions of master keys that wrap nothing any more. A node that was started with a "
                + "key before needs it, unless its version is listed here."),
        ConfigurationKey(
            "log.level", .choice(LogLevel.allCases.map(\.name)), .text("info"), reloads: true,
            "The lowest level that is written. `stratusctl log-level` changes it too, until "
                + "the next SIGHUP."),
        ConfigurationKey(
            "log.format", .choice(["auto", "terminal", "json"]), .text("auto"),
            "`auto`: readable text on a terminal, and JSON lines otherwise."),
        ConfigurationKey(
            "log.access", .bool, .bool(true), reloads: true,
            "Writes one line for every request: who, what, how long, how much. It never holds "
                + "a token or a record's contents."),

        ConfigurationKey(
            "limits.requestSizeMax", .size(1 << 10...16 << 20), .size(.mebibytes(16)),
            reloads: true,
            "The size of one request's body. Beyond it the answer is 413 QUOTA_EXCEEDED."),
        ConfigurationKey(
            "limits.bufferedBodySizeMax", .size(16 << 20...1 << 40), .size(.mebibytes(256)),
            "The memory for the bodies of all requests that are being read or answered. The "
                + "part of a body beyond 1 MiB counts three times, and large bodies may take three "
                + "quarters of the memory. Beyond it the answer is 503 TRY_AGAIN_LATER."),
        ConfigurationKey(
            "limits.bufferedAnswerSizeMax", .size(32 << 20...1 << 40), .size(.mebibytes(256)),
            "The memory for what was read to answer requests, until their clients have "
                + "received it. Large answers may take three quarters of it. Beyond it the answer "
                + "is 503 TRY_AGAIN_LATER."),
        ConfigurationKey(
            "limits.operationCountMax", .integer(1...200), .integer(200), reloads: true,
            "The number of operations in one modify, names in one lookup, and records in one "
                + "answer. CloudKit's limit is 200."),
        ConfigurationKey(
            "limits.recordSizeMax", .size(1 << 10...16 << 20), .size(.mebibytes(1)), reloads: true,
            "The size of one record's fields, without assets. CloudKit's limit is 1 MiB."),
        ConfigurationKey(
            "limits.keyValueSizeMax", .size(1 << 10...8 << 20), .size(.mebibytes(1)), reloads: true,
            "The bytes that the values of one user's key-value store may have in all, and each of "
                + "them alone. A change beyond it is refused, and the key keeps its value. Use the "
                + "same value on every node."),
        ConfigurationKey(
            "limits.privateDatabaseSizeMax", .size(0...1 << 50), .size(ByteCount(0)), reloads: true,
            "The quota of one user's private records in one container. A save beyond it is "
                + "refused with 413 QUOTA_EXCEEDED; existing records stay, and may shrink. Use the "
                + "same value on every node. 0: no quota."),
        ConfigurationKey(
            "limits.publicDatabaseSizeMax", .size(0...1 << 50), .size(ByteCount(0)), reloads: true,
            "The quota of a container's public records. A public database with buckets may "
                + "exceed it by what is saved in about a second. 0: no quota."),
        ConfigurationKey(
            "limits.queryTouchCountMax", .integer(100...1_000_000), .integer(10_000), reloads: true,
            "The work that one page of a query may take. One unit is a seek, an index row, 2 "
                + "KiB of stored records, 32 bytes of text that is split into words, or 16 "
                + "comparisons. Beyond it the page ends early, with a continuation marker."),
        ConfigurationKey(
            "limits.queryOperandCountMax", .integer(1...10_000), .integer(250), reloads: true,
            "The number of values in one IN, ..._ANY or ..._ALL filter of a query, and of "
                + "words in one search. A query with more is refused with BAD_REQUEST."),
        ConfigurationKey(
            "limits.commandDeadline", .duration(.seconds(1) ... .seconds(1_200)),
            .duration(.seconds(30)), reloads: true,
            "How long a save may wait to be applied before the answer is TRY_AGAIN_LATER."),
        ConfigurationKey(
            "limits.requestRateMax", .integer(0...1_000_000), .integer(0), reloads: true,
            "Requests per second of one user or key at this node, or of one address without a "
                + "signed-in user. A burst may be twice as large. Beyond it the answer is 429 "
                + "THROTTLED with the time to wait. 0: no limit."),
        ConfigurationKey(
            "limits.containerRequestRateMax", .integer(0...1_000_000), .integer(0), reloads: true,
            "The same for one container and environment, over all its callers. 0: no limit."),
        ConfigurationKey(
            "limits.tokenRequestRateMax", .integer(0...1_000_000), .integer(0), reloads: true,
            "The same for one API token: all users of one app or page together. 0: no limit."),
        ConfigurationKey(
            "limits.addressRequestRateMax", .integer(0...1_000_000), .integer(0), reloads: true,
            "The same for one address (an IPv6 network of 64 bits), counted before "
                + "credentials are checked. Behind a load balancer set `limits.trustedProxies`. "
                + "0: no limit."),
        ConfigurationKey(
            "limits.userLookupRateMax", .integer(0...1_000_000), .integer(100), reloads: true,
            "How many people one user may look up in a minute at this node, by address or "
                + "record name. A burst may be twice as large. Beyond it the answer is 429 "
                + "THROTTLED. 0: no limit."),
        ConfigurationKey(
            "limits.keyValueRateMax", .integer(0...1_000_000), .integer(0), reloads: true,
            "How many batches of changes one user may send to a key-value store in a minute at "
                + "this node. A burst may be twice as large. Beyond it the answer is 429 THROTTLED. "
                + "0: no limit."),
        ConfigurationKey(
            "limits.heldRequestCountMax", .integer(1...1_000_000), .integer(10_000), reloads: true,
            "Polls of notifications, and requests with `wait`, that this node holds at "
                + "once. When there are as many, a container is sure of an eighth of them, or of "
                + "an equal part where more have some. Within it each user is sure of an equal "
                + "part, 64 at most. Who has most gives way to who has less. Beyond a share the "
                + "answer is TRY_AGAIN_LATER."),
        ConfigurationKey(
            "limits.liveStreamCountMax", .integer(0...1_000_000), .integer(2_000), reloads: true,
            "Live streams that this node has at once. When there are as many, a container is sure "
                + "of an eighth of them. Who has most then gives way to who has less. Beyond a "
                + "share the answer is TRY_AGAIN_LATER."),
        ConfigurationKey(
            "limits.userLiveStreamCountMax", .integer(1...100_000), .integer(32), reloads: true,
            "Live streams of one user at this node. Beyond it the answer is 429 THROTTLED."),
        ConfigurationKey(
            "limits.connectionCountMax", .integer(1...1_000_000), .integer(16_384), reloads: true,
            "Open connections of clients. When there are as many, an address is sure of an "
                + "equal part of them, an eighth at most. Proxies and Unix sockets together are "
                + "sure of an eighth, and all addresses together too. A new connection below its "
                + "share ends the oldest one of whoever has most. Others are answered 503 and "
                + "closed."),
        ConfigurationKey(
            "limits.connectionCountPerAddressMax", .integer(1...1_000_000), .integer(2_048),
            reloads: true,
            "Open connections from one address (an IPv6 network of 64 bits), so that one "
                + "client cannot take them all. Those of `limits.trustedProxies` are not counted."),
        ConfigurationKey(
            "limits.streamCountMax", .integer(1...10_000), .integer(128), reloads: true,
            "Concurrent requests on one HTTP/2 connection. A change applies to new "
                + "connections."),
        ConfigurationKey(
            "limits.requestCountPerAddressMax", .integer(1...1_000_000), .integer(1_024),
            reloads: true,
            "Concurrent requests of one address (an IPv6 network of 64 bits) over HTTP/2 or "
                + "through `limits.trustedProxies`."),
        ConfigurationKey(
            "limits.trustedProxies", .list(.text), .list([]), reloads: true,
            "The proxies and load balancers in front of this node: addresses, networks such as "
                + "`10.0.0.0/8`, or `unix` for those on a Unix socket. Of what they pass on, the "
                + "client is the last address in `X-Forwarded-For` that none of them has. Limits by "
                + "address, logs and tries of passwords go by it. Never list an address from which "
                + "clients come."),
        ConfigurationKey(
            "limits.headDeadline", .duration(.milliseconds(100) ... .seconds(600)),
            .duration(.seconds(10)), reloads: true,
            "The time from the first byte of a request to the end of its headers. Beyond it "
                + "the answer is 408."),
        ConfigurationKey(
            "limits.idleDeadline", .duration(.milliseconds(100) ... .seconds(3_600)),
            .duration(.seconds(75)), reloads: true,
            "How long a connection may stay open between two requests."),

        ConfigurationKey(
            "coreDumps", .bool, .bool(false),
            "Whether a crash may leave a core dump, which holds the keys and tokens of the "
                + "last requests. If not, other processes of the same user cannot read this "
                + "process's memory either."),
        ConfigurationKey(
            "stop.deadline", .duration(.zero ... .seconds(600)), .duration(.seconds(30)),
            "How long the node may take to finish the requests in flight after SIGTERM; it "
                + "accepts no new connections meanwhile. A request that waits for a majority is "
                + "told to try again after 3 s. Whatever still runs 15 s after the deadline is cut "
                + "off. Signals within a second count as one; a later one stops the node at once."),
    ]

    /// Nil for a name that is no key.
    package static func named(_ path: String) -> ConfigurationKey? {
        self.all.first { $0.path == path }
    }

    /// The key somebody probably meant: the same last word in another section, or near as a whole,
    /// or near in its last word.
    package static func nearest(to path: String) -> String? {
        let name = path.split(separator: ".").last.map(String.init) ?? path
        if let only = Self.only(named: name) { return only }
        if let near = Suggestion.nearest(to: path, among: self.all.map(\.path)) { return near }
        return Suggestion.nearest(to: name, among: self.all.map(\.name)).flatMap(Self.only(named:))
    }

    private static func only(named name: String) -> String? {
        let keys = self.all.filter { $0.name == name }
        return keys.count == 1 ? keys[0].path : nil
    }
}
