import StratusAdminModel
import StratusCommandLine
import StratusHTTP
import StratusModel
import StratusProcess

/// `stratusctl user export`: the archive to standard output and, with `--assets`, its files into a
/// directory.
struct ExportCommand: AdminConversation {
    let context: ControlContext

    init(_ context: ControlContext) { self.context = context }

    /// Names that are remembered, so that a file of many records is looked at once. A file beyond
    /// them is compared again.
    private static let seenMax = 1_000_000

    private struct Counts {
        var written = 0
        var present = 0
        var failed = 0
    }

    /// What came of one try.
    private enum Try {
        case done
        case again(String)
        case refused(String)
    }

    func run() async throws(AdminClient.Failure) -> ExitCode {
        guard let path = self.invocation["assets"] else {
            var isWritten = true
            try await self.archive(hasFiles: false) { piece throws(AdminClient.Failure) in
                isWritten = Terminal.write(piece, to: Terminal.output)
                return isWritten
            }
            return isWritten ? .success : .inputOutput
        }
        let folder = try Self.folder(path)
        guard try await self.list(into: folder) else { return .inputOutput }
        let counts = try await self.fetch(into: folder)
        self.tell(counts)
        return counts.failed == 0 ? .success : .refused
    }

    private static func folder(_ path: String) throws(AdminClient.Failure) -> ExportFolder {
        do throws(ExportFolder.Failure) { return try ExportFolder(path) } catch {
            if error.isLocked {
                throw Failure(.temporary, "another export writes into '\(path)'")
            }
            throw Failure(.usage, "'--assets' names no directory to write into: \(error)")
        }
    }

    private func archive(
        hasFiles: Bool, take: (Bytes) throws(AdminClient.Failure) -> Bool
    ) async throws(AdminClient.Failure) {
        let body = PlaceBody {
            $0.container = self.invocation.value("container")
            $0.environment = self.invocation.value("environment")
            $0.files = hasFiles
        }
        let path =
            "/v1/users/" + PercentCoding.encode(self.invocation.value("email")) + "/export"
        try await self.client.pieces("POST", path, body: body.json, take: take)
    }

    /// Prints the archive, and remembers the files that it names.
    ///
    /// - Returns: false: it could not be printed.
    private func list(into folder: ExportFolder) async throws(AdminClient.Failure) -> Bool {
        var splitter = ArchiveSplitter()
        var isWritten = true
        try await self.archive(hasFiles: true) { piece throws(AdminClient.Failure) in
            let part = try Self.understood { () throws(ArchiveSplitter.Refusal) in
                try splitter.add(piece)
            }
            try Self.onDisk { () throws(ExportFolder.Failure) in try folder.note(part.files) }
            isWritten = Terminal.write(part.shown, to: Terminal.output)
            return isWritten
        }
        guard isWritten else { return false }
        try Self.understood { () throws(ArchiveSplitter.Refusal) in try splitter.finish() }
        return true
    }

    private func fetch(into folder: ExportFolder) async throws(AdminClient.Failure) -> Counts {
        var counts = Counts()
        var patience = FetchPatience()
        var seen: Set<UInt128> = []
        var rest = Bytes()
        try Self.onDisk { () throws(ExportFolder.Failure) in try folder.rewind() }
        while true {
            let lines = try Self.onDisk { () throws(ExportFolder.Failure) in
                try folder.lines(after: &rest)
            }
            if lines.isEmpty { break }
            for line in lines {
                guard let file = FileToFetch(line: line) else {
                    throw Failure(.inputOutput, "the node's answer is not an export")
                }
                if seen.contains(file.number) { continue }
                if seen.count < Self.seenMax { seen.insert(file.number) }
                try await self.fetch(file, into: folder, &patience, &counts)
            }
        }
        try Self.onDisk { () throws(ExportFolder.Failure) in try folder.sync() }
        return counts
    }

    private func fetch(
        _ file: FileToFetch, into folder: ExportFolder, _ patience: inout FetchPatience,
        _ counts: inout Counts
    ) async throws(AdminClient.Failure) {
        switch try Self.onDisk({ () throws(ExportFolder.Failure) in try folder.state(of: file) }) {
        case .same:
            counts.present += 1
            return
        case .blocked(let reason):
            counts.failed += 1
            return self.tell(file, reason)
        case .other: break
        }
        var tryCount = 0
        while true {
            tryCount += 1
            switch try await self.fetch(file, into: folder) {
            case .done:
                counts.written += 1
                return
            case .again(let reason):
                guard let pause = patience.pause(after: tryCount) else {
                    counts.failed += 1
                    return self.tell(file, reason)
                }
                try? await Task.sleep(for: pause)
            case .refused(let reason):
                counts.failed += 1
                return self.tell(file, reason)
            }
        }
    }

    /// Asks for a file once.
    ///
    /// - Throws: where it cannot be written. The next one could not be either.
    private func fetch(_ file: FileToFetch, into folder: ExportFolder)
        async throws(AdminClient.Failure) -> Try
    {
        let writing = try Self.onDisk { () throws(ExportFolder.Failure) in try folder.begin(file) }
        var broken: Failure?
        do throws(AdminClient.Failure) {
            try await self.client.pieces(
                "GET", "/v1/exports/files/\(file.ticket)",
                deadline: FetchPatience.deadline(for: file.size)
            ) { piece throws(AdminClient.Failure) in
                do throws(ExportFolder.Failure) { return try writing.add(piece) } catch {
                    broken = Failure(.inputOutput, error.description)
                    return false
                }
            }
        } catch {
            switch error.code {
            case .temporary, .inputOutput, .unavailable: return .again(error.description)
            default: return .refused(error.description)
            }
        }
        if let broken { throw broken }
        let fault = try Self.onDisk { () throws(ExportFolder.Failure) in try writing.finish() }
        return fault.map { .again($0) } ?? .done
    }

    // MARK: Words

    private func tell(_ file: FileToFetch, _ reason: String) {
        if self.isJSON {
            let trouble = ExportTrouble {
                $0.file = file.name
                $0.reason = reason
            }
            Terminal.write(trouble.line, to: Terminal.errors)
        } else {
            Terminal.write("stratusctl: file \(file.name): \(reason)\n", to: Terminal.errors)
        }
    }

    private func tell(_ counts: Counts) {
        if self.isJSON {
            let summary = ExportCounts {
                $0.written = Int64(counts.written)
                $0.present = Int64(counts.present)
                $0.failed = Int64(counts.failed)
            }
            Terminal.write(summary.line, to: Terminal.errors)
        } else {
            Terminal.write(
                "files: \(counts.written) written, \(counts.present) already there, "
                    + "\(counts.failed) failed\n", to: Terminal.errors)
        }
    }

    private static func onDisk<Value>(_ work: () throws(ExportFolder.Failure) -> Value)
        throws(AdminClient.Failure) -> Value
    {
        do throws(ExportFolder.Failure) { return try work() } catch {
            throw Failure(.inputOutput, error.description)
        }
    }

    private static func understood<Value>(_ work: () throws(ArchiveSplitter.Refusal) -> Value)
        throws(AdminClient.Failure) -> Value
    {
        do throws(ArchiveSplitter.Refusal) { return try work() } catch {
            throw Failure(
                error == .namesNoFiles ? .unavailable : .inputOutput,
                error == .namesNoFiles
                    ? "the node is of a version that names no files: upgrade it, or leave out "
                        + "'--assets'"
                    : "the node's answer is not an export, or was cut off")
        }
    }
}
