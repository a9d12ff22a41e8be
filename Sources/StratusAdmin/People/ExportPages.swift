import StratusAdminModel
import StratusContainers
import StratusHTTP
import StratusModel
import StratusRuntime

/// The bytes of files that an export named.
///
/// An export is noted in the audit trail before it names a file, and nothing else makes tickets. So
/// the reading of a file needs no entry of its own: a line in the log tells of each.
enum ExportPages {
    static let routes: [AdminRoute] = [
        AdminRoute(
            "GET", "/v1/exports/files/{ticket}", isLong: true,
            answer: "the bytes of one file that an export with `files` named"
        ) { try await Self.file($0) }
    ]

    private static func file(_ exchange: AdminExchange) async throws -> HTTPResponse {
        guard let files = exchange.services.files else {
            throw AdminRefusal(404, .notFound, "this node has no files")
        }
        let file: ExportedFile
        do { file = try await files.open(exchange.parameter("ticket")) } catch let refusal
            as ExportedFileRefusal
        { throw Self.refusal(refusal) }
        exchange.log.info(
            "a file of an export is read",
            [
                "request": .text(exchange.request.identity.uuid),
                "peer": .text(exchange.request.peer), "bytes": .integer(Int64(clamping: file.size)),
            ])
        var response = HTTPResponse(
            status: 200,
            headers: ["Content-Type": "application/octet-stream", "Cache-Control": "no-store"],
            body: .stream(file.body, length: Int(clamping: file.size)))
        response.held = file.held
        return response
    }

    private static func refusal(_ refusal: ExportedFileRefusal) -> AdminRefusal {
        switch refusal {
        case .unknownTicket:
            AdminRefusal(
                400, .badTicket, "this is not the ticket of a file: only an export makes tickets")
        case .expiredTicket:
            AdminRefusal(400, .badTicket, "the ticket has expired: repeat the export")
        case .missing:
            AdminRefusal(
                404, .notFound,
                "the file has gone since the export named it: nothing holds it any more, or its key "
                    + "was destroyed")
        case .lost(let reason): AdminRefusal(410, .lost, reason)
        case .later(let reason):
            AdminRefusal(503, .tryAgainLater, "\(reason): try again in a moment")
        }
    }
}
