import StratusHTTP
import StratusIdentity
import StratusModel
import StratusRuntime

/// The logos of apps, for the pages where their people sign in. An address names one picture for
/// ever, so browsers ask once.
struct BrandLogos: Surface {
    private static let route = RequestRoute(RouteLabel("/brand/{logo}"))

    private let brands: Brands
    private let kernel: GatewayKernel

    init(_ brands: Brands, _ kernel: GatewayKernel) {
        self.brands = brands
        self.kernel = kernel
    }

    struct Picture: Sendable {
        let container: ContainerReference
        let hash: Bytes

        fileprivate init?(_ path: String) {
            let parts = path.split(separator: "/", omittingEmptySubsequences: false).dropFirst(2)
            guard parts.count == 3, let name = PercentCoding.decode(String(parts[2])),
                ContainerReference.isName(name),
                let environment = Environment(name: String(parts[3])),
                parts[4].hasSuffix(".png"),
                let hash = Base64URL.decode(parts[4].dropLast(4))
            else { return nil }
            self.container = ContainerReference(container: name, environment: environment)
            self.hash = hash
        }
    }

    var roots: [SurfaceRoot] { [.prefix(BrandLogo.root)] }

    func plan(_ head: RequestHead) -> SurfacePlan<Picture?> {
        let isRead = head.method == "GET" || head.method == "HEAD"
        return SurfacePlan(Self.route, bodySizeMax: 0, target: isRead ? Picture(head.path) : nil)
    }

    private struct Missing: Error {}

    func respond(_ task: TaskRequest<Picture?>) async -> HTTPResponse {
        do {
            try self.kernel.enter(task.http, by: task.plan.admission)
            guard let target = task.target,
                let bytes = try await self.brands.logo(of: target.container, hash: target.hash)
            else { throw Missing() }
            return HTTPResponse(
                status: 200,
                headers: [
                    "Content-Type": "image/png",
                    "Cache-Control": "public, max-age=31536000, immutable",
                    "Content-Security-Policy": "default-src 'none'; sandbox",
                    "X-Content-Type-Options": "nosniff",
                    "Cross-Origin-Resource-Policy": "same-origin",
                ], body: .bytes(bytes))
        } catch {
            return self.failure(error, of: task.http)
        }
    }

    func failure(_ error: any Error, of request: HTTPRequest) -> HTTPResponse {
        HTTPResponse(
            status: error is Missing ? 404 : 503,
            headers: ["Content-Type": "text/plain; charset=utf-8", "Cache-Control": "no-store"],
            body: .bytes(Bytes("There is no such picture.\n".utf8)))
    }
}
