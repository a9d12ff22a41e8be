import Glibc
import StratusCluster
import StratusCommandLine
import StratusConfiguration
import StratusModel
import StratusProcess
import StratusRuntime
import StratusSealing
import StratusStorage

/// `stratus data-directory seal` and `unseal`: bring the data directory of a stopped node into the
/// other form. ``DirectoryConversion`` does it; this finds the keys and says what was done.
struct SealCommand {
    private typealias Form = DataDirectory.Form
    private typealias Failure = OfflineCommand.Failure

    static let definitions = [Self.definition(.sealed), Self.definition(.clear)]

    static func seal(_ invocation: Invocation) -> ExitCode { Self.run(invocation, to: .sealed) }
    static func unseal(_ invocation: Invocation) -> ExitCode { Self.run(invocation, to: .clear) }

    private static func definition(_ form: Form) -> CommandDefinition {
        let isSealed = form == .sealed
        return CommandDefinition(
            isSealed ? "seal" : "unseal",
            isSealed
                ? "Seal a data directory that was used without sealing"
                : "Write a sealed data directory as it would be without sealing",
            discussion: [
                (isSealed
                    ? "Every file gets a key of its own, wrapped under the master key of "
                        + "'keys.sealingMaster'. "
                    : "The configuration still needs every master key that opens a file. ")
                    + "Stop the node first. Its configuration has 'storage.atRest: \(isSealed)'; start "
                    + "the node with it afterwards. Nothing else changes: what clients hold stays good.",
                "The command makes new files beside the old ones and compares them. Then it exchanges "
                    + "them. So the disk needs room for a second copy of everything but files of "
                    + "records. If it is interrupted, run it again.",
                "The old files stay in '\(DirectoryConversion.kept(from: isSealed ? .clear : .sealed))', "
                    + "in the data directory. Remove them when the node serves"
                    + (isSealed ? ": they show everything. " : ". ")
                    + "Do not put them back after that: they are older.",
            ],
            options: [
                .value(
                    "config", .file, required: true,
                    "The configuration that the node is to start with, JSON5"),
                .flag(
                    "remove-old", nil,
                    "Remove the old files as soon as the new ones have taken their places"),
            ],
            examples: [
                .init(
                    "\(form.command) --config /etc/stratus/stratus.json5", "Between stop and start")
            ])
    }

    private static func run(_ invocation: Invocation, to form: Form) -> ExitCode {
        OfflineCommand.run { try SealCommand(invocation, to: form).run() }
    }

    private let form: Form
    private let settings: ConfigurationSettings
    private let path: String
    private let removes: Bool
    private let disk: RealWorld
    /// Locked, as long as this command runs.
    private let directory: DataDirectory

    private init(_ invocation: Invocation, to form: Form) throws {
        self.form = form
        self.settings = try ConfigurationLoading.load(invocation.value("config")).sound()
        self.path = self.settings.text("dataDirectory") ?? ""
        self.removes = invocation.flag("remove-old")
        let isSealed = form == .sealed
        guard self.settings.bool("storage.atRest") == isSealed else {
            throw Failure(
                .configuration,
                "set 'storage.atRest' to \(isSealed) in the configuration: the node starts with it "
                    + "afterwards")
        }
        guard case .file = SmallFile.state(self.path + "/STRATUS") else {
            throw Failure(
                .missingInput,
                "'\(self.path)' is not the data directory of a node that has served: a new one is "
                    + "made with what 'storage.atRest' says")
        }
        try Self.checkOwner(of: self.path)
        self.disk = try RealWorld(dataDirectory: self.path)
        do throws(DataDirectory.Refusal) {
            self.directory = try DataDirectory(toConvert: self.disk.files)
        } catch {
            let advice = error == .inUse ? ": stop the node first" : ""
            throw Failure(.system, "'\(self.path)': \(error)\(advice)")
        }
        if case .converting(let other) = self.directory.state, other != form {
            throw Failure(
                .refused, "'\(self.path)': \(DataDirectory.Refusal.isBeingConverted(to: other))")
        }
    }

    /// The node could not open files that another user has made.
    private static func checkOwner(of path: String) throws(Failure) {
        var status = stat()
        guard stat(path + "/STRATUS", &status) == 0, status.st_uid != geteuid() else { return }
        throw Failure(
            .denied,
            "'\(path)' belongs to the user with the number \(status.st_uid): run this command as that "
                + "user, or the node cannot open the new files")
    }

    // MARK: Doing it

    /// - Returns: what to tell.
    private func run() throws -> String {
        // Names are removed or exchanged, and nothing is opened.
        let ofNames = self.conversion(old: self.disk.files) { self.disk.files }
        switch self.directory.state {
        case .whole(self.form):
            // Of a conversion to the other form that did not come to its end.
            try ofNames.removeUnfinished()
            let isDone = try self.removes && ofNames.removeKept()
            return "'\(self.path)' is \(self.word) already.\n" + (try self.remains(isDone))
        case .converting: return try self.convert(ofNames)
        case .whole: return try self.convert(self.begin())
        }
    }

