import StratusHTTP
import StratusModel

extension Exchange {
    /// `records/resolve` and `records/accept`. Nothing is shared yet, so no short GUID is known: one
    /// alone is the request's error, several have an error each.
    func resolveRecords(_ input: Input) async throws -> Bytes {
        try await self.requireUser()
        let guids = try input.requiredElements(
            "shortGUIDs", limit: self.handler.limits.operationCountMax
        ).map { element throws(InputRefusal) in
            if let text = element.string { return text }
            return try Input(element, at: "shortGUIDs").requiredString("value")
        }
        guard guids.count > 1 else {
            if guids.isEmpty { throw InputRefusal.missingKey("shortGUIDs") }
            throw InputRefusal.unknownShortGUID
        }
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
