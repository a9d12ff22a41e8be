import StratusCommandLine
import StratusModel
import StratusRuntime

extension ConfigurationKey {
    /// Describes each section of the file, in the order of the file.
    package static let sections: [(path: String, text: String)] = [
        ("client", "The listener for CloudKit Web Services: apps, scripts and web pages."),
        ("client.tls", "TLS for clients. Off while there is no certificate."),
        (
            "admin",
            "The administrators' listener: its own address, never reachable through the clients' one."
        ),
        ("admin.tls", "TLS for administrators."),
        ("signIn", "The pages where people sign in."),
        ("cluster", "The node among its peers. Without `cluster.peers` it works alone."),
        (
            "cluster.tls",
            "TLS 1.3 between peers, both sides with a certificate of the cluster's authority. "
                + "`stratus cluster certificates` makes them."
        ),
        ("storage", "What the node does with its disk of its own accord."),
        ("log", "What the node writes to its standard error."),
        ("limits", "What one client, one request or one record may cost."),
        ("stop", "How the node stops."),
    ]

    /// Every key, in the order of the file.
    package static let all: [ConfigurationKey] = [
        ConfigurationKey(
            "dataDirectory", .path, .text("/var/lib/stratus"),
            "Where the node keeps everything it must not lose. One node per directory; made when "
                + "absent. A local disk: network file systems do not keep the promises of a sync."),
        ConfigurationKey(
            "loopCount", .integer(0...256), .integer(0),
            "Event loops, each on a thread of its own. 0 means one for each core."),
        ConfigurationKey(
            "development", .bool, .bool(false),
            "Takes any well-formed API token for any container's development environment, and any "
                + "web-auth token for the development user, as `stratus dev` does. Never where others "
                + "can reach the node."),
        ConfigurationKey(
            "developmentSchema", .choice(["strict", "justInTime"]), .text("strict"), reloads: true,
            "What a save may do in the development environment: `strict` wants every type and field "
                + "to exist, as Apple's web services do; `justInTime` makes what a save needs."),
        ConfigurationKey(
            "developmentUsers", .choice(["any", "strict"]), .text("any"),
            "With `development`: which web-auth tokens are a user's. `any`: whatever text is the development user's. "
                + "`strict`: only `development`, those that begin with `stratus-user-` and those of the sign-in pages; "
                + "any other is answered 421, as an expired one."),

        ConfigurationKey(
            "client.listen", .list(.address), .list([.text("127.0.0.1:8080")]),
            "Where clients connect. Port 0 lets the system choose one; the log says which."),
        ConfigurationKey(
            "client.allowPlain", .bool, .bool(false),
            "Allows an address that other machines can reach without TLS. Only where something in "
                + "front of the node speaks TLS: tokens travel in the URL."),
        ConfigurationKey(
            "client.allowDevelopment", .bool, .bool(false),
            "Allows `development` on an address that other machines can reach. Only where something "
                + "else keeps them out, such as a container's port that is published on the loopback: "
                + "nobody's credentials are checked."),
        ConfigurationKey(
            "client.http2", .bool, .bool(false),
            "Offers HTTP/2 beside HTTP/1.1 to clients that connect over TLS."),
        ConfigurationKey(
            "client.plainHTTP2", .bool, .bool(false),
            "Serves plain connections that begin with HTTP/2's preface. For a balancer in front of the node "
                + "that speaks TLS with clients and HTTP/2 with the node."),
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
            "The administrators' token. Made at the first start with mode 0600; `admin.token` in "
                + "the data directory unless set. Replace its contents and send SIGHUP to rotate it."
        ),
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
            "Certificates of an authority, PEM. Who shows a certificate signed by it needs no token."
        ),

        ConfigurationKey(
            "signIn.url", .text, nil,
            "Where people reach the sign-in pages, as `https://auth.example.org`: what a 421's "
                + "`redirectURL` begins with, and the origin that their forms must come from, whatever `Host` a "
                + "proxy sends. Unset: the address that the request came to."),
        ConfigurationKey(
            "signIn.signUp", .bool, .bool(false),
            "Whether anybody may make an account. Off, `stratusctl user add` makes them. In "
                + "development everybody may."),
        ConfigurationKey(
            "cluster.name", .text, nil,
            "This node's name, in `cluster.peers` that of one of them: lower-case letters, digits and `-`. It "
                + "stands in the node's certificate and never changes."),
        ConfigurationKey(
            "cluster.peers", .list(.text), .list([]),
            "The nodes that form the cluster, this one too, each as `NAME@HOST:PORT`. Every node is "
                + "given the same list: from it and the secret the cluster gets its identity, and nodes "
                + "of different lists refuse each other. Once formed, only addresses are taken from "
                + "here, and those of the others only until the cluster has told where they are."),
        ConfigurationKey(
            "cluster.join", .list(.text), .list([]),
            "Instead of `cluster.peers`: members of the cluster that this node is to join, each as "
                + "`NAME@HOST:PORT`. One of them that answers is enough. Asked at the first start only."
        ),
        ConfigurationKey(
            "cluster.joinTokenFile", .text, nil,
            "The file with the token of `stratusctl cluster join-token`. Read at the first start only: it "
                + "opens once and may be removed then."),
        ConfigurationKey(
            "cluster.address", .address, nil,
            "Where peers reach this node, where `cluster.peers` does not say it. Another one than before "
                + "is told to the cluster at the next start."),
        ConfigurationKey(
            "cluster.weight", .integer(1...100_000), .integer(100),
            "How much this node carries, relative to the others, when it joins. Later "
                + "`stratusctl node weight` changes it."),
        ConfigurationKey(
            "cluster.rack", .text, nil,
            "What this node falls together with, when it joins. Nodes of one rack hold as few replicas of "
                + "one partition as possible."),
        ConfigurationKey(
            "cluster.listen", .address, nil,
            "Where peers connect. The address of this node in `cluster.peers`, or `cluster.address`, unless "
                + "set."),
        ConfigurationKey(
            "cluster.secretFile", .secretFile, nil,
            "The cluster's secret, 16 characters at least, the same on every node."),
        ConfigurationKey(
            "cluster.partitionCount", .integer(1...4_096), .integer(256),
            "Into how many partitions the data is cut: a power of two, the same on every node. Read at "
                + "the first start only: it never changes."),
        ConfigurationKey(
            "cluster.tls.certificateFile", .file, nil, reloads: true,
            "The node's certificate, PEM. It names the node as `cluster.name` does."),
        ConfigurationKey(
            "cluster.tls.keyFile", .secretFile, nil, reloads: true,
            "The private key of that certificate, PEM."),
        ConfigurationKey(
            "cluster.tls.authorityFile", .file, nil, reloads: true,
            "The certificate of the cluster's authority, PEM."),

        ConfigurationKey(
            "storage.scrubRate", .size(0...1 << 30), .size(.mebibytes(4)), reloads: true,
            "How much a second is read back from the disk to find what has rotted: the entries of the log "
                + "and the rows, one partition after another, an hour's rest after each round. What is "
                + "damaged comes back from the other replicas. 0: nothing is read back."),

        ConfigurationKey(
            "storage.snapshotRate", .size(0...1 << 40), .size(.mebibytes(32)), reloads: true,
            "How much of partitions that are copied from node to node is written or read in a second, all of "
                + "them together: a copy is made a piece at a time, at the sender first, then at the receiver, "
                + "and everything else goes on in between. 0: as much as can be."),

        ConfigurationKey(
            "storage.retainedLogSizeMax", .size(0...1 << 40), .size(.mebibytes(4_096)),
            "How large the node's log may grow on disk to keep what followers still need, all partitions "
                + "together: one that was away, lost its rows or joins then catches up while others write. "
                + "Beyond it, and while less than `storage.reserve` is free, a follower that is behind is given "
                + "up and gets a snapshot."),

        ConfigurationKey(
            "storage.retainedSizeMax", .size(0...1 << 40), .size(.mebibytes(2_048)),
            "The same for one partition. From half of it on the partition takes commands in more slowly while "
                + "the follower comes closer: what is too much is answered TRY_AGAIN_LATER. 0: nothing is kept "
                + "for followers but what comes after a snapshot on its way."),

        ConfigurationKey(
            "storage.reserve", .size(0...1 << 50), .size(.mebibytes(256)), reloads: true,
            "What is to stay free on the disk. A partition that has less on most of its replicas, what was "
                + "deleted in its own file added, takes nothing in: what adds is answered TRY_AGAIN_LATER, "
                + "what deletes is done. Every node should say the same. 0: nothing stays free."),

        ConfigurationKey(
            "log.level", .choice(LogLevel.allCases.map(\.name)), .text("info"), reloads: true,
            "The least important line to write. `stratusctl log-level` changes it too, until the next "
                + "SIGHUP."),
        ConfigurationKey(
            "log.format", .choice(["auto", "terminal", "json"]), .text("auto"),
            "`auto` is readable on a terminal and JSON lines otherwise."),
        ConfigurationKey(
            "log.access", .bool, .bool(true), reloads: true,
            "One line for every request: who, what, how long, how much. Never a token, never a "
                + "record's contents."),

        ConfigurationKey(
            "limits.requestSizeMax", .size(1 << 10...16 << 20), .size(.mebibytes(16)),
            reloads: true,
            "The body of one request. Beyond it the answer is 413 QUOTA_EXCEEDED."),
        ConfigurationKey(
            "limits.bufferedBodySizeMax", .size(16 << 20...1 << 40), .size(.mebibytes(256)),
            "The bodies of all requests that are being read or answered, together; what a body has beyond 1 MiB "
                + "counts three times, and large ones may take three quarters of it. Beyond it the answer is 503 "
                + "TRY_AGAIN_LATER."),
        ConfigurationKey(
            "limits.bufferedAnswerSizeMax", .size(32 << 20...1 << 40), .size(.mebibytes(256)),
            "What was read for all requests that are being answered, together, until their clients have taken "
                + "it; large answers may take three quarters of it. Beyond it the answer is 503 "
                + "TRY_AGAIN_LATER."),
        ConfigurationKey(
            "limits.operationCountMax", .integer(1...200), .integer(200), reloads: true,
            "Operations in one modify, names in one lookup, records in one answer. CloudKit's is 200."
        ),
        ConfigurationKey(
            "limits.recordSizeMax", .size(1 << 10...16 << 20), .size(.mebibytes(1)), reloads: true,
            "One record's fields, assets not counted. CloudKit's is 1 MiB."),
        ConfigurationKey(
            "limits.privateDatabaseSizeMax", .size(0...1 << 50), .size(ByteCount(0)), reloads: true,
            "What one user's private records in one container may come to. A save beyond it is refused with 413 "
                + "QUOTA_EXCEEDED; what is there stays, and may shrink. Every node must say the same. 0: no "
                + "quota."),
        ConfigurationKey(
            "limits.publicDatabaseSizeMax", .size(0...1 << 50), .size(ByteCount(0)), reloads: true,
            "The same of a container's public records. Where they lie in buckets, it may be passed by what "
                + "is saved in about a second. 0: no quota."),
        ConfigurationKey(
            "limits.queryTouchCountMax", .integer(100...1_000_000), .integer(10_000), reloads: true,
            "The work that one page of a query may take. One unit is a seek, an index row, 2 KiB of stored records, "
                + "32 bytes of text that is cut into words, or 16 comparisons. Beyond it the page ends early, with "
                + "a marker."),
        ConfigurationKey(
            "limits.queryOperandCountMax", .integer(1...10_000), .integer(250), reloads: true,
            "Values that one IN, ..._ANY or ..._ALL filter of a query may name, and words that one search may "
                + "look for. A query with more is refused with BAD_REQUEST."),
        ConfigurationKey(
            "limits.commandDeadline", .duration(.seconds(1) ... .seconds(1_200)),
            .duration(.seconds(30)), reloads: true,
            "How long a save may wait to be applied before the answer is TRY_AGAIN_LATER."),
        ConfigurationKey(
            "limits.requestRateMax", .integer(0...1_000_000), .integer(0), reloads: true,
            "Requests a second of one user or key at this node, or of one address where nobody is "
                + "signed in; twice as many at once. Beyond it the answer is 429 THROTTLED with the "
                + "time to wait. 0: no limit."),
        ConfigurationKey(
            "limits.containerRequestRateMax", .integer(0...1_000_000), .integer(0), reloads: true,
            "The same of one container and environment, whoever asks. 0: no limit."),
        ConfigurationKey(
            "limits.tokenRequestRateMax", .integer(0...1_000_000), .integer(0), reloads: true,
            "The same with one API token: all who use one app or page together. 0: no limit."),
        ConfigurationKey(
            "limits.addressRequestRateMax", .integer(0...1_000_000), .integer(0), reloads: true,
            "The same from one address (an IPv6 network of 64 bits), counted before credentials are looked at. "
                + "Raise it where a balancer stands in front. 0: no limit."),
        ConfigurationKey(
            "limits.userLookupRateMax", .integer(0...1_000_000), .integer(100), reloads: true,
            "People that one user may look up in a minute at this node, by address or record name; twice as many at "
                + "once. Beyond it the answer is 429 THROTTLED. 0: no limit."),
        ConfigurationKey(
            "limits.connectionCountMax", .integer(1...1_000_000), .integer(16_384), reloads: true,
            "Open connections of clients. Beyond it a new one is answered 503 and closed."),
        ConfigurationKey(
            "limits.connectionCountPerAddressMax", .integer(1...1_000_000), .integer(2_048),
            reloads: true,
            "Open connections from one address, so that one client cannot take them all. Raise it "
                + "where a balancer stands in front."),
        ConfigurationKey(
            "limits.streamCountMax", .integer(1...10_000), .integer(128), reloads: true,
            "Requests at a time on one connection over HTTP/2. Counts for connections from then on."
        ),
        ConfigurationKey(
            "limits.requestCountPerAddressMax", .integer(1...1_000_000), .integer(1_024),
            reloads: true,
            "Requests over HTTP/2 that are being answered for one address, over all its connections. "
                + "Raise it where a balancer stands in front."),
        ConfigurationKey(
            "limits.headDeadline", .duration(.milliseconds(100) ... .seconds(600)),
            .duration(.seconds(10)), reloads: true,
            "From the first byte of a request to the end of its headers. Beyond it: 408."),
        ConfigurationKey(
            "limits.idleDeadline", .duration(.milliseconds(100) ... .seconds(3_600)),
            .duration(.seconds(75)), reloads: true,
            "How long a connection may stay open between two requests."),

        ConfigurationKey(
            "coreDumps", .bool, .bool(false),
            "Whether a crash may leave a core dump. It holds keys and tokens of the last requests. Without it "
                + "other processes of the same user cannot read this one's memory either."),
        ConfigurationKey(
            "stop.deadline", .duration(.zero ... .seconds(600)), .duration(.seconds(30)),
            "After SIGTERM the node takes no new connections and finishes the requests in flight; "
                + "this long at most. A request that waits for a majority is told to try again after 3 s, and what hangs "
                + "is cut 15 s behind the deadline. Signals within a second count as one; a later one stops it at once."
        ),
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
