/// Records, one by one: saved and looked up.
enum RecordService {
    static let operations = [
        GatewayOperation("records/modify", in: .all, needs: .user) {
            try await ModifyService(exchange: $0).modify($1)
        },
        GatewayOperation("records/lookup", in: .all, needs: .reader) {
            try await LookUpService(exchange: $0).answer($1)
        },
    ]
}
