import StratusCluster
import StratusCommandLine
import StratusConfiguration
import StratusModel
import StratusProcess
import StratusRuntime
import StratusStorage

/// `stratus cluster convert`: makes a node that serves alone the first node of a cluster. The node
/// is stopped meanwhile, and starts as that node afterwards; the others join it.
///
/// The file MASTER is written before the file CLUSTER, which decides. A command that was cut off
/// leaves a node that still serves alone, and may be run again.
struct ConvertCommand {
    static let definition = CommandDefinition(
        "convert",
        "Make a node that serves alone the first node of a cluster",
        discussion: [
            "The node keeps its data, and everything that clients hold stays good: record names, "
                + "sync tokens, change tags, sessions, API tokens. Its cluster keeps the identity "
                + "of its data. Other nodes join it by token; their data directories are empty.",
            "Stop the node first. Its configuration names it in 'cluster.peers', alone, and has "
                + "the rest of a 'cluster' section. Then start it with that configuration. The "
                + "command takes no time, copies nothing, and may be repeated. It cannot be "
                + "undone once another node has joined.",
        ],
        options: [
            .value(
                "config", .file, required: true,
                "The configuration that the node is to start with, JSON5")
        ],
        examples: [
            .init(
                "stratus cluster convert --config /etc/stratus/stratus.json5",
                "Between stop and start")
        ])

    private typealias Failure = OfflineCommand.Failure

    static func run(_ invocation: Invocation) -> ExitCode {
        OfflineCommand.run { try Self.convert(invocation) }
    }

    /// - Returns: what to tell.
    private static func convert(_ invocation: Invocation) throws -> String {
        let result = try ConfigurationLoading.load(invocation.value("config"))
        let name = try Self.name(in: result.settings)
        let settings = try result.sound()
        // What the node will need at its start is looked at while it can still be mended.
        guard let secret = try PeerCertificates.secret(settings),
            try PeerCertificates.make(settings) != nil
        else { preconditionFailure("'cluster.peers' was checked") }
        let path = settings.text("dataDirectory") ?? ""
        guard case .file = SmallFile.state(path + "/CLUSTER") else {
            throw Failure(
                .missingInput,
                "'\(path)' is not the data directory of a node that has served: a cluster without "
                    + "data is formed by its list of peers, and needs no conversion")
        }
        let disk = try RealWorld(dataDirectory: path)
        let lock: DataDirectory
        do throws(DataDirectory.Refusal) {
            lock = try DataDirectory(in: disk, atRest: settings.bool("storage.atRest"))
        } catch {
            let advice = error == .inUse ? ": stop the node first" : ""
            throw Failure(.system, "'\(path)': \(error)\(advice)")
        }
        defer { withExtendedLifetime(lock) {} }
        let world =
            try lock.isSealed
            ? FilesAtRest(settings, disk, lock, isAlone: true).world : disk
        guard let kept = try Self.formation(path, world, isSealed: lock.isSealed) else {
            throw Failure(.missingInput, "the file CLUSTER is gone")
        }
        if kept.convertedLevel != nil {
            return try Self.again(kept, as: name, secret, world)
        }
        guard kept.isAlone else {
            throw Failure(
                .refused,
                "'\(path)' belongs to node '\(kept.name)' of a cluster already: start it with "
                    + "that node's configuration")
        }
        let plan = NodePlan(settings: settings)
        let master = ClusterMaster(
            key: try Self.tokenKey(of: path, settings, world),
            adminToken: try Self.adminToken(of: plan))
        let formation = ClusterFormation(
            converting: kept, to: name, level: FeatureLevel.build.rawValue)
        try ClusterMaster.keep(master.sealed(under: secret), in: world)
        try formation.keep(in: world)
        return Self.done(name, kept)
    }

    private static func done(_ name: String, _ kept: ClusterFormation) -> String {
        let lines = [
            "Converted: this node is '\(name)', the first node of cluster \(kept.cluster), with "
                + "\(kept.partitionCount) partitions.",
            "Start it with this configuration. Then let other nodes join, each with a token of "
                + "'stratusctl cluster join-token'.",
            "The file MASTER takes the place of token.key: back it up, and the cluster's secret "
                + "apart from it.",
        ]
        return lines.joined(separator: "\n") + "\n"
    }

    private static func formation(_ path: String, _ world: RealWorld, isSealed: Bool) throws
        -> ClusterFormation?
    {
        do throws(ClusterFormation.Refusal) {
            return try ClusterFormation.kept(in: world)
        } catch {
            guard isSealed else { throw error }
            let file = path + "/token.key"
            let isMissing = SmallFile.state(file) == .absent
            throw Failure(
                isMissing ? .missingInput : .configuration,
                "\(error). The files are sealed under '\(file)', which is "
                    + "\(isMissing ? "missing" : "another one"): restore it")
        }
    }

    /// The name that the node gets, from a configuration that lists it alone.
    private static func name(in settings: ConfigurationSettings) throws(Failure) -> String {
        guard settings.texts("cluster.join").isEmpty else {
            throw Failure(
                .configuration,
                "'cluster.join' is for nodes that come later and bring no data: the node to "
                    + "convert lists itself in 'cluster.peers'")
        }
        let peers = settings.texts("cluster.peers")
        guard !peers.isEmpty else {
            throw Failure(
                .configuration,
                "the configuration names no cluster: set 'cluster.name', 'cluster.secretFile', "
                    + "'cluster.tls', and 'cluster.peers' to this node alone, as "
                    + "[\"a@HOST:PORT\"]")
        }
        guard peers.count == 1 else {
            throw Failure(
                .configuration,
                "list only this node in 'cluster.peers': the others join it by token. Nodes that "
                    + "list each other would form a second cluster without this node's data")
        }
        return settings.text("cluster.name") ?? ""
    }

    /// The conversion was done before.
    private static func again(
        _ kept: ClusterFormation, as name: String, _ secret: Bytes, _ world: RealWorld
    ) throws -> String {
        guard kept.name == name else {
            throw Failure(
                .refused,
                "this node was converted under the name '\(kept.name)', which never changes: the "
                    + "configuration says '\(name)'")
        }
        guard let sealed = try ClusterMaster.kept(in: world) else {
            throw ClusterMaster.Refusal.missing
        }
        _ = try ClusterMaster(opening: sealed, with: secret)
        return "This node is converted already: it is '\(name)' of cluster \(kept.cluster). "
            + "Start it with this configuration.\n"
    }

    /// The key from which the node's names and tokens come. It must be the one that the data was
    /// used with: everybody's names come from it.
    private static func tokenKey(
        of path: String, _ settings: ConfigurationSettings, _ world: RealWorld
    ) throws -> Bytes {
        let file = path + "/token.key"
        let key: Bytes
        do throws(SmallFile.Failure) { key = try SmallFile.read(file, limit: 64) } catch {
            throw Failure(
                .missingInput, "\(error); without it nobody finds their data: restore it")
        }
        guard key.count == ClusterMaster.keySize else {
            throw Failure(.malformedInput, "'\(file)' must hold 32 bytes: restore it")
        }
        _ = try Node.openMaster(settings, key, world)
        return key
    }

    /// The text of the node's administrators' token, which becomes the cluster's; empty if it has
    /// none yet.
    private static func adminToken(of plan: NodePlan) throws -> Bytes {
        let path = plan.adminTokenFile
        guard SmallFile.state(path) != .absent else { return [] }
        do throws(AdminToken.Failure) { return try AdminToken.text(path) } catch {
            throw Failure(.configuration, "the administrators' token: \(error)")
        }
    }
}
