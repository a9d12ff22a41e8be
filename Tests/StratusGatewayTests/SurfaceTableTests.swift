import StratusHTTP
import StratusModel
import StratusRuntime
import Testing

@testable import StratusGateway

@Suite struct SurfaceTableTests {
    /// Answers with its name.
    struct Named: Surface {
        let name: String
        let roots: [SurfaceRoot]

        func plan(_ head: RequestHead) -> SurfacePlan<Void> {
            SurfacePlan(RequestRoute(RouteLabel(self.name)), target: ())
        }
        func respond(_ task: TaskRequest<Void>) async -> HTTPResponse {
            HTTPResponse(status: 200, body: .bytes(Bytes(self.name.utf8)))
        }
        func failure(_ error: any Error, of request: HTTPRequest) -> HTTPResponse {
            HTTPResponse(status: 500)
        }
    }

    @Test func `a request goes to the surface of its path, and of two that fit to the longer one`()
    {
        let nowhere = Named(name: "nowhere", roots: [])
        let table = SurfaceTable(
            [
                Named(name: "a", roots: [.prefix("/a/"), .path("/b")]),
                Named(name: "deep", roots: [.prefix("/a/deep/")]), nowhere,
            ], nowhere: nowhere)
        for (path, name) in [
            ("/a/", "a"), ("/a/x", "a"), ("/a/dee", "a"), ("/a/deep/", "deep"), ("/b", "a"),
            ("/b/", "nowhere"), ("/bb", "nowhere"), ("/a", "nowhere"), ("", "nowhere"),
            ("*", "nowhere"), ("/A/", "nowhere"), ("/a/\u{301}", "a"),
        ] {
            let plan = table.plan(for: RequestHead(method: "GET", path: path))
            #expect(plan.route.label.template == name, "\(path)")
        }
    }

    @Test func `two equal roots are refused`() {
        #expect(SurfaceTable.repeated([.prefix("/a/"), .prefix("/a/b"), .path("/a")]) == nil)
        #expect(SurfaceTable.repeated([.prefix("/a/"), .path("/b"), .path("/a/")]) == "/a/")
    }

    @Test func `no surface of the gateway has a root of another one`() {
        let wire = InProcess()
        let operations = OperationTable.standard()
        let services = WebServices(wire.handler.kernel, assets: nil, operations)
        let roots = services.roots + SignInService.Page.allCases.map { .path($0.rawValue) }
        #expect(SurfaceTable.repeated(roots) == nil && roots.count == 11)
    }

    /// The address counts before anything else is looked at, in each surface that counts it.
    @Test(arguments: [
        ("GET", "/nowhere"), ("DELETE", "/database/1/iCloud.a.B/development/private/records/query"),
        ("FETCH", "/dav/iCloud.a.B/development/a"), ("GET", "/dav/"), ("POST", "/published/x"),
    ])
    func `a wrong method and a wrong path count against the rate of the address`(
        _ method: String, _ path: String
    ) async {
        var settings = GatewaySettings()
        settings.addressRequestRateMax = 1
        let wire = InProcess(settings: settings)
        var statuses: [Int] = []
        for _ in 0..<3 {
            statuses.append(
                await wire.handler.respond(
                    to: HTTPRequest(
                        head: RequestHead(method: method, path: path), body: CollectedBody([]),
                        peer: "192.0.2.1:1", identity: wire.world.drawIdentity())
                ).status)
        }
        #expect(!statuses.prefix(2).contains(429) && statuses.last == 429, "\(statuses)")
    }
}
