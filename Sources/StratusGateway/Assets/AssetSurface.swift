import StratusAssets
import StratusCluster
package import StratusHTTP
import StratusIdentity
import StratusModel
import StratusRecords
package import StratusRuntime
import StratusSealing

/// Uploads and downloads: the bytes of assets, at URLs that carry their own permission.
///
/// Credentials, signatures and cookies on these requests are ignored. What is served is sandboxed,
/// so a browser runs nothing that somebody uploaded.
package final class AssetSurface: Surface {
    let kit: AssetKit
    let kernel: GatewayKernel
    var world: any World { self.kernel.world }

    /// What a multipart body may have around its file.
    private static let wrappingMax = 64 << 10

    package init(_ kit: AssetKit, _ kernel: GatewayKernel) {
        self.kit = kit
        self.kernel = kernel
    }

    package var roots: [SurfaceRoot] { [.prefix(AssetPath.root)] }

    /// What a path asks for.
    package enum Target: Sendable {
        case upload(ticket: String)
        case download(link: String, name: String?)
        case nothing
    }

    // The rest of the path is a permission: never in a log.
    private static let uploads = RouteLabel("assets/u")
    private static let downloads = RouteLabel("assets/d")

    /// Transfers are not counted by their address: the URL is the permission.
    package func plan(_ head: RequestHead) -> SurfacePlan<Target> {
        var admission = AdmissionPlan()
        let path = head.path
        if path.hasPrefix(AssetPath.uploads) {
            if !["POST", "PUT"].contains(head.method) {
                admission.refusal = AssetFailure.wrongMethod("POST, PUT, OPTIONS")
            }
            let sizeMax = Int(clamping: self.kit.settings.sizeMax)
            return SurfacePlan(
                RequestRoute(Self.uploads), patience: .transfer,
                bodySizeMax: ByteCount(sizeMax + Self.wrappingMax), admission: admission,
                target: .upload(ticket: String(path.dropFirst(AssetPath.uploads.count))))
        }
        var target = Target.nothing
        if !path.hasPrefix(AssetPath.downloads) {
            admission.refusal = AssetFailure.notFound
        } else if !["GET", "HEAD"].contains(head.method) {
            admission.refusal = AssetFailure.wrongMethod("GET, HEAD, OPTIONS")
        } else {
            let rest = path.dropFirst(AssetPath.downloads.count)
            let link = rest.prefix { $0 != "/" }
            target = .download(
                link: String(link), name: Self.name(rest.dropFirst(link.count + 1)))
        }
        return SurfacePlan(
            RequestRoute(Self.downloads), patience: .transfer, admission: admission,
            target: target)
    }

    package func respond(_ task: TaskRequest<Target>) async -> HTTPResponse {
        var response: HTTPResponse
        do { response = try await self.answer(task) } catch {
            response = self.failure(error, of: task.http)
        }
        Self.open(&response.headers)
        return response
    }

    private func answer(_ task: TaskRequest<Target>) async throws -> HTTPResponse {
        if task.http.head.method == "OPTIONS" { return Self.preflight() }
        try self.kernel.enter(task.http, by: task.plan.admission)
        try await self.kit.keepUp()
        switch task.target {
        case .upload(let ticket): return try await self.upload(task.http, ticket: ticket)
        case .download(let link, let name):
            return try await self.download(task.http, link: link, name: name)
        case .nothing: throw AssetFailure.notFound
        }
    }

    /// The name that a client put into the link's last segment; nil where it put none.
    private static func name(_ segment: Substring) -> String? {
        guard let last = segment.split(separator: "/").last,
            let name = PercentCoding.decode(last.utf8), name != "${f}"
        else { return nil }
        return name
    }

    // MARK: Answers

    /// Scripts of any origin may upload and download: the URL is the permission.
    private static func open(_ headers: inout HeaderFields) {
        headers.set("Access-Control-Allow-Origin", "*")
        headers.set(
            "Access-Control-Expose-Headers",
            "Accept-Ranges,Content-Disposition,Content-Range,ETag,Retry-After")
    }

    private static func preflight() -> HTTPResponse {
        HTTPResponse(
            status: 204,
            headers: [
                "Access-Control-Allow-Methods": "GET,HEAD,POST,PUT,OPTIONS",
                "Access-Control-Allow-Headers":
                    "content-type,range,if-none-match,if-range,x-requested-with,"
                    + "x-apple-cloudkit-request-keyid,x-apple-cloudkit-request-iso8601date,"
                    + "x-apple-cloudkit-request-signaturev1",
                "Access-Control-Max-Age": "86400",
            ])
    }

    package func failure(_ error: any Error, of request: HTTPRequest) -> HTTPResponse {
        let failure = AssetFailure(error)
        if failure == .broken {
            self.kernel.log.error(
                "a transfer failed inside",
                [
                    "request": .text(request.identity.uuid),
                    "cause": .text(String(describing: error)),
                ])
        }
        var writer = JSONWriter()
        writer.writeFailure(failure.error, uuid: request.identity.uuid)
        var response = HTTPResponse(
            status: failure.status,
            headers: [
                "Content-Type": "application/json; charset=UTF-8", "Cache-Control": "no-store",
            ], body: .bytes(writer.finish()))
        if let retryAfter = failure.error.retryAfter {
            response.headers.set("Retry-After", String(retryAfter))
        }
        if case .wrongMethod(let methods) = failure { response.headers.set("Allow", methods) }
        if case .unsatisfiable(let size) = failure {
            response.headers.set("Content-Range", ByteRange.contentRange(unsatisfiedOf: size))
        }
        return response
    }
}

