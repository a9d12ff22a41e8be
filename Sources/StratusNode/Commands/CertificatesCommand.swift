import Glibc
import StratusCommandLine
import StratusModel
import StratusProcess
import StratusRuntime
import StratusTLS

/// `stratus cluster certificates`: makes what a cluster needs before its first node starts, and
/// what its administrators need to reach it from other machines.
///
/// | In the directory | For |
/// | --- | --- |
/// | `authority.pem`, `authority.key` | the authority of the nodes |
/// | `secret` | the cluster's secret |
/// | `NAME.pem`, `NAME.key` | a node: among its peers, and on its administrators' listener |
/// | `admins/authority.pem`, `admins/authority.key` | the authority of administrators |
/// | `admins/NAME.pem`, `admins/NAME.key` | an administrator |
///
/// Administrators have an authority of their own. With one for both, a node's certificate would
/// make its holder an administrator, and an administrator's could speak for a node.
struct CertificatesCommand {
    static let definition = CommandDefinition(
        "certificates",
        "Make an authority, a secret, and certificates for nodes and administrators",
        discussion: [
            "If the directory already holds an authority, it issues the certificates. No existing "
                + "file is replaced.",
            "A node's certificate holds the node's name. With --hosts it also holds the names and "
                + "addresses under which administrators reach the node, so that it can be "
                + "'admin.tls.certificateFile' as well. With --admin the command makes certificates "
                + "that administrators show instead of a token; the file admins/authority.pem is "
                + "then 'admin.tls.clientAuthorityFile' of each node.",
        ],
        options: [
            .value("directory", .directory, required: true, "Where to write them"),
            .value("nodes", .text("NAMES"), "The nodes' names, separated by commas"),
            .value(
                "hosts", .text("NODE=HOSTS"), repeats: true,
                "Names and addresses of one node, separated by commas, for administrators on "
                    + "other machines"),
            .value(
                "admin", .text("NAMES"),
                "Administrators' names, separated by commas; the audit trail shows them"),
            .value(
                "days", .text("DAYS"), default: "365", "How many days the certificates are valid"),
            .flag("missing", nil, "Make only what is missing; it is no error if nothing is"),
        ],
        examples: [
            .init(
                "stratus cluster certificates --directory ./cluster --nodes a,b,c",
                "For three nodes"),
            .init(
                "stratus cluster certificates --directory ./cluster --nodes d --hosts "
                    + "d=10.0.0.4,d.example.org --admin mara",
                "For one node more and an administrator"),
        ])

    private static let authorityDays: Int64 = 3_650
    private static let daySeconds: Int64 = 86_400

    private struct Refusal: Error {
        var code: ExitCode
        var text: String

        init(_ code: ExitCode, _ text: String) {
            self.code = code
            self.text = text
        }
    }

    private let directory: String
    private let nodes: [String]
    private let hosts: [String: [String]]
    private let admins: [String]
    private let days: Int64
    /// Leaves what is there, and finds nothing wrong with that: what starts a node may call it each
    /// time.
    private let onlyMissing: Bool

    private var adminDirectory: String { self.directory + "/admins" }

    static func run(_ invocation: Invocation) -> ExitCode {
        do {
            Terminal.write(try CertificatesCommand(invocation).make())
            return .success
        } catch {
            let (code, text) =
                (error as? Refusal).map { ($0.code, $0.text) } ?? (.cannotCreate, "\(error)")
            Terminal.write("stratus: \(text)\n", to: Terminal.errors)
            return code
        }
    }

    private init(_ invocation: Invocation) throws(Refusal) {
        func names(_ option: String) throws(Refusal) -> [String] {
            let names = (invocation[option] ?? "").split(separator: ",").map(String.init)
            let isGiven = invocation[option] != nil
            for name in names where !NodeName.isName(name) || name == "authority" {
                throw Refusal(
                    .usage,
                    "'\(name)' in '--\(option)' is not a name that can be used: use lower-case letters, "
                        + "digits and '-', and not 'authority'")
            }
            guard !names.isEmpty || !isGiven else {
                throw Refusal(.usage, "'--\(option)' needs a name at least")
            }
            return names
        }
        self.directory = invocation.value("directory")
        self.nodes = try names("nodes")
        self.admins = try names("admin")
        guard !self.nodes.isEmpty || !self.admins.isEmpty else {
            throw Refusal(.usage, "give '--nodes', '--admin' or both")
        }
        guard let days = Int64(invocation.value("days")), (1...3_650).contains(days) else {
            throw Refusal(.usage, "--days takes a whole number from 1 to 3650")
        }
        self.days = days
        self.onlyMissing = invocation.flag("missing")
        self.hosts = try Self.hosts(invocation.all("hosts"), of: self.nodes)
    }

    /// Reads `NODE=HOST,HOST`.
    private static func hosts(_ texts: [String], of nodes: [String]) throws(Refusal)
        -> [String: [String]]
    {
        var hosts: [String: [String]] = [:]
        for text in texts {
            let parts = text.split(separator: "=", maxSplits: 1).map(String.init)
            guard parts.count == 2 else {
                throw Refusal(
                    .usage, "'--hosts' wants NODE=HOST,HOST, such as a=10.0.0.1, not '\(text)'")
            }
            guard nodes.contains(parts[0]) else {
                throw Refusal(.usage, "'--hosts \(text)': '\(parts[0])' is not in '--nodes'")
            }
            let names = parts[1].split(separator: ",").map(String.init)
            for name in names where !Self.isAddress(name) && !Self.isHost(name) {
                throw Refusal(.usage, "'\(name)' is neither the name nor the address of a host")
            }
            hosts[parts[0], default: []] += names
        }
        return hosts
    }

