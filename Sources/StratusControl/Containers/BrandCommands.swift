import StratusAdminModel
import StratusCommandLine
import StratusHTTP
import StratusModel
import StratusProcess
import StratusRuntime

/// `stratusctl container brand`: how an app looks on the pages where its people sign in.
struct BrandCommands: AdminConversation {
    let context: ControlContext

    init(_ context: ControlContext) { self.context = context }

    private static let example =
        "--container iCloud.org.example.app --environment production"

    static let command = ControlCommand(
        "brand", "The app's name, logo and colour on the pages where its people sign in",
        subcommands: [
            ControlCommand(
                "show", "The look that an app has",
                options: PlaceOptions.all,
                examples: [
                    .init(
                        "stratusctl container brand show \(Self.example)",
                        "What do people see?")
                ],
                run: BrandCommands.show),
            ControlCommand(
                "set", "Give an app a look, or change it",
                discussion: [
                    "What is not given stays as it is. An empty text takes away. Pages name the "
                        + "container and the server as well, whatever the look is.",
                    "The colour keeps its hue, and is made darker or lighter until text can be "
                        + "read. The logo is a square PNG of 64 to 1,024 pixels and at most 64 "
                        + "KiB; what is not the picture, such as places and times, is left out.",
                ],
                options: PlaceOptions.all + [
                    .value("name", .text("TEXT"), "The app's name, up to 40 characters"),
                    .value("welcome", .text("TEXT"), "A sentence below it, up to 160 characters"),
                    .value("colour", .text("COLOUR"), "Its colour, as in #0b57d0"),
                    .value("logo", .text("FILE"), "Its logo"),
                    .flag("no-logo", nil, "Take the logo away"),
                    .value("privacy", .text("ADDRESS"), "Where it says what it does with data"),
                    .value("terms", .text("ADDRESS"), "Where its terms are"),
                    .value("help-page", .text("ADDRESS"), "Where people find help"),
                ],
                examples: [
                    .init(
                        "stratusctl container brand set \(Self.example) --name Shelves "
                            + "--colour '#0a7d4f'", "People see the name that they know")
                ],
                run: BrandCommands.set),
            ControlCommand(
                "clear", "Take the look away",
                options: PlaceOptions.all,
                examples: [
                    .init(
                        "stratusctl container brand clear \(Self.example)",
                        "Pages say the container's name alone")
                ],
                run: BrandCommands.clear),
        ])

    private func path() throws(AdminClient.Failure) -> String {
        try self.context.requireContainer()
        return self.place("/brand")
    }

    func show() async throws(AdminClient.Failure) -> ExitCode {
        try self.tell(try await self.ask("GET", self.path())) {
            TextTable.text(of: $0, BrandAnswer.columns)
        }
    }

    func set() async throws(AdminClient.Failure) -> ExitCode {
        let path = try self.path()
        let logo = try self.logo()
        let answer = try await self.ask(
            "PUT", path,
            BrandBody {
                $0.name = self.invocation["name"]
                $0.welcome = self.invocation["welcome"]
                $0.privacy = self.invocation["privacy"]
                $0.terms = self.invocation["terms"]
                $0.help = self.invocation["help-page"]
                $0.colour = self.invocation["colour"]
                $0.logo = logo
            })
        return try self.tell(answer) { TextTable.text(of: $0, BrandAnswer.columns) }
    }

    /// In Base64; empty takes the logo away.
    private func logo() throws(AdminClient.Failure) -> String? {
        guard let file = self.invocation["logo"] else {
            return self.invocation.flag("no-logo") ? "" : nil
        }
        do throws(SmallFile.Failure) {
            return Base64.encode(try SmallFile.read(file, limit: .kibibytes(64)))
        } catch { throw Failure(.missingInput, error.description) }
    }

    func clear() async throws(AdminClient.Failure) -> ExitCode {
        self.tell(try await self.ask("DELETE", self.path()), said: "cleared")
    }
}