/// Why an upload or a download is refused: plain statuses of HTTP, and CloudKit's body.
enum AssetFailure: Error, Equatable {
    case notFound
    case wrongMethod(String)
    /// The ticket or link was altered, or is of another kind; or the ticket has expired.
    case forbidden(String)
    case gone(String)
    case tooLarge(UInt64)
    case full(String)
    case malformed(String)
    case unsatisfiable(size: UInt64)
    case later(String, seconds: Int)
    case broken

    init(_ error: any Error) {
        self =
            switch error {
            case let failure as AssetFailure: failure
            case RouteError.upgrading: .later("the cluster is being upgraded", seconds: 30)
            case RouteError.notExecuted(let after):
                .later("nothing was stored, try again later", seconds: ClientError.seconds(after))
            case RouteError.outcomeUnknown:
                .later("it is not known whether the file was stored", seconds: 1)
            case BodyFailure.cutShort: .malformed("the request ended before its body did")
            case BodyFailure.noMajority, BodyFailure.deadline:
                .later("too few nodes could store the file", seconds: 5)
            default: .broken
            }
    }

    var status: Int {
        switch self {
        case .notFound: 404
        case .wrongMethod: 405
        case .forbidden: 403
        case .gone: 410
        case .tooLarge, .full: 413
        case .malformed: 400
        case .unsatisfiable: 416
        case .later: 503
        case .broken: 500
        }
    }

    var error: ClientError {
        switch self {
        case .notFound: ClientError(.notFound, "there is no such file")
        case .wrongMethod(let methods):
            ClientError(.badRequest, "the methods here are \(methods)")
        case .forbidden(let reason): ClientError(.accessDenied, reason)
        case .gone(let reason): ClientError(.notFound, reason)
        case .tooLarge(let limit):
            ClientError(.quotaExceeded, "a file may have \(limit) bytes")
        case .full(let reason): ClientError(.quotaExceeded, reason)
        case .malformed(let reason): ClientError(.badRequest, reason)
        case .unsatisfiable(let size):
            ClientError(.badRequest, "the file has \(size) bytes: ask for some of them")
        case .later(let reason, let seconds):
            ClientError(.tryAgainLater, reason, retryAfter: seconds)
        case .broken: ClientError(.internalError, "the request cannot be carried out")
        }
    }
}