    private func convert(_ conversion: DirectoryConversion) throws -> String {
        let report: DirectoryConversion.Report
        do throws(DirectoryConversion.Refusal) { report = try conversion.run() } catch {
            throw self.failure(error)
        }
        var text =
            report.isResumed
            ? "'\(self.path)' is \(self.word): an interrupted conversion is finished.\n"
            : "'\(self.path)' is \(self.word): \(report.fileCount) files with "
                + "\(DirectoryConversion.mebibytes(report.size)), each read back and compared.\n"
        text += try self.remains(self.removes && conversion.removeKept())
        return text + "Start the node with this configuration.\n"
    }

    /// What is left to remove, for an operator.
    ///
    /// - Parameter isRemoved: whether the old files were there and are gone.
    private func remains(_ isRemoved: Bool) throws -> String {
        let left = try DirectoryConversion.remains(in: self.disk.files).map {
            "Files from before are in '\(self.path)/\($0)'. Remove them when the node serves.\n"
        }
        return (isRemoved ? "The old files are removed.\n" : "") + left.joined()
    }

    private var word: String { self.form == .sealed ? "sealed" : "not sealed" }

    private func failure(_ refusal: DirectoryConversion.Refusal) -> Failure {
        let text = "'\(self.path)': \(refusal)"
        switch refusal {
        case .isKept, .isTooFull: return Failure(.refused, text)
        case .unreadable(_, let error) where error.kind == .sealed:
            return Failure(.configuration, text + Self.keyAdvice)
        case .unreadable(_, let error) where error.kind == .damaged:
            return Failure(
                .inputOutput,
                text + ". Its content is lost: restore the file from a backup, or remove this node "
                    + "from its cluster and let it join anew")
        case .unreadable, .differs, .disk: return Failure(.inputOutput, text)
        }
    }

    private static let keyAdvice =
        ". Its key must be in 'keys.masterFiles', or come from 'token.key' or the cluster's secret"

    // MARK: Keys

    /// Opens the files as they are and as they are to be. What the node will need at its start is
    /// looked at while it can still be mended.
    private func begin() throws -> DirectoryConversion {
        let disk = self.disk
        if self.form == .clear {
            let atRest = try self.filesAtRest(isAlone: false)
            try self.checkKeys(atRest.world)
            return self.conversion(old: atRest.world.files) { disk.files }
        }
        let isAlone = try self.checkKeys(disk)
        let atRest = try self.filesAtRest(isAlone: isAlone)
        return self.conversion(old: disk.files) { atRest.opened() }
    }

    private func filesAtRest(isAlone: Bool) throws(NodeFailure) -> FilesAtRest {
        try FilesAtRest(self.settings, self.disk, self.directory, isAlone: isAlone)
    }

    /// The master keys must be those that the directory was used with.
    ///
    /// - Returns: whether its node serves alone.
    @discardableResult private func checkKeys(_ world: RealWorld) throws -> Bool {
        let kept: ClusterFormation?
        do throws(ClusterFormation.Refusal) { kept = try ClusterFormation.kept(in: world) } catch {
            if self.form == .sealed { throw error }
            throw Failure(.configuration, "'\(self.path)': \(error)\(Self.keyAdvice)")
        }
        guard let formation = kept else {
            throw Failure(.missingInput, "'\(self.path)': the file CLUSTER is missing")
        }
        let secret = try PeerCertificates.secret(self.settings)
        let key: Bytes
        if let secret, !formation.isAlone {
            let master = try ClusterMaster.kept(in: world)
            key =
                try master.map { try ClusterMaster(opening: $0, with: secret).key }
                ?? ClusterFormation.key(for: "sync tokens", secret: secret)
        } else {
            let file = self.path + "/token.key"
            do throws(SmallFile.Failure) { key = try SmallFile.read(file, limit: 64) } catch {
                throw Failure(
                    .missingInput,
                    "\(error). "
                        + (formation.isAlone
                            ? "Restore it from a backup"
                            : "The node belongs to a cluster: its configuration lacks the 'cluster' "
                                + "section"))
            }
        }
        _ = try Node.openMaster(self.settings, key, world, notes: false)
        return formation.isAlone
    }

    private func conversion(
        old: any Files, new: @escaping () -> any Files
    ) -> DirectoryConversion {
        let disk = self.disk
        let progress = Progress(self.form == .sealed ? "Sealing" : "Unsealing")
        return DirectoryConversion(
            of: self.directory, to: self.form, disk: disk.files, old: old, new: new,
            listed: { () throws(DiskError) in try SealedSurvey.paths(in: disk.files) },
            progress: { done, all in progress.tell(done, of: all) })
    }

    /// The line on a terminal.
    private final class Progress {
        private var bar: ProgressBar
        private let start = ContinuousClock().now

        init(_ title: String) {
            self.bar = ProgressBar(
                title, isTerminal: Terminal.isTerminal(Terminal.errors), width: Terminal.width)
        }

        func tell(_ done: UInt64, of all: UInt64) {
            let line =
                done >= all
                ? self.bar.finish()
                : self.bar.update(
                    done: Int(done >> 20), total: Int(all >> 20), unit: "MiB",
                    elapsed: ContinuousClock().now - self.start)
            if let line { Terminal.write(line, to: Terminal.errors) }
        }
    }
}
