package import StratusModel
package import StratusRuntime

/// One operation that clients may ask for: its path, who may ask, how its body comes, and what it
/// does.
///
/// ``OperationTable`` holds all of them. Dispatch, the limits of bodies, the patience of requests,
/// the labels of metrics and the log read it, and so does the authorization matrix of the tests.
package struct GatewayOperation: Sendable {
    /// The credentials that a caller must have shown before the operation runs.
    package enum Need: Sendable, Equatable {
        /// Good credentials of any kind. The operation reads what the caller may read, and no more.
        case reader
        /// A user or a server key: an API token alone is refused.
        case user
    }

    /// The databases that have an operation.
    package struct Scopes: OptionSet, Sendable {
        package let rawValue: UInt8
        package init(rawValue: UInt8) { self.rawValue = rawValue }

        package static let `public` = Scopes(rawValue: 1)
        package static let `private` = Scopes(rawValue: 2)
        package static let shared = Scopes(rawValue: 4)
        package static let all: Scopes = [.public, .private, .shared]

        package func has(_ scope: DatabaseScope) -> Bool {
            switch scope {
            case .public: self.contains(Self.public)
            case .private: self.contains(Self.private)
            case .shared: self.contains(Self.shared)
            }
        }
    }

    /// The body that an operation takes, with the operation itself.
    enum Action: Sendable {
        /// The whole body is read first, counted by ``BodyBudget``, and must be an object of JSON.
        /// The limit is `limits.requestSizeMax`.
        case collected(@Sendable (Exchange, Input) async throws -> GatewayAnswer)
        /// The operation pulls the body and counts what it keeps of it. The connection holds one
        /// window of it.
        case pulled(
            sizeMax: ByteCount, @Sendable (Exchange, any RequestBody) async throws -> GatewayAnswer)
    }

    package let service: GatewayService
    /// The operation's path after container, environment and database. One that ends with `/*`
    /// takes any path below.
    package let name: String
    /// The operation's name in metrics, the log and its refusals. One of a fixed set.
    package var label: String { self.named.template }
    /// The label, with the latencies of its requests.
    let named: RouteLabel
    package let methods: HTTPMethods
    package let scopes: Scopes
    package let need: Need
    /// How long a request may take, and whether the server may hold it until something happens.
    package let patience: RequestPatience
    let action: Action

    init(
        _ name: String, of service: GatewayService = .database, label: String? = nil,
        methods: HTTPMethods = .post, in scopes: Scopes, needs need: Need,
        patience: RequestPatience = .usual, _ action: Action
    ) {
        self.service = service
        self.name = name
        self.named = RouteLabel(label ?? service.label(of: name))
        self.methods = methods
        self.scopes = scopes
        self.need = need
        self.patience = patience
        self.action = action
    }

    /// An operation that takes one object and answers with one.
    init(
        _ name: String, of service: GatewayService = .database, methods: HTTPMethods = .post,
        in scopes: Scopes, needs need: Need,
        json: @escaping @Sendable (Exchange, Input) async throws -> Bytes
    ) {
        self.init(
            name, of: service, methods: methods, in: scopes, needs: need,
            .collected { .json(try await json($0, $1)) })
    }

    func bodySizeMax(_ limits: Limits) -> ByteCount {
        switch self.action {
        case .collected: limits.requestSizeMax
        case .pulled(let sizeMax, _): sizeMax
        }
    }
}
