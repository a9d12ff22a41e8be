package import StratusContainers
package import StratusGateway
package import StratusHTTP
package import StratusModel
package import StratusRuntime
import Synchronization

/// The handler between the clients' listener and the gateway: it swaps the gateway when a reload
/// brings other limits.
///
/// A request keeps the gateway that its head came to. Nothing here leads to the administrators'
/// API.
package final class ClientFront: HTTPHandler {
    private let current: Mutex<Gateway>

    package init(_ gateway: Gateway) { self.current = Mutex(gateway) }

    /// The gateway of requests from now on.
    package var gateway: Gateway {
        get { self.current.withLock { $0 } }
        set { self.current.withLock { $0 = newValue } }
    }

    package func plan(for head: RequestHead) -> RequestPlan { self.gateway.plan(for: head) }

    package func answer(
        _ view: RequestView, _ bytes: Span<UInt8>, _ call: SurfaceCall,
        into answer: inout AnswerBuffer
    ) -> AnswerStep { self.gateway.answer(view, bytes, call, into: &answer) }

    package func form(of refusal: HTTPRefusal) -> (headers: HeaderFields, body: Bytes)? {
        self.gateway.form(of: refusal)
    }

    package func form(
        of refusal: CrowdRefusal, _ identity: RequestIdentity
    ) -> (headers: HeaderFields, body: Bytes)? { self.gateway.form(of: refusal, identity) }
}

/// Seals files anew and copies records with what serves clients at the time, so by the settings of
/// the last reload.
package struct CurrentFiles: FileResealing {
    private let front: ClientFront

    package init(_ front: ClientFront) { self.front = front }

    package func reseal(_ asset: AssetID, of database: DatabaseID) async throws -> ResealedFile {
        guard let files = self.front.gateway.assets else {
            return .left(reason: "this node keeps no files")
        }
        return try await files.reseal(asset, of: database)
    }
}

extension CurrentFiles: RecordCopying {
    package func copy(
        _ records: [Record], of source: DatabaseID, to container: ContainerReference,
        layout: ContainerLayout
    ) async throws -> [CopiedRecord] {
        try await self.front.gateway.copier.copy(
            records, of: source, to: container, layout: layout)
    }
}
