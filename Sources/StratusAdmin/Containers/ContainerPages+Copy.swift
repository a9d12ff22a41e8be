import StratusAdminModel
import StratusContainers
import StratusHTTP
import StratusIdentity
import StratusModel
import StratusRuntime

extension ContainerPages {
    static let copyRoute = AdminRoute(
        "POST", "/v1/containers/{container}/environments/{environment}/copy", isLong: true,
        body: "to, after",
        answer: "what this page of the public database made, what waits and why, and where the "
            + "next begins"
    ) { try await Self.copy($0, $0.container(), $0.body()) }

    /// Copies a page of the public database into the other environment.
    private static func copy(
        _ exchange: AdminExchange, _ container: ContainerReference, _ body: RecordCopyBody
    ) async throws -> HTTPResponse {
        guard let environment = body.to.flatMap({ Environment(name: $0) }),
            environment != container.environment
        else { throw AdminRefusal.bad("'to' must be the other environment") }
        let after = try body.after.map { text throws(AdminRefusal) in
            guard let bytes = Hexadecimal.bytes(text) else {
                throw AdminRefusal.bad("'after' must be the 'next' of an answer")
            }
            return bytes
        }
        guard let copying = exchange.services.copying else {
            throw AdminRefusal(404, .notFound, "this node copies no records")
        }
        let target = ContainerReference(
            container: container.container, environment: environment)
        let copy = ContainerCopy(
            try exchange.directory, from: container, to: target, by: copying)
        if after == nil { try await exchange.note("container copy", "", target) }
        guard let page = try await copy.page(after: after) else {
            throw AdminRefusal.missing("container that is in use in both environments")
        }
        return AdminAnswer.json(
            RecordCopyAnswer {
                $0.made = Int64(page.madeCount)
                $0.there = Int64(page.thereCount)
                $0.fileBytes = Int64(clamping: page.fileSize)
                $0.waiting = page.waiting.map { RecordCopyRemark($0) }
                $0.refused = page.refused.map { RecordCopyRemark($0) }
                $0.next = page.next.map { Hexadecimal.text($0) }
            })
    }
}

extension RecordCopyRemark {
    fileprivate init(_ remark: ContainerCopy.Remark) {
        self.init()
        self.record = remark.record
        self.reason = remark.reason
    }
}
