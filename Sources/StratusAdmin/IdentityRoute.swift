import StratusHTTP
import StratusModel

/// The administrators' paths about who is asking.
enum IdentityRoute: Equatable {
    case tokens(ContainerReference)
    case token(ContainerReference, id: String)
    case keys(ContainerReference)
    case key(ContainerReference, id: String)
    case members(ContainerReference)
    case access(ContainerReference)
    case users
    case user(email: String)
    case userAction(email: String, Action)
    case audit

    enum Action: String, CaseIterable {
        case disable, enable, export
        case resetLink = "reset-link"
        case signIn = "sign-in"
        case signOut = "sign-out"
    }

    private static let container = "/v1/containers/{container}/environments/{environment}"
    static let templates = [
        Self.container + "/tokens", Self.container + "/tokens/{token}",
        Self.container + "/keys", Self.container + "/keys/{key}",
        Self.container + "/members", Self.container + "/access",
        "/v1/users", "/v1/users/{email}", "/v1/users/{email}/{action}", "/v1/audit",
    ]

    init?(_ path: String) {
        guard let segments = URLPath(path)?.segments, segments.count >= 2, segments[0] == "v1"
        else {
            return nil
        }
        switch segments[1] {
        case "audit":
            guard segments.count == 2 else { return nil }
            self = .audit
        case "users":
            switch segments.count {
            case 2: self = .users
            case 3: self = .user(email: segments[2])
            case 4:
                guard let action = Action(rawValue: segments[3]) else { return nil }
                self = .userAction(email: segments[2], action)
            default: return nil
            }
        case "containers":
            guard (6...7).contains(segments.count), segments[3] == "environments",
                (1...255).contains(segments[2].utf8.count),
                segments[2].utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F }),
                let environment = Environment(name: segments[4])
            else { return nil }
            let container = ContainerReference(container: segments[2], environment: environment)
            switch (segments[5], segments.count) {
            case ("tokens", 6): self = .tokens(container)
            case ("tokens", 7): self = .token(container, id: segments[6])
            case ("keys", 6): self = .keys(container)
            case ("keys", 7): self = .key(container, id: segments[6])
            case ("members", 6): self = .members(container)
            case ("access", 6): self = .access(container)
            default: return nil
            }
        default: return nil
        }
    }

    var template: String {
        switch self {
        case .tokens: Self.templates[0]
        case .token: Self.templates[1]
        case .keys: Self.templates[2]
        case .key: Self.templates[3]
        case .members: Self.templates[4]
        case .access: Self.templates[5]
        case .users: Self.templates[6]
        case .user: Self.templates[7]
        case .userAction: Self.templates[8]
        case .audit: Self.templates[9]
        }
    }

    var methods: [String] {
        switch self {
        case .tokens, .keys, .members, .users: ["GET", "POST"]
        case .token, .key: ["DELETE"]
        case .user: ["GET", "DELETE"]
        case .access, .userAction: ["POST"]
        case .audit: ["GET"]
        }
    }
}
