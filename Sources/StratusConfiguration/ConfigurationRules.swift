package import StratusCommandLine
import StratusHTTP
import StratusModel
import StratusRuntime

/// Combinations of values, each allowed alone, that cannot be meant.
package enum ConfigurationRules {
    private static func emailProblems(_ settings: ConfigurationSettings) -> [ConfigurationProblem] {
        var problems: [ConfigurationProblem] = []
        func refuse(_ key: String, _ text: String) {
            let path = "signIn.mail." + key
            problems.append(ConfigurationProblem(settings.origin(path), key: path, text))
        }
        guard let server = settings.text("signIn.mail.server") else {
            for key in ["from", "user", "passwordFile", "authorityFile"]
            where settings.isSet("signIn.mail." + key) {
                refuse(key, "needs 'signIn.mail.server' too")
            }
            return problems
        }
        var isServer = false
        if case .tcp? = ListenAddress(server) { isServer = true }
        if !isServer { refuse("server", "'\(server)' is not HOST:PORT") }
        if settings.text("signIn.url") == nil {
            refuse("server", "needs 'signIn.url' too: links in messages begin with it")
        }
        let from = settings.text("signIn.mail.from") ?? ""
        let parts = from.split(separator: "@", omittingEmptySubsequences: false)
        let isPlain = from.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F && $0 != 0x3C && $0 != 0x3E }
        if parts.count != 2 || parts.contains("") || !isPlain {
            refuse("from", "'\(from)' is not an e-mail address, such as stratus@example.org")
        }
        if settings.isSet("signIn.mail.user") != settings.isSet("signIn.mail.passwordFile") {
            refuse("user", "'signIn.mail.user' and 'signIn.mail.passwordFile' go together")
        }
        return problems
    }

    package static func problems(_ settings: ConfigurationSettings) -> [ConfigurationProblem] {
        var problems: [ConfigurationProblem] = []
        func refuse(_ path: String, _ text: String) {
            problems.append(ConfigurationProblem(settings.origin(path), key: path, text))
        }
        if let base = settings.text("signIn.url"), WebOrigin(base) == nil {
            refuse(
                "signIn.url",
                "'\(base)' is not an address of the sign-in pages: write https://host[:port], without a "
                    + "path")
        }
        problems += Self.emailProblems(settings)
        if let origin = settings.text("assets.url"), WebOrigin(origin) == nil {
            refuse(
                "assets.url",
                "'\(origin)' is not an origin: write https://host[:port], without a path")
        }
        for text in settings.texts("limits.trustedProxies") where !TrustedProxies.isProxy(text) {
            refuse(
                "limits.trustedProxies", "'\(text)' is no address, no network and not 'unix'")
        }
        let clients = settings.addresses("client.listen")
        if clients.isEmpty { refuse("client.listen", "needs one address at least") }
        for listener in ["client", "admin"] {
            let certificate = "\(listener).tls.certificateFile"
            let key = "\(listener).tls.keyFile"
            if settings.isSet(certificate) != settings.isSet(key) {
                let (there, missing) =
                    settings.isSet(certificate) ? (certificate, key) : (key, certificate)
                refuse(there, "needs '\(missing)' too")
            }
        }
        if settings.isSet("admin.tls.clientAuthorityFile"),
            !settings.isSet("admin.tls.certificateFile")
        {
            refuse(
                "admin.tls.clientAuthorityFile",
                "client certificates need TLS: set 'admin.tls.certificateFile'")
        }
        // An address typed on the command line is meant: `stratus dev --listen 0.0.0.0:8080` is how
        // a container's only process runs. The program warns.
        var isTyped = false
        if case .commandLine = settings.origin("client.listen") { isTyped = true }
        if settings.bool("development"), !isTyped, !settings.bool("client.allowDevelopment") {
            for address in clients where !Self.isLocal(address) {
                refuse(
                    "development",
                    "'\(address)' in 'client.listen' can be reached from other machines, and with "
                        + "'development' nobody's credentials are checked; set "
                        + "'client.allowDevelopment: true' where something else keeps others out")
            }
        }
        // X-30: what exposes credentials to the network is never a default.
        if !settings.isSet("client.tls.certificateFile"), !settings.bool("client.allowPlain"),
            !isTyped
        {
            for address in clients where !Self.isLocal(address) {
                refuse(
                    "client.listen",
                    "'\(address)' can be reached from other machines and there is no TLS: set "
                        + "'client.tls.certificateFile', or 'client.allowPlain: true' where "
                        + "something in front of the node speaks TLS")
            }
        }
        if let admin = settings.address("admin.listen") {
            if !settings.isSet("admin.tls.certificateFile"), !Self.isLocal(admin) {
                refuse(
                    "admin.listen",
                    "'\(admin)' can be reached from other machines and there is no TLS: set "
                        + "'admin.tls.certificateFile', or listen on 127.0.0.1 or a Unix socket")
            }
            for address in clients where Self.collide(address, admin) {
                refuse(
                    "admin.listen",
                    "'\(admin)' is in 'client.listen' too: administrators have a listener of "
                        + "their own")
            }
        }
        let others = clients + [settings.address("admin.listen")].compactMap { $0 }
        for address in settings.addresses("metrics.listen")
        where others.contains(where: { Self.collide($0, address) }) {
            refuse(
                "metrics.listen",
                "'\(address)' is the address of another listener: metrics have one of their own")
        }
        for (index, address) in clients.enumerated()
        where clients[..<index].contains(where: { Self.collide($0, address) }) {
            refuse("client.listen", "'\(address)' is listed twice")
        }
        Self.checkCluster(settings, refuse)
        return problems
    }

    private static func checkCluster(
        _ settings: ConfigurationSettings, _ refuse: (String, String) -> Void
    ) {
        let count = settings.integer("cluster.partitionCount")
        if count & (count - 1) != 0 {
            refuse("cluster.partitionCount", "\(count) is not a power of two")
        }
        let texts = settings.texts("cluster.peers")
        let members = settings.texts("cluster.join")
        let needed = [
            "cluster.name", "cluster.secretFile", "cluster.tls.certificateFile",
            "cluster.tls.keyFile", "cluster.tls.authorityFile",
        ]
        let joinOnly = ["cluster.joinTokenFile"]
        guard !texts.isEmpty || !members.isEmpty else {
            for key in needed + joinOnly + ["cluster.listen", "cluster.address"]
            where settings.isSet(key) {
                refuse(key, "has no effect without 'cluster.peers' or 'cluster.join'")
            }
            return
        }
        let list = texts.isEmpty ? "cluster.join" : "cluster.peers"
        if !texts.isEmpty && !members.isEmpty {
            refuse(
                "cluster.join",
                "a node that joins a cluster does not form one: leave 'cluster.peers' out")
        }
        let asked = texts.isEmpty ? needed + joinOnly + ["cluster.address"] : needed
        for key in asked where !settings.isSet(key) {
            refuse(list, "needs '\(key)' too")
        }
        for text in texts where PeerPlace(text) == nil {
            refuse("cluster.peers", "'\(text)' is not of the form NAME@HOST:PORT")
        }
        for text in members where PeerPlace(text) == nil {
            refuse("cluster.join", "'\(text)' is not of the form NAME@HOST:PORT")
        }
        if let address = settings.address("cluster.address") {
            if case .tcp(_, port: 1...) = address {
            } else {
                refuse("cluster.address", "peers need HOST:PORT with a port")
            }
        }
        let names = texts.compactMap { PeerPlace($0)?.name }
        for (index, name) in names.enumerated() where names[..<index].contains(name) {
            refuse("cluster.peers", "'\(name)' is listed twice")
        }
        if let name = settings.text("cluster.name") {
            if !texts.isEmpty, !names.contains(name) {
                refuse("cluster.name", "'\(name)' is not in 'cluster.peers'")
            } else if !NodeName.isName(name) {
                refuse(
                    "cluster.name",
                    "'\(name)' is not a node's name: use lower-case letters, digits and '-'")
            }
        }
    }

    /// Port 0 is a different port each time.
    private static func collide(_ one: ListenAddress, _ other: ListenAddress) -> Bool {
        if case .tcp(_, port: 0) = one { return false }
        return one == other
    }

    /// Only processes of this machine reach it.
    package static func isLocal(_ address: ListenAddress) -> Bool {
        switch address {
        case .unix: true
        case .tcp(let host, _): host == "localhost" || host == "::1" || host.hasPrefix("127.")
        }
    }
}