    private static func isAddress(_ text: String) -> Bool {
        var bytes = in6_addr()
        return inet_pton(AF_INET, text, &bytes) == 1 || inet_pton(AF_INET6, text, &bytes) == 1
    }

    private static func isHost(_ text: String) -> Bool {
        (1...253).contains(text.utf8.count) && !text.hasPrefix("-") && !text.hasPrefix(".")
            && text.utf8.allSatisfy { byte in
                byte == 0x2D || byte == 0x2E || (0x30...0x39).contains(byte)
                    || (0x41...0x5A).contains(byte) || (0x61...0x7A).contains(byte)
            }
    }

    // MARK: Making

    /// - Returns: what to tell.
    private func make() throws -> String {
        try self.refuseExisting()
        try SmallFile.makeDirectory(self.directory)
        let world = try RealWorld(dataDirectory: self.directory)
        let now = world.wallMilliseconds / 1_000
        let madeNodes = try self.makeNodes(world, now)
        let madeAdmins = try self.makeAdmins(now)
        if madeNodes.isEmpty, madeAdmins.isEmpty {
            return "Everything is in \(self.directory) already.\n"
        }
        return self.words(madeNodes, madeAdmins)
    }

    /// Nothing is made where one of them cannot be: what there is then says what is missing.
    private func refuseExisting() throws(Refusal) {
        if self.onlyMissing { return }
        let existing =
            (self.nodes.map { self.directory + "/\($0).pem" }
            + self.admins.map { self.adminDirectory + "/\($0).pem" }).filter {
                SmallFile.state($0) != .absent
            }
        if existing.isEmpty { return }
        throw Refusal(
            .cannotCreate,
            "nothing was made: \(existing.map { "'\($0)'" }.joined(separator: ", ")) "
                + "\(existing.count == 1 ? "exists" : "exist"); move it away to issue another, or give "
                + "'--missing' for the rest")
    }

    private func makeNodes(_ world: RealWorld, _ now: Int64) throws -> [String] {
        if self.nodes.isEmpty { return [] }
        let authority = try Self.authority(in: self.directory, "Stratus cluster", now)
        if SmallFile.state(self.directory + "/secret") == .absent {
            let secret = AdminToken.hexadecimal(Node.draw(world)) + [0x0A]
            try SmallFile.createSecret(self.directory + "/secret", secret)
        }
        return try self.nodes.filter { name in
            let hosts = self.hosts[name] ?? []
            return try self.issue(
                name, in: self.directory, by: authority,
                .init(
                    commonName: name,
                    dnsNames: [name] + hosts.filter { !Self.isAddress($0) && $0 != name },
                    addresses: hosts.filter(Self.isAddress), purpose: .both, now: now,
                    validSeconds: self.days * Self.daySeconds))
        }
    }

    private func makeAdmins(_ now: Int64) throws -> [String] {
        if self.admins.isEmpty { return [] }
        try SmallFile.makeDirectory(self.adminDirectory)
        let authority = try Self.authority(
            in: self.adminDirectory, "Stratus administrators", now)
        return try self.admins.filter { name in
            try self.issue(
                name, in: self.adminDirectory, by: authority,
                .init(
                    commonName: name, purpose: .client, now: now,
                    validSeconds: self.days * Self.daySeconds))
        }
    }

    /// - Returns: false where there was a certificate already.
    private func issue(
        _ name: String, in directory: String, by authority: CertificateAuthority,
        _ order: CertificateAuthority.Order
    ) throws -> Bool {
        let certificate = directory + "/\(name).pem"
        guard SmallFile.state(certificate) == .absent else { return false }
        let issued = try authority.issue(order)
        // A key without its certificate is left of an attempt that was cut short.
        let write = self.onlyMissing ? SmallFile.replaceSecret : SmallFile.createSecret
        try write(directory + "/\(name).key", issued.privateKeyPEM)
        try SmallFile.createSecret(certificate, issued.certificatePEM)
        return true
    }

    private static func authority(in directory: String, _ name: String, _ now: Int64) throws
        -> CertificateAuthority
    {
        let (certificate, key) = (directory + "/authority.pem", directory + "/authority.key")
        if SmallFile.state(certificate) == .absent {
            let made = try CertificateAuthority.make(
                commonName: name, now: now,
                validSeconds: Self.authorityDays * Self.daySeconds)
            try SmallFile.createSecret(key, made.identity.privateKeyPEM)
            try SmallFile.createSecret(certificate, made.identity.certificatePEM)
            return made
        }
        return CertificateAuthority(
            CertificateAndKey(
                certificatePEM: try SmallFile.read(certificate),
                privateKeyPEM: try SmallFile.read(key)))
    }

    private func words(_ nodes: [String], _ admins: [String]) -> String {
        var text = ""
        if !nodes.isEmpty {
            text +=
                "Made in \(self.directory): certificates for \(nodes.joined(separator: ", ")), good for "
                + "\(self.days) days.\nEach node needs authority.pem, secret, and its own .pem and .key. "
                + "authority.key is needed for\nmore certificates only: keep it away from the nodes.\n"
        }
        if !admins.isEmpty {
            text +=
                "Made in \(self.adminDirectory): certificates for the administrators "
                + "\(admins.joined(separator: ", ")), good for \(self.days) days.\nEach node needs "
                + "admins/authority.pem, as 'admin.tls.clientAuthorityFile'. An administrator needs their "
                + "own\n.pem and .key, and the authority.pem of the nodes. admins/authority.key is needed "
                + "for more only.\n"
        }
        return text
    }
}
