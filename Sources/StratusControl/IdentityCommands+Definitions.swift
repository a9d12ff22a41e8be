import StratusCommandLine

extension IdentityCommands {
    private static let container: [OptionDefinition] = [
        .value("container", .text("ID"), required: true, "The container"),
        .value(
            "environment", .choice(["development", "production"]), default: "development",
            "The environment"),
    ]
    private static let email = OptionDefinition.value(
        "email", .text("ADDRESS"), required: true, "The e-mail address")

    static func serves(_ path: [String]) -> Bool {
        Self.definitions.contains { $0.name == path.first }
    }

    static let definitions: [CommandDefinition] = [
        CommandDefinition(
            "token", "API tokens: which container an app or page belongs to",
            options: Self.container,
            subcommands: [
                CommandDefinition(
                    "create", "Make a token and print it; it is shown this once",
                    discussion: [
                        "A production token says where sign-in may lead: --origins, --callback, or --any-origin. "
                            + "With --any-origin every page that knows the token may ask people to sign in, and "
                            + "gets what they sign in with."
                    ],
                    options: [
                        .value("name", .text("NAME"), required: true, "What it is called"),
                        .value(
                            "callback", .text("URL"),
                            "Where sign-in leads back to; otherwise the page that opened the "
                                + "sign-in window is sent a message"),
                        .value(
                            "origins", .text("LIST"),
                            "The sites that may use it, with commas between: https://host[:port]"),
                        .flag("any-origin", nil, "Any site may use it"),
                        .flag("names", nil, "The app receives people's names"),
                    ],
                    examples: [
                        .init(
                            "stratusctl token create --container iCloud.org.example.app --name web "
                                + "--origins https://app.example.org",
                            "For a web page")
                    ]),
                CommandDefinition("list", "The container's tokens, by what names them"),
                CommandDefinition(
                    "revoke", "End a token: it is refused everywhere within two seconds",
                    positionals: [
                        PositionalDefinition("ID", .text("ID"), "as 'token list' shows it")
                    ]),
            ]),
        CommandDefinition(
            "key", "Server-to-server keys",
            options: Self.container,
            subcommands: [
                CommandDefinition(
                    "add", "Register a public key and print what requests name it by",
                    discussion: [
                        "ECDSA over P-256, in PEM. Two live keys may share a name, so that one can "
                            + "follow the other without a gap."
                    ],
                    options: [
                        .value("name", .text("NAME"), required: true, "What it is called"),
                        .value("public-key", .file, required: true, "The public key, PEM"),
                    ],
                    examples: [
                        .init(
                            "openssl ecparam -name prime256v1 -genkey -noout -out key.pem && openssl "
                                + "ec -in key.pem -pubout -out public.pem", "To make one"),
                        .init(
                            "stratusctl key add --container iCloud.org.example.app --name import "
                                + "--public-key public.pem", "To register it"),
                    ]),
                CommandDefinition("list", "The container's keys, and whom each acts as"),
                CommandDefinition(
                    "revoke", "End a key: it is refused everywhere within two seconds",
                    positionals: [PositionalDefinition("ID", .text("ID"), "its 64 digits")]),
            ]),
        CommandDefinition(
            "user", "People who sign in",
            subcommands: [
                CommandDefinition(
                    "add", "Make an account and print its identifier",
                    options: [
                        Self.email,
                        .flag(
                            "password-stdin", nil,
                            "Read the password from the standard input; without it the account has "
                                + "none until a reset link is used"),
                        .value("given-name", .text("NAME"), "The given name"),
                        .value("family-name", .text("NAME"), "The family name"),
                        .flag(
                            "discoverable", nil, "Others who know the address may find this person"),
                    ]),
                CommandDefinition("list", "Everybody, by address"),
                CommandDefinition(
                    "show", "One person: names, sessions, record names", options: [Self.email]),
                CommandDefinition(
                    "disable", "Shut somebody out, sessions included", options: [Self.email]),
                CommandDefinition("enable", "Let somebody in again", options: [Self.email]),
                CommandDefinition(
                    "delete", "Erase a person: private data in every container, sessions, account",
                    discussion: ["Prints the receipt: what was erased, and what is outstanding."],
                    options: [Self.email]),
                CommandDefinition(
                    "export", "Print everything a container holds about a person, as JSON lines",
                    options: [Self.email] + Self.container,
                    examples: [
                        .init(
                            "stratusctl user export --email mara@example.org --container "
                                + "iCloud.org.example.app > mara.jsonl", "To hand it out")
                    ]),
                CommandDefinition(
                    "reset-link", "Print the path of a page that sets a new password, once",
                    options: [Self.email]),
                CommandDefinition(
                    "sign-out", "End every session of somebody", options: [Self.email]),
                CommandDefinition(
                    "sign-in", "Print a web-auth token, for scripts and tests",
                    options: [Self.email] + Self.container + [
                        .flag("stay", nil, "Good for two weeks unused instead of a day")
                    ]),
            ]),
        CommandDefinition(
            "role", "Custom roles of a container's users",
            discussion: ["The schema creates roles and grants to them; here people get them."],
            options: Self.container,
            subcommands: [
                CommandDefinition("list", "Who has which roles"),
                CommandDefinition(
                    "grant", "Give a role to a user",
                    options: [Self.member],
                    positionals: [PositionalDefinition("ROLE", .text("ROLE"), "the role")]),
                CommandDefinition(
                    "revoke", "Take a role away", options: [Self.member],
                    positionals: [PositionalDefinition("ROLE", .text("ROLE"), "the role")]),
            ]),
        CommandDefinition(
            "explain-access", "Why somebody may read, create or write records of a type, or not",
            options: Self.container + [
                .value("type", .text("TYPE"), required: true, "The record type"),
                .value(
                    "user", .text("USER"),
                    "E-mail address, record name or key; without it: an API token alone"),
                .value("creator", .text("NAME"), "The record name of who created the record"),
            ]),
        CommandDefinition(
            "sealing-key", "What web-auth tokens, sign-in links and sync tokens are sealed with",
            subcommands: [
                CommandDefinition("list", "Every key: which one seals, which ones open"),
                CommandDefinition(
                    "rotate", "Make a new key; nobody is signed out",
                    discussion: [
                        "The new key seals once every node has read it, ten seconds later. Older ones still "
                            + "open what they sealed, until they are revoked."
                    ]),
                CommandDefinition(
                    "revoke", "End older keys: what they sealed opens nowhere within two seconds",
                    discussion: [
                        "People whose token was sealed with one of them sign in again, and clients whose sync "
                            + "token was begin their feeds anew. Where a key may have become known."
                    ],
                    options: [
                        .value("before", .integer(1...1_000_000), "Every key with a lower number"),
                        .flag("all", nil, "Make a new key and end every other"),
                    ]),
            ]),
        CommandDefinition(
            "audit", "What administrators did",
            options: [
                .value("limit", .integer(1...1_000), "Entries to show (default: 100)"),
                .flag("verify", nil, "Check that no entry was changed, dropped or added"),
            ]),
    ]

    private static let member = OptionDefinition.value(
        "user", .text("USER"), required: true, "E-mail address, record name or key")
}
