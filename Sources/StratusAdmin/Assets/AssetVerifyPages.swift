import StratusAdminModel
import StratusContainers
import StratusHTTP
import StratusModel
import StratusRuntime

/// The files of one container, read back on this node.
enum AssetVerifyPages {
    static let routes: [AdminRoute] = [
        AdminRoute(
            "POST", "/v1/containers/{container}/environments/{environment}/assets/verify",
            isLong: true,
            answer:
                "reads back the container's files on this node: JSON lines with the counts so far, one "
                + "with `failing` for each database that is not read to its end, and a last one with "
                + "`done`"
        ) { try await Self.verify($0) }
    ]

    private static func verify(_ exchange: AdminExchange) async throws -> HTTPResponse {
        let container = try await exchange.container()
        let control = exchange.control
        let work = AssetVerification(of: container, try exchange.directory) {
            await control.checkCopies(of: $0, $1, in: $2)
        }
        await exchange.noteAfterwards("assets verify", "", container)
        return AdminAnswer.lines(AssetVerificationLines(work))
    }
}
