import StratusCommandLine
import StratusModel
import StratusProcess
import StratusRuntime
import StratusTLS

/// `stratus cluster …`: what a cluster needs before its first node starts.
enum ClusterCommands {
    private static let authorityDays = 3_650

    /// Makes an authority, a secret and a certificate for each node, or more certificates of the
    /// authority that is there. With `--missing` those that are there are left, and it is no error:
    /// what starts a node may call it each time.
    static func certificates(_ invocation: Invocation) -> ExitCode {
        let directory = invocation.value("directory")
        let names = invocation.value("nodes").split(separator: ",").map(String.init)
        guard !names.isEmpty, names.allSatisfy(NodeName.isName) else {
            return Self.fail(
                .usage,
                "--nodes takes names of lower-case letters, digits and '-', with commas between")
        }
        guard let days = Int(invocation.value("days")), (1...3_650).contains(days) else {
            return Self.fail(.usage, "--days takes a whole number from 1 to 3650")
        }
        // Nothing is made where one of them cannot be: what there is then says what is missing.
        let existing = names.map { directory + "/\($0).pem" }.filter {
            SmallFile.state($0) != .absent
        }
        if !existing.isEmpty, !invocation.flag("missing") {
            return Self.fail(
                .cannotCreate,
                "nothing was made: \(existing.map { "'\($0)'" }.joined(separator: ", ")) "
                    + "\(existing.count == 1 ? "exists" : "exist"); move it away to issue another, or give "
                    + "'--missing' for the rest")
        }
        var made: [String] = []
        do {
            try SmallFile.makeDirectory(directory)
            let world = try RealWorld(dataDirectory: directory)
            let now = world.wallMilliseconds / 1_000
            let authority = try Self.authority(in: directory, now: now)
            if SmallFile.state(directory + "/secret") == .absent {
                let secret = AdminToken.hexadecimal(Node.draw(world)) + [0x0A]
                try SmallFile.createSecret(directory + "/secret", secret)
            }
            for name in names {
                let certificate = directory + "/\(name).pem"
                guard SmallFile.state(certificate) == .absent else { continue }
                let issued = try authority.issue(
                    .init(
                        commonName: name, dnsNames: [name], purpose: .both, now: now,
                        validSeconds: Int64(days) * 86_400))
                // A key without its certificate is left of an attempt that was cut short.
                let write =
                    invocation.flag("missing")
                    ? SmallFile.replaceSecret : SmallFile.createSecret
                try write(directory + "/\(name).key", issued.privateKeyPEM)
                try SmallFile.createSecret(certificate, issued.certificatePEM)
                made.append(name)
            }
        } catch { return Self.fail(.cannotCreate, "\(error)") }
        if made.isEmpty {
            Terminal.write("Everything is in \(directory) already.\n")
            return .success
        }
        Terminal.write(
            "Made in \(directory): certificates for \(made.joined(separator: ", ")), good for "
                + "\(days) days.\nEach node needs authority.pem, secret, and its own .pem and .key. "
                + "authority.key is needed for\nmore certificates only: keep it away from the nodes.\n"
        )
        return .success
    }

    private static func authority(in directory: String, now: Int64) throws -> CertificateAuthority {
        let (certificate, key) = (directory + "/authority.pem", directory + "/authority.key")
        if SmallFile.state(certificate) == .absent {
            let made = try CertificateAuthority.make(
                commonName: "Stratus cluster", now: now,
                validSeconds: Int64(Self.authorityDays) * 86_400)
            try SmallFile.createSecret(key, made.identity.privateKeyPEM)
            try SmallFile.createSecret(certificate, made.identity.certificatePEM)
            return made
        }
        return CertificateAuthority(
            CertificateAndKey(
                certificatePEM: try SmallFile.read(certificate),
                privateKeyPEM: try SmallFile.read(key)))
    }

    private static func fail(_ code: ExitCode, _ text: String) -> ExitCode {
        Terminal.write("stratus: \(text)\n", to: Terminal.errors)
        return code
    }
}
