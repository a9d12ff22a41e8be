package import StratusHTTP
import StratusIdentity
package import StratusRuntime

/// The pages where people sign in, as a surface of the gateway.
package struct SignInPages: Surface {
    private let people: SignInService
    private let kernel: GatewayKernel

    /// A method that the pages do not take.
    private struct WrongMethod: Error {}

    private static let labels = SignInService.Page.allCases.map { RouteLabel($0.rawValue) }

    init(_ people: SignInService, _ kernel: GatewayKernel) {
        self.people = people
        self.kernel = kernel
    }

    package var roots: [SurfaceRoot] { SignInService.Page.allCases.map { .path($0.rawValue) } }

    package func plan(_ head: RequestHead) -> SurfacePlan<SignInService.Page?> {
        let page = SignInService.Page(rawValue: head.path)
        let label = Self.labels.first { $0.template == page?.rawValue }
        var admission = AdmissionPlan()
        if !["GET", "HEAD", "POST"].contains(head.method) { admission.refusal = WrongMethod() }
        return SurfacePlan(
            RequestRoute(label ?? RouteLabel("other")), bodySizeMax: SignInService.bodySizeMax,
            admission: admission, target: page)
    }

    package func respond(_ task: TaskRequest<SignInService.Page?>) async -> HTTPResponse {
        var answer: HTTPResponse
        do {
            try self.kernel.enter(task.http, by: task.plan.admission)
            answer = await self.people.respond(to: task.http, at: task.target)
        } catch {
            answer = self.failure(error, of: task.http)
        }
        answer.headers.set("X-Apple-Request-UUID", task.http.identity.uuid)
        return answer
    }

    package func failure(_ error: any Error, of request: HTTPRequest) -> HTTPResponse {
        let html = self.people.html(at: nil, request.head)
        var answer = html.message(405, html.text.problems.wrongMethod)
        answer.headers.set("Allow", "GET, POST")
        return answer
    }
}
