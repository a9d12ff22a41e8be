import StratusHTTP
import StratusModel

/// Records, one by one: saved, looked up, resolved.
struct RecordService: Sendable {
    let exchange: Exchange

    static let operations = [
        GatewayOperation("records/modify", in: .all, needs: .user) {
            try await ModifyService(exchange: $0).modify($1)
        },
        GatewayOperation("records/lookup", in: .all, needs: .reader) {
            try await LookUpService(exchange: $0).answer($1)
        },
        // Links to shares are resolved in the public database only.
        GatewayOperation("records/resolve", in: .public, needs: .user) {
            try await RecordService(exchange: $0).resolve($1)
        },
        GatewayOperation("records/accept", in: .public, needs: .user) {
            try await RecordService(exchange: $0).resolve($1)
        },
    ]

    /// `records/resolve` and `records/accept`. Nothing is shared yet, so no short GUID is known:
    /// one alone is the request's error, several have an error each.
    func resolve(_ input: Input) async throws -> Bytes {
        let guids = try input.requiredElements(
            "shortGUIDs", limit: self.exchange.kernel.limits.operationCountMax
        ).map { element throws(InputRefusal) in
            if let text = element.string { return text }
            return try Input(element, at: "shortGUIDs").requiredString("value")
        }
        if guids.count == 1 { throw InputRefusal.unknownShortGUID }
        var writer = JSONWriter()
        writer.object {
            $0.key("results")
            $0.array { array in
                for guid in guids {
                    array.object {
                        $0.key("shortGUID")
                        $0.object { $0.member("value", guid) }
                        $0.writeMembers(of: ClientError(InputRefusal.unknownShortGUID))
                    }
                }
            }
        }
        return writer.finish()
    }
}
