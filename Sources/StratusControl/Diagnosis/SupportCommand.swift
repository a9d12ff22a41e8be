import StratusAdminModel
import StratusCommandLine
import StratusHTTP
import StratusModel
import StratusProcess
import StratusRuntime

/// `stratusctl support`: collects what the nodes say of themselves into one file, for whoever looks
/// into a problem.
///
/// One node is asked, and asks the others. A part that cannot be had is a file that says why: the
/// command is for times when something does not work.
struct SupportCommand: AdminConversation {
    static let command = ControlCommand(
        "support", "Collect everything about the nodes that helps to find a problem, in one file",
        discussion: [
            "Writes a tar archive: what the doctor finds, the cluster and its health, and of every "
                + "node its status, versions, metrics, the keys of its configuration that are "
                + "set, and its last log lines.",
            "The file holds no token, no key and no record. It holds names of nodes, containers "
                + "and files, and the addresses of clients: look into it before you pass it on.",
        ],
        options: [
            .value(
                "output", .file,
                "Where to write it; it must not exist (default: stratus-support-TIME.tar)")
        ],
        examples: [.init("stratusctl support --output problem.tar", "To look at it elsewhere")],
        run: SupportCommand.run)

    let context: ControlContext

    init(_ context: ControlContext) { self.context = context }

    /// Nodes and parts beyond this are left out: no cluster has as many.
    private static let nodeCountMax = 1_000
    private static let patience = Duration.seconds(15)

    func run() async throws(AdminClient.Failure) -> ExitCode {
        let now = RealClock.wallMilliseconds
        let stamp = WallTime.text(now).filter { $0.isNumber || $0 == "T" }.prefix(15)
        let path = self.invocation["output"] ?? "stratus-support-\(stamp)Z.tar"
        let folder = "stratus-support-\(stamp)Z"
        guard case .absent = SmallFile.state(path) else {
            throw AdminClient.Failure(
                .cannotCreate, "'\(path)' exists: give another name with '--output'")
        }
        // Whatever else fails, this one says whether anybody answers at all.
        let own = try self.client.require(
            try await self.client.send("GET", "/v1/support", deadline: Self.patience))
        var archive = TarArchive(at: now)
        var names: [String] = []
        func add(_ name: String, _ contents: Bytes) {
            archive.add("\(folder)/\(name)", contents)
            names.append(name)
        }
        add("collected.txt", Bytes(Self.about(now, self.client.node).utf8))
        add("doctor.txt", Bytes(await self.findings().utf8))
        let cluster = await self.page("/v1/cluster?lastKnown=1")
        var missing: [String] = []
        if cluster.isThere {
            add("cluster.json", cluster.bytes)
            add("health.json", await self.page("/v1/cluster/health").bytes)
            for name in Self.members(cluster.bytes) {
                let page = await self.page("/v1/cluster/nodes/\(name)/support")
                let files = page.isThere ? Self.files(page.bytes) : []
                if files.isEmpty {
                    missing.append(name)
                    add("node-\(name)/missing.txt", page.bytes)
                }
                for (file, contents) in files { add("node-\(name)/\(file)", contents) }
            }
        } else {
            add("cluster.json", cluster.bytes)
            for (file, contents) in Self.files(own.body) { add("node/\(file)", contents) }
        }
        let bytes = archive.finish()
        do throws(SmallFile.Failure) { try SmallFile.createSecret(path, bytes) } catch {
            throw AdminClient.Failure(.cannotCreate, error.description)
        }
        return self.tell(path, size: bytes.count, fileCount: names.count, missing: missing)
    }

    // MARK: Asking

    private func findings() async -> String {
        do throws(AdminClient.Failure) {
            let doctor = DoctorCommand(self.context)
            return DoctorCommand.text(try await doctor.findings())
        } catch { return "The doctor could not be asked: \(error)\n" }
    }

    /// - Returns: the page, or why there is none.
    private func page(_ path: String) async -> (isThere: Bool, bytes: Bytes) {
        do throws(AdminClient.Failure) {
            let answer = try self.client.require(
                try await self.client.send("GET", path, deadline: Self.patience))
            return (true, answer.body)
        } catch { return (false, Bytes("\(error)\n".utf8)) }
    }

    // MARK: Words

    private static func about(_ now: Int64, _ node: String) -> String {
        "Collected by stratusctl \(Versions.stratus) at \(WallTime.text(now)) from \(node).\n"
    }

    /// The names of the cluster's members.
    private static func members(_ cluster: Bytes) -> [String] {
        guard let cluster = try? ClusterAnswer(reading: cluster) else { return [] }
        return cluster.nodes.filter(\.isMember).map(\.name).filter(NodeName.isName)
            .prefix(Self.nodeCountMax).map { String($0.prefix(40)) }
    }

    private static func files(_ answer: Bytes) -> [(name: String, contents: Bytes)] {
        guard let listing = try? Listing<SupportText>(reading: answer) else { return [] }
        return listing.rows.filter { Self.isPlain($0.name) }.map { ($0.name, Bytes($0.text.utf8)) }
    }

    /// A name that stays inside the archive's folder.
    private static func isPlain(_ name: String) -> Bool {
        (1...32).contains(name.utf8.count) && !name.hasPrefix(".")
            && name.utf8.allSatisfy { byte in
                byte == 0x2D || byte == 0x2E
                    || (0x30...0x39).contains(byte) || (0x61...0x7A).contains(byte)
            }
    }

    private func tell(_ path: String, size: Int, fileCount: Int, missing: [String]) -> ExitCode {
        var text = "wrote \(path): \(fileCount) files, \(size >> 10) KiB\n"
        if !missing.isEmpty {
            text += "nothing from \(missing.joined(separator: ", ")): ask there as well\n"
        }
        text += "It holds no token, key or record. Look into it before you pass it on.\n"
        let summary = SupportSummary {
            $0.path = path
            $0.bytes = Int64(size)
            $0.files = Int64(fileCount)
            $0.missing = missing
        }
        return self.show(summary, text)
    }
}
