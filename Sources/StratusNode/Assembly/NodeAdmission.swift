import StratusCluster
import StratusCommandLine
import StratusConfiguration
import StratusModel
import StratusPlacement
import StratusProcess
import StratusRuntime

/// The first start of a node that is to join a cluster: asks its members, one after the other,
/// until one admits it, and writes down who it is from here on. Later starts find that and ask
/// nobody.
struct NodeAdmission {
    private static let patience = Duration.seconds(60)
    private static let pause = Duration.milliseconds(500)

    private let settings: ConfigurationSettings
    private let world: RealWorld
    private let log: Log
    private let certificates: PeerCertificates
    private let loop: EventLoop

    init(
        _ settings: ConfigurationSettings, world: RealWorld, log: Log,
        certificates: PeerCertificates, loop: EventLoop
    ) {
        self.settings = settings
        self.world = world
        self.log = log
        self.certificates = certificates
        self.loop = loop
    }

    func seek() async throws(NodeFailure) {
        guard ClusterPeers.isJoining(self.settings),
            let name = self.settings.text("cluster.name")
        else { return }
        do throws(ClusterFormation.Refusal) {
            if let kept = try ClusterFormation.kept(in: self.world) {
                if kept.isAlone {
                    throw ClusterFormation.Refusal.another(
                        "the data directory belongs to a node that serves alone, and a node that "
                            + "joins brings no data: give it an empty directory. The node whose "
                            + "data the cluster keeps lists itself in 'cluster.peers'")
                }
                guard kept.name == name else {
                    throw ClusterFormation.Refusal.another(
                        "the data directory belongs to node '\(kept.name)'; the configuration "
                            + "is for '\(name)'")
                }
                return
            }
        } catch { throw NodeFailure(.configuration, error.description) }
        let admission = try await self.admission(try self.question(name))
        guard let view = try? ClusterView(decoding: admission.view) else {
            throw NodeFailure(.inputOutput, "the cluster's answer cannot be read by this version")
        }
        // Before anything is written: what is sealed under another secret would have to go again.
        if let sealed = view.settings.master,
            let secret = try PeerCertificates.secret(self.settings)
        {
            do throws(ClusterMaster.Refusal) {
                _ = try ClusterMaster(opening: sealed, with: secret)
            } catch { throw NodeFailure(.configuration, error.description) }
        }
        let formation = ClusterFormation(
            joined: view.settings.cluster, as: admission.node, name: name,
            partitionCount: view.settings.partitionCount)
        do throws(DiskError) {
            // The view first: whoever is a member must know of what.
            try ClusterDirectory.keep(view, in: self.world)
            try formation.keep(in: self.world)
        } catch { throw NodeFailure(.inputOutput, "the data directory: \(error)") }
        self.log.info(
            "admitted to the cluster",
            ["node": .describing(admission.node), "cluster": .describing(view.settings.cluster)])
    }

    private func question(_ name: String) throws(NodeFailure) -> PeerJoin {
        guard let address = ClusterPeers.addresses(self.settings)[name],
            let path = self.settings.text("cluster.joinTokenFile")
        else { preconditionFailure("'cluster.join' was checked with the configuration") }
        var token: Bytes
        do throws(SmallFile.Failure) {
            token = try SmallFile.read(path, limit: .kibibytes(4))
        } catch { throw NodeFailure(.missingInput, "'cluster.joinTokenFile': \(error)") }
        token.removeAll { $0 <= 0x20 }
        return PeerJoin(
            name: name, address: address,
            weight: UInt32(clamping: self.settings.integer("cluster.weight")),
            rack: self.settings.text("cluster.rack") ?? "",
            featureLevel: FeatureLevel.build.rawValue, token: token)
    }

    private func admission(_ join: PeerJoin) async throws(NodeFailure) -> PeerAdmission {
        let deadline = self.world.now + Self.patience
        var last = ""
        while true {
            for member in ClusterPeers.members(self.settings) {
                switch await JoinDialog.ask(
                    join, of: member, tls: self.certificates.forLinks.client(), loop: self.loop)
                {
                case .admitted(let admission): return admission
                case .refused(let refusal) where refusal.reason == .notAdmitted:
                    throw NodeFailure(
                        .denied, "'\(member.name)' says for the cluster: \(refusal.text)")
                case .refused(let refusal): last = "\(member.name): \(refusal.text)"
                case .unreachable(let why): last = "\(member.name): \(why)"
                }
                self.log.warning("not admitted yet", ["reason": .text(last)])
            }
            guard self.world.now < deadline else {
                throw NodeFailure(
                    .unavailable, "no member of the cluster could admit this node: \(last)")
            }
            try? await Task.sleep(for: Self.pause)
        }
    }
}
