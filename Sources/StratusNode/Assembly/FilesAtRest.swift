import StratusCluster
import StratusCommandLine
import StratusConfiguration
import StratusModel
import StratusProcess
import StratusRuntime
import StratusSealing
import StratusStorage

/// The files of a data directory that is sealed, and the master keys that open them.
///
/// Version 0 comes from the cluster's secret, or from `token.key` on a node alone. A node that was
/// alone before still has files under the latter, so both are tried.
struct FilesAtRest {
    /// Its files are sealed.
    let world: RealWorld
    private let disk: RealWorld
    private let masters: FileMasters
    private let path: String
    private let hasSecret: Bool

    /// - Parameter isAlone: what is written is for a node alone, whatever the settings say: it is one
    ///   until it is converted, also if it starts as a cluster's by mistake.
    init(
        _ settings: ConfigurationSettings, _ disk: RealWorld, _ directory: DataDirectory,
        isAlone: Bool = false
    ) throws(NodeFailure) {
        let path = settings.text("dataDirectory") ?? ""
        var zeros: [FileMasters.Master] = []
        let secret = try PeerCertificates.secret(settings)
        if let secret {
            zeros.append(Self.zero(ClusterFormation.key(for: "files at rest", secret: secret)))
        }
        if let key = try Self.tokenKey(path) {
            zeros.insert(Self.zero(key), at: isAlone ? 0 : zeros.count)
        }
        let named = try Node.namedMasters(settings)
        let masters = named.sorted { $0.key < $1.key }.map { FileMasters.Master($0.key, $0.value) }
        let version = try Node.sealingMaster(settings, named)
        let sealing = named[version].map { FileMasters.Master(version, $0) } ?? zeros.first
        guard let sealing else {
            throw NodeFailure(
                .inputOutput, "'\(path)/token.key' is missing: restore it from a backup")
        }
        self.masters = FileMasters(
            sealing: sealing, others: zeros + masters, directory: directory.identity)
        self.world = RealWorld(files: Self.sealed(disk, self.masters))
        self.disk = disk
        self.path = path
        self.hasSecret = secret != nil
    }

    /// Files that know nothing of what was read or written through others.
    func opened() -> any Files { Self.sealed(self.disk, self.masters) }

    private static func sealed(_ disk: RealWorld, _ masters: FileMasters) -> SealedFiles {
        SealedFiles(disk.files, masters: masters) { disk.random() }
    }

    /// Looks at every file before one is opened, and wraps keys anew that are under an older master
    /// key.
    func survey(_ log: Log) throws(NodeFailure) {
        let disk = self.disk
        var survey = SealedSurvey(disk.files, masters: self.masters) { disk.random() }
        do { try survey.run() } catch let refusal as SealedSurvey.Refusal {
            throw NodeFailure(
                .configuration, "'\(self.path)': \(refusal)\(self.advice(refusal.problem))")
        } catch { throw NodeFailure(.inputOutput, "'\(self.path)': \(error)") }
        for path in survey.damaged {
            log.error(
                "the header of a sealed file is damaged: its content is lost",
                ["path": .text(path.raw)])
        }
        log.info(
            "the data directory is sealed",
            [
                "files": .count(survey.sealedCount),
                "rewrapped": .count(survey.rewrappedCount),
            ])
    }

    private func advice(_ problem: FileMasters.Problem) -> String {
        switch problem {
        case .missing: ". Add that key to 'keys.masterFiles'"
        case .other(version: 0) where self.hasSecret:
            ". Restore 'token.key', or the cluster's secret, from a backup"
        case .other(version: 0):
            ". Restore 'token.key' from a backup; if the node belongs to a cluster, its configuration "
                + "lacks the 'cluster' section"
        case .other: ". Correct its file in 'keys.masterFiles'"
        case .clear:
            ", and this data directory is. Restore it from a backup, or let the node join anew"
        case .damaged: ""
        }
    }

    private static func zero(_ secret: Bytes) -> FileMasters.Master {
        FileMasters.Master(
            0,
            KeyDerivation.derive(
                from: SecretBytes(copying: secret), info: Bytes("stratus files at rest 0".utf8)))
    }

    private static func tokenKey(_ path: String) throws(NodeFailure) -> Bytes? {
        let file = path + "/token.key"
        if SmallFile.state(file) == .absent { return nil }
        do throws(SmallFile.Failure) { return try SmallFile.read(file, limit: 64) } catch {
            throw NodeFailure(.inputOutput, "the key of the sealed files: \(error)")
        }
    }
}
