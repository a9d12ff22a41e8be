package import StratusHTTP
package import StratusModel
package import StratusRuntime

/// All that clients reach, by one set of settings: the surfaces of one kernel. A request keeps the
/// gateway that its head came to.
package final class Gateway: HTTPHandler {
    package let kernel: GatewayKernel
    /// What serves uploads and downloads. Nil where nothing keeps assets.
    package let assets: AssetSurface?
    /// What copies records between environments.
    package let copier: RecordCopier
    let services: WebServices
    private let surfaces: SurfaceTable

    /// - Parameters:
    ///   - operations: nil: those that the program serves.
    ///   - besides: surfaces that are no part of the gateway, given what answers paths that are
    ///     nobody's.
    package init(
        _ kernel: GatewayKernel, _ needs: GatewayNeeds = GatewayNeeds(),
        operations: OperationTable? = nil, besides: (WebServices) -> [any Surface] = { _ in [] }
    ) {
        self.kernel = kernel
        let services = WebServices(
            kernel, assets: needs.assets, hasPeople: needs.people != nil,
            operations ?? .standard(needs, kernel.settings))
        let assets = needs.assets.map { AssetSurface($0, kernel) }
        self.services = services
        self.assets = assets
        self.copier = RecordCopier(kernel, assets: assets)
        var surfaces: [any Surface] = [
            services, DAVSurface(kernel, assets: needs.assets, counters: needs.davCounters),
            PublishedSurface(kernel, assets: needs.assets), PollService(kernel: kernel),
        ]
        if let assets { surfaces.append(assets) }
        if let people = needs.people {
            surfaces += [SignInPages(people, kernel), BrandLogos(people.brands, kernel)]
        }
        self.surfaces = SurfaceTable(surfaces + besides(services), nowhere: services)
    }

    package func plan(for head: RequestHead) -> RequestPlan { self.surfaces.plan(for: head) }

    package func answer(
        _ view: RequestView, _ bytes: Span<UInt8>, _ call: SurfaceCall,
        into answer: inout AnswerBuffer
    ) -> AnswerStep {
        if let plan = self.services.knownPlan(view, bytes, call) { return .task(plan) }
        return self.surfaces.answer(view, bytes, call, into: &answer)
    }

    package func form(of refusal: HTTPRefusal) -> (headers: HeaderFields, body: Bytes)? {
        self.services.form(of: ClientError(refusal))
    }

    package func form(
        of refusal: CrowdRefusal, _ identity: RequestIdentity
    ) -> (headers: HeaderFields, body: Bytes)? {
        self.services.form(of: ClientError(refusal), identity)
    }
}
