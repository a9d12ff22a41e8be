package import StratusHTTP
package import StratusModel
package import StratusRuntime

/// One kind of requests that clients may send: where its paths begin, what it says of a request
/// from the head alone, how it answers, and the one form of its errors.
///
/// A path prefix stands in exactly one surface. ``SurfaceTable`` finds the surface of a request;
/// ``plan(_:)`` is the only place where a surface looks at the path.
package protocol Surface: Sendable {
    /// What a surface reads of the path, once.
    associatedtype Target: Sendable

    var roots: [SurfaceRoot] { get }

    /// Decided from the head alone, before any of the body is read.
    func plan(_ head: RequestHead) -> SurfacePlan<Target>

    /// Answers a request at once, if nothing has to be waited for; see ``HTTPHandler``. Whoever
    /// answers here has checked by itself what ``AdmissionPlan`` says of such a request.
    func answer(
        _ view: RequestView, _ bytes: Span<UInt8>, _ call: SurfaceCall,
        into answer: inout AnswerBuffer
    ) -> AnswerStep

    /// Never throws: every fault becomes an answer here.
    func respond(_ task: TaskRequest<Target>) async -> HTTPResponse

    /// The one form of the surface's errors.
    func failure(_ error: any Error, of request: HTTPRequest) -> HTTPResponse
}

extension Surface {
    package func answer(
        _ view: RequestView, _ bytes: Span<UInt8>, _ call: SurfaceCall,
        into answer: inout AnswerBuffer
    ) -> AnswerStep { .plan }
}

/// Where the paths of a surface begin, or one whole path.
package struct SurfaceRoot: Sendable, Hashable {
    package let text: String
    /// Whether it is one path, and none goes on behind it.
    package let isWhole: Bool

    package static func prefix(_ text: String) -> Self { Self(text: text, isWhole: false) }
    package static func path(_ text: String) -> Self { Self(text: text, isWhole: true) }
}

/// What a surface says of a request.
package struct SurfacePlan<Target: Sendable>: Sendable {
    package var route: RequestRoute
    package var patience: RequestPatience
    package var bodySizeMax: ByteCount
    /// What the kernel checks before the surface works.
    package var admission: AdmissionPlan
    package var target: Target

    package init(
        _ route: RequestRoute, patience: RequestPatience = .usual,
        bodySizeMax: ByteCount = .kibibytes(64), admission: AdmissionPlan = AdmissionPlan(),
        target: Target
    ) {
        self.route = route
        self.patience = patience
        self.bodySizeMax = bodySizeMax
        self.admission = admission
        self.target = target
    }
}

/// A request that a surface answers in a task, with what the surface said of it.
package struct TaskRequest<Target: Sendable>: Sendable {
    package let http: HTTPRequest
    package let plan: SurfacePlan<Target>
    package var target: Target { self.plan.target }

    package init(_ http: HTTPRequest, _ plan: SurfacePlan<Target>) {
        self.http = http
        self.plan = plan
    }
}
