import StratusGateway
import StratusModel
import Testing

@Suite struct RouteTests {
    typealias Row = (name: String, path: String, expected: Result<Route, InputRefusal>)

    static let container = ContainerReference(container: "iCloud.a.B", environment: .development)

    static let rows: [Row] = [
        (
            "a data operation", "/database/1/iCloud.a.B/development/private/records/modify",
            .success(Route(container: container, scope: .private, operation: .recordsModify))
        ),
        (
            "the batched query",
            "/database/1/iCloud.a.B/development/shared/internal/records/query/batch",
            .success(Route(container: container, scope: .shared, operation: .recordsQueryBatch))
        ),
        (
            "an encoded container", "/database/1/iCloud%2Ea.B/development/public/zones/list",
            .success(Route(container: container, scope: .public, operation: .zonesList))
        ),
        (
            "a trailing slash", "/database/1/iCloud.a.B/development/public/zones/list/",
            .success(Route(container: container, scope: .public, operation: .zonesList))
        ),
        ("the root", "/", .failure(.unknownPath)),
        ("another version", "/database/2/c/development/public/zones/list", .failure(.unknownPath)),
        ("another module", "/device/1/c/development/tokens/create", .failure(.unknownPath)),
        ("no container", "/database/1//development/public/zones/list", .failure(.unknownPath)),
        (
            "a broken escape", "/database/1/iCloud%2/development/public/zones/list",
            .failure(.unknownPath)
        ),
        (
            "another environment", "/database/1/c/staging/public/zones/list",
            .failure(.unknownEnvironment("staging"))
        ),
        (
            "another database", "/database/1/c/development/secret/zones/list",
            .failure(.unknownDatabase("secret"))
        ),
        (
            "another operation", "/database/1/c/development/public/records/destroy",
            .failure(.unknownOperation("records/destroy"))
        ),
        (
            "upper case is another operation", "/database/1/c/development/public/Records/query",
            .failure(.unknownOperation("Records/query"))
        ),
    ]

    @Test(arguments: rows) func `a path names one operation or is refused`(row: Row) {
        let read = Result { () throws(InputRefusal) in try Route(path: row.path) }
        #expect(read == row.expected, "\(row.name)")
    }

    @Test func `what reads without being told what has a GET`() {
        let readers: Set<Route.Operation> = [
            .zonesList, .usersCurrent, .usersCaller, .usersDiscover, .usersLookUpContacts, .usage,
        ]
        for operation in Route.Operation.allCases {
            #expect(operation.takes(method: "POST"))
            #expect(operation.takes(method: "GET") == readers.contains(operation))
            #expect(!operation.takes(method: "DELETE"))
        }
    }
}
