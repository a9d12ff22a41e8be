import StratusHTTP
import StratusModel

/// A `records/query` as the client said it.
struct QueryRequest {
    var shape: AnswerShape
    /// Nil: the client named none.
    var zone: ZoneAddress?
    var zoneWide: Bool
    var recordType: String
    var filters: [Input]
    var sorts: [Input]
    var limit: Int
    var marker: String?

    /// Filters and sorts of one query: more than anybody can mean.
    private static let clauseCountMax = 100

    init(_ input: Input, limits: Limits) throws(InputRefusal) {
        self.shape = try AnswerShape(input)
        if let given = input["zoneID"] { self.zone = try ZoneAddress(given, key: "zoneID") }
        self.zoneWide = try input.flag("zoneWide") ?? false
        let query = try Input(input["query"], at: "query")
        self.recordType = try query.requiredString("recordType")
        self.filters = []
        for filter in try query.oneOrMany("filterBy", limit: Self.clauseCountMax) {
            self.filters.append(try Input(filter, at: "filterBy"))
        }
        self.sorts = []
        for sort in try query.oneOrMany("sortBy", limit: Self.clauseCountMax) {
            self.sorts.append(try Input(sort, at: "sortBy"))
        }
        self.limit =
            try input.resultsLimit(max: limits.operationCountMax) ?? limits.operationCountMax
        self.marker = try input.string("continuationMarker")
    }
}
