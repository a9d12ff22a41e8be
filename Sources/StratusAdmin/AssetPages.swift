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
        ) { AdminAnswer.json(Self.json(await $0.control.copies())) },
        AdminRoute(
            "POST", "/v1/assets/verify", need: .node,
            answer: "how many partitions have files here; they are all read back from now on"
        ) { try await Self.verify($0) },
        AdminRoute(
            "GET", "/v1/assets/lost",
            answer:
                "files of the whole cluster of which no node has a sound copy, as JSON lines with "
                + "the record that holds each; the last line says `done`"
        ) { try Self.lost($0) },
    ]

    private static func lost(_ exchange: AdminExchange) throws -> HTTPResponse {
        HTTPResponse(
            status: 200,
            headers: ["Content-Type": "application/jsonl", "Cache-Control": "no-store"],
            body: .stream(LostFilesLines(LostFilesWalk(try exchange.directory)), length: nil))
    }

    private static func verify(_ exchange: AdminExchange) async throws -> HTTPResponse {
        let count = await exchange.control.verifyCopies()
        await exchange.noteAfterwards("assets verify", "\(count) partitions")
        var json = JSONWriter()
        json.object { $0.member("partitions", Int64(count)) }
        return AdminAnswer.json(json.finish())
    }

    static func json(_ copies: CopyStatus) -> Bytes {
        var json = JSONWriter()
        json.object { json in
            json.member("packBytes", Int64(copies.packBytes))
            json.member("liveBytes", Int64(copies.liveBytes))
            json.member("missing", Int64(copies.missingCount))
            json.member("unnamed", Int64(copies.unnamedCount))
            json.member("damaged", Int64(copies.damagedCount))
            json.member("lost", Int64(copies.lostCount))
            json.member("repaired", Int64(copies.repairedCount))
            json.member("removed", Int64(copies.removedCount))
            json.member("lackingPartitions", Int64(copies.lackingCount))
            json.member("failingPartitions", Int64(copies.failingCount))
            json.member("readingBackPartitions", Int64(copies.readingBackCount))
        }
        return json.finish()
    }
}
