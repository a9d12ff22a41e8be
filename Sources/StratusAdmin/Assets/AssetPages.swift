import StratusAdminModel
import StratusContainers
import StratusHTTP
import StratusModel
import StratusRuntime

/// `/v1/assets`: the files of records that this node keeps.
enum AssetPages {
    static let routes: [AdminRoute] = [
        AdminRoute(
            "GET", "/v1/assets", need: .node,
            answer:
                "the files that this node keeps: bytes, and copies missing, damaged and repaired"
        ) { AdminAnswer.json(AssetsAnswer(await $0.control.copies())) },
        AdminRoute(
            "POST", "/v1/assets/verify", need: .node,
            answer: "how many partitions have files here; they are all read back from now on"
        ) { try await Self.verify($0) },
        AdminRoute(
            "POST", "/v1/assets/audit", need: .node,
            answer:
                "how many partitions have a replica here; rows, index and packs of their files are "
                + "compared from now on"
        ) { try await Self.audit($0) },
        AdminRoute(
            "GET", "/v1/assets/audit", need: .node,
            answer:
                "copies that are missing or left over on this node; 500 behind `?after=`, and `next`"
        ) { try await Self.differences($0) },
        AdminRoute(
            "GET", "/v1/assets/lost", isLong: true,
            answer:
                "files of the whole cluster of which no node has a sound copy, as JSON lines with "
                + "the record that holds each; the last line says `done`"
        ) { try Self.lines(.lostFiles, $0) },
        AdminRoute(
            "GET", "/v1/assets/rows", isLong: true,
            answer:
                "rows of the whole cluster that say different things of a file, as JSON lines; the "
                + "last line says `done`"
        ) { try Self.lines(.rows, $0) },
    ]

    private static func lines(_ look: AssetWalk.Look, _ exchange: AdminExchange) throws
        -> HTTPResponse
    {
        AdminAnswer.lines(AssetLines(AssetWalk(for: look, try exchange.directory)))
    }

    private static func verify(_ exchange: AdminExchange) async throws -> HTTPResponse {
        let count = await exchange.control.verifyCopies()
        await exchange.noteAfterwards("assets verify", "\(count) partitions")
        return AdminAnswer.json(PartitionsAnswer { $0.partitions = Int64(count) })
    }

    private static let differenceCountMax = 500

    private static func audit(_ exchange: AdminExchange) async throws -> HTTPResponse {
        let count = await exchange.control.auditCopies()
        await exchange.noteAfterwards("assets audit", "\(count) partitions")
        return AdminAnswer.json(PartitionsAnswer { $0.partitions = Int64(count) })
    }

    private static func differences(_ exchange: AdminExchange) async throws -> HTTPResponse {
        let found = await exchange.control.copyDifferences(
            after: try Self.place(exchange.query?["after"]), limit: Self.differenceCountMax)
        return AdminAnswer.json(
            CopyDifferencesAnswer {
                $0.differences = found.map { one in
                    CopyDifferenceRow {
                        // Partitions are numbered from 0, and the system group comes before them.
                        $0.partition = Int64(one.group.raw) - 1
                        $0.body = String(one.name.body.raw, radix: 16)
                        $0.chunk = Int64(one.name.ordinal)
                        $0.kind = one.isMissing ? "missing" : "leftOver"
                    }
                }
                if found.count == Self.differenceCountMax { $0.next = found.last.map(Self.text) }
            })
    }

    /// PARTITION/BODY/CHUNK.
    private static func text(_ place: CopyDifference) -> String {
        "\(Int64(place.group.raw) - 1)/\(String(place.name.body.raw, radix: 16))"
            + "/\(place.name.ordinal)"
    }

    private static func place(_ text: String?) throws -> CopyDifference? {
        guard let text, !text.isEmpty else { return nil }
        let parts = text.split(separator: "/", omittingEmptySubsequences: false)
        guard parts.count == 3, let partition = UInt16(parts[0]), partition < .max,
            let body = UInt128(parts[1], radix: 16), let chunk = UInt32(parts[2])
        else { throw AdminRefusal.bad("'after' must be PARTITION/BODY/CHUNK") }
        return CopyDifference(
            group: GroupID(partition + 1), name: CopyName(body: BodyID(body), ordinal: chunk),
            isMissing: true)
    }
}

extension AssetsAnswer {
    init(_ copies: CopyStatus) {
        self.init()
        self.packBytes = Int64(copies.packBytes)
        self.liveBytes = Int64(copies.liveBytes)
        self.missing = Int64(copies.missingCount)
        self.unnamed = Int64(copies.unnamedCount)
        self.damaged = Int64(copies.damagedCount)
        self.lost = Int64(copies.lostCount)
        self.repaired = Int64(copies.repairedCount)
        self.removed = Int64(copies.removedCount)
        self.lackingPartitions = Int64(copies.lackingCount)
        self.failingPartitions = Int64(copies.failingCount)
        self.readingBackPartitions = Int64(copies.readingBackCount)
        self.comparingPartitions = Int64(copies.comparingCount)
    }
}
