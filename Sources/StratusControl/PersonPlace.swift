import StratusCommandLine
import StratusHTTP
import StratusModel

/// A person in a container, as commands about somebody's storage name them.
enum PersonPlace {
    static let options: [OptionDefinition] = [
        .value("email", .text("ADDRESS"), required: true, "The e-mail address of the person"),
        .value("container", .text("ID"), required: true, "The container"),
        .value(
            "environment", .choice(["development", "production"]), default: "development",
            "The environment"),
    ]

    /// The path of the person's storage of one kind.
    static func path(_ invocation: Invocation, _ storage: String) throws(AdminClient.Failure)
        -> String
    {
        let name = invocation.value("container")
        guard ContainerReference.isName(name) else {
            throw AdminClient.Failure(.usage, "'\(name)' cannot name a container")
        }
        return "/v1/containers/" + PercentCoding.encode(name)
            + "/environments/\(invocation.value("environment"))/users/"
            + PercentCoding.encode(invocation.value("email")) + "/" + storage
    }
}
