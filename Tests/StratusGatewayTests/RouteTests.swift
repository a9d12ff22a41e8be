import StratusGateway
import StratusModel
import Testing

@Suite struct RouteTests {
    struct Place: Equatable {
        var container: ContainerReference
        var scope: DatabaseScope
        var operation: String
        var rest = ""

        init(_ scope: DatabaseScope, _ operation: String, rest: String = "") {
            self.container = RouteTests.container
            self.scope = scope
            self.operation = operation
            self.rest = rest
        }

        init(_ found: (route: Route, operation: GatewayOperation)) {
            self.container = found.route.container
            self.scope = found.route.scope
            self.operation = found.operation.name
            self.rest = found.route.rest
        }
    }

    typealias Row = (name: String, path: String, expected: Result<Place, InputRefusal>)

    static let container = ContainerReference(container: "iCloud.a.B", environment: .development)

    static let rows: [Row] = [
        (
            "a data operation", "/database/1/iCloud.a.B/development/private/records/modify",
            .success(Place(.private, "records/modify"))
        ),
        (
            "the batched query",
            "/database/1/iCloud.a.B/development/shared/internal/records/query/batch",
            .success(Place(.shared, "internal/records/query/batch"))
        ),
        (
            "an encoded container", "/database/1/iCloud%2Ea.B/development/public/zones/list",
            .success(Place(.public, "zones/list"))
        ),
        (
            "a trailing slash", "/database/1/iCloud.a.B/development/public/zones/list/",
            .success(Place(.public, "zones/list"))
        ),
        ("the root", "/", .failure(.unknownPath)),
        ("another version", "/database/2/c/development/public/zones/list", .failure(.unknownPath)),
        ("another module", "/service/1/c/development/tokens/create", .failure(.unknownPath)),
        (
            "a device", "/device/1/iCloud.a.B/development/tokens/create",
            .success(Place(.public, "tokens/create"))
        ),
        (
            "a device's database", "/device/1/c/development/public/tokens/create",
            .failure(.unknownOperation("public/tokens/create"))
        ),
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
        let read = Result { () throws(InputRefusal) in
            Place(try OperationTable.standard().route(of: row.path))
        }
        #expect(read == row.expected, "\(row.name)")
    }

    @Test func `names that are equal to Swift are told apart by their bytes`() throws {
        let root = "\(GatewayService.documents.root)iCloud.a.B/development/content/"
        for name in ["\u{E9}a\u{301}", "e\u{301}\u{E1}"] {
            let route = try OperationTable.standard().route(of: root + name).route
            #expect(Bytes(route.rest.utf8) == Bytes(name.utf8))
        }
    }

    @Test func `what reads without being told what has a GET`() {
        let readers: Set<String> = [
            "zones/list", "users/current", "users/caller", "users/discover",
            "users/lookup/contacts", "usage", "subscriptions/list", "values",
            "account", "content/*", "live",
        ]
        for operation in OperationTable.standard().operations {
            // A browser's EventSource sends nothing but GET.
            #expect(operation.methods.contains(named: "POST") == (operation.name != "live"))
            #expect(operation.methods.contains(named: "GET") == readers.contains(operation.name))
            #expect(!operation.methods.contains(named: "DELETE"))
        }
    }
}
