import StratusHTTP
import StratusModel

/// The administrators' paths about who is asking.
enum IdentityRoute: Equatable {
    case containers
    case container(ContainerReference)
    case erasure(ContainerReference)
    case usage(ContainerReference)
    case linkAudit(ContainerReference)
    case reset(ContainerReference)
    case resetPiece(ContainerReference)
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
    case sealingKeys
    case sealingKeyRevocation

    enum Action: String, CaseIterable {
        case disable, enable, export
        case resetLink = "reset-link"
        case signIn = "sign-in"
        case signOut = "sign-out"
    }

    private static let container = "/v1/containers/{container}/environments/{environment}"
    static let templates = [
        "/v1/containers", Self.container, Self.container + "/erasure",
        Self.container + "/tokens", Self.container + "/tokens/{token}",
        Self.container + "/keys", Self.container + "/keys/{key}",
        Self.container + "/members", Self.container + "/access",
        "/v1/users", "/v1/users/{email}", "/v1/users/{email}/{action}", "/v1/audit",
        "/v1/sealing-keys", "/v1/sealing-keys/revocation",
        Self.container + "/schema/reset", Self.container + "/schema/reset/piece",
        Self.container + "/usage", Self.container + "/references/audit",
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
        case "sealing-keys":
            switch segments.count {
            case 2: self = .sealingKeys
            case 3 where segments[2] == "revocation": self = .sealingKeyRevocation
            default: return nil
            }
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
            if segments.count == 2 {
                self = .containers
                return
            }
            guard (5...8).contains(segments.count), segments[3] == "environments",
                (1...255).contains(segments[2].utf8.count),
                segments[2].utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F }),
                let environment = Environment(name: segments[4])
            else { return nil }
            let container = ContainerReference(container: segments[2], environment: environment)
            guard segments.count > 5 else {
                self = .container(container)
                return
            }
            switch (segments[5], segments.count) {
            case ("erasure", 6): self = .erasure(container)
            case ("usage", 6): self = .usage(container)
            case ("references", 7) where segments[6] == "audit": self = .linkAudit(container)
            case ("schema", 7) where segments[6] == "reset": self = .reset(container)
            case ("schema", 8) where segments[6] == "reset" && segments[7] == "piece":
                self = .resetPiece(container)
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
        case .containers: Self.templates[0]
        case .container: Self.templates[1]
        case .erasure: Self.templates[2]
        case .tokens: Self.templates[3]
        case .token: Self.templates[4]
        case .keys: Self.templates[5]
        case .key: Self.templates[6]
        case .members: Self.templates[7]
        case .access: Self.templates[8]
        case .users: Self.templates[9]
        case .user: Self.templates[10]
        case .userAction: Self.templates[11]
        case .audit: Self.templates[12]
        case .sealingKeys: Self.templates[13]
        case .sealingKeyRevocation: Self.templates[14]
        case .reset: Self.templates[15]
        case .resetPiece: Self.templates[16]
        case .usage: Self.templates[17]
        case .linkAudit: Self.templates[18]
        }
    }

    var methods: [String] {
        switch self {
        case .tokens, .keys, .members, .users, .sealingKeys: ["GET", "POST"]
        case .token, .key: ["DELETE"]
        case .user: ["GET", "DELETE"]
        case .container: ["GET", "POST", "DELETE"]
        case .access, .userAction, .erasure, .reset, .resetPiece, .linkAudit,
            .sealingKeyRevocation:
            ["POST"]
        case .audit, .containers, .usage: ["GET"]
        }
    }
}
