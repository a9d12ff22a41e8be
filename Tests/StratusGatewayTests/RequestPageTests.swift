import Foundation
import Testing

@testable import StratusGateway

/// `Docs/reference/requests.md` is written by `Tests/Stages/77-requests` from its table.
@Suite struct RequestPageTests {
    @Test func `every operation of the web services has an example on the page of requests`() throws
    {
        let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()
        let page = try String(
            contentsOf: root.appending(path: "Docs/reference/requests.md"), encoding: .utf8)
        let services = [GatewayService.database.root, GatewayService.device.root]
        let names = Set(
            OperationTable.standard().operations.filter { services.contains($0.service.root) }
                .map(\.name))
        #expect(names.count > 30)
        for name in names.sorted() {
            #expect(page.contains("### `\(name)`\n") || page.contains("- `\(name)`: "), "\(name)")
        }
    }
}
