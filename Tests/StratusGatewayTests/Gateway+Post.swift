import StratusHTTP
import StratusModel
import StratusRuntime

@testable import StratusGateway

extension Gateway {
    /// Sends a request to the caller's private database.
    func post(_ operation: String, _ body: String, query: String = "") async -> HTTPResponse {
        await self.respond(
            to: HTTPRequest(
                head: RequestHead(
                    method: "POST", path: "/database/1/iCloud.x/development/private/\(operation)",
                    query: "ckAPIToken=\(String(repeating: "a", count: 64))&ckWebAuthToken=me"
                        + query),
                body: CollectedBody(Bytes(body.utf8)), peer: "test",
                identity: self.kernel.world.drawIdentity()))
    }
}

extension HTTPHandler {
    func bodyLimit(for head: RequestHead) -> ByteCount { self.plan(for: head).bodySizeMax }
    func patience(for head: RequestHead) -> RequestPatience { self.plan(for: head).patience }
}
