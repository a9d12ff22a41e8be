extension OperationTable {
    /// The operations that the program serves.
    package static func standard(
        _ needs: GatewayNeeds = GatewayNeeds(), _ settings: GatewaySettings = GatewaySettings()
    ) -> OperationTable {
        OperationTable(
            RecordService.operations, ShareService.operations(settings), QueryService.operations,
            ZoneService.operations,
            FeedService.operations, SubscriptionService.operations,
            TokenService.operations(needs.people, needs.push), LiveService.operations,
            UserService.operations(needs.people, settings), UsageService.operations,
            AssetService.operations,
            KeyValueService.operations(needs.keyValueCounters, settings),
            AccountService.operations, DocumentService.operations,
            DocumentService.publicationOperations)
    }
}
