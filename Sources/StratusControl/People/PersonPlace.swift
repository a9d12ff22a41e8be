import StratusAdminModel
import StratusCommandLine
import StratusHTTP
import StratusModel
import StratusProcess
import StratusRuntime

/// A person in a container, as commands about somebody's storage name them.
enum PersonPlace {
    static let options: [OptionDefinition] =
        [
            .value("email", .text("ADDRESS"), required: true, "The e-mail address of the person")
        ] + PlaceOptions.all
}

extension AdminConversation {
    /// The path of the person's storage of one kind.
    func storage(_ rest: String) throws(AdminClient.Failure) -> String {
        try self.context.requireContainer()
        return self.place("/users/" + self.encoded("email") + rest)
    }
}
