import StratusCommandLine

extension IdentityCommands {
    private static let email = OptionDefinition.value(
        "email", .text("ADDRESS"), required: true, "The e-mail address")

    private static let waitTime = OptionDefinition.value(
        "wait-time", .integer(1...86_400), "Seconds to wait; an hour by default")

    static let commands: [ControlCommand] = [
        ControlCommand(
            "token", "API tokens, by which apps and pages name their container",
            options: PlaceOptions.all,
            subcommands: [
                ControlCommand(
                    "create", "Make a token and print it; it is shown only once",
                    discussion: [
                        "A production token must say where sign-in may send its result: "
                            + "--origins, --callback, or --any-origin. With --any-origin, any page "
                            + "that knows the token may ask people to sign in, and receives their "
                            + "web-auth token.",
                        "A container that is not there is made, and the command says so.",
                    ],
                    options: [
                        .value("name", .text("NAME"), required: true, "Its name"),
                        .value(
                            "callback", .text("URL"),
                            "Where sign-in sends people afterwards; without it, the page that "
                                + "opened the sign-in window gets a message"),
                        .value(
                            "origins", .text("LIST"),
                            "The sites that may use it, separated by commas: https://host[:port]"),
                        .flag("any-origin", nil, "Any site may use it"),
                        .flag("names", nil, "The app receives people's names"),
                        ContainerCommands.existing,
                    ],
                    examples: [
                        .init(
                            "stratusctl token create --container iCloud.org.example.app --name web "
                                + "--origins https://app.example.org",
                            "For a web page")
                    ],
                    run: IdentityCommands.createToken),
                ControlCommand(
                    "list", "The container's tokens, with their IDs",
                    examples: [
                        .init(
                            "stratusctl token list --container iCloud.org.example.app",
                            "To find the ID of one")
                    ],
                    run: IdentityCommands.listTokens),
                ControlCommand(
                    "revoke", "Revoke a token: every node refuses it within two seconds",
                    positionals: [
                        PositionalDefinition("ID", .text("ID"), "its ID in 'token list'")
                    ],
                    examples: [
                        .init(
                            "stratusctl token revoke --container iCloud.org.example.app 1f2e",
                            "When a token has become known")
                    ],
                    run: IdentityCommands.revokeToken),
            ]),
        ControlCommand(
            "key", "Server-to-server keys",
            options: PlaceOptions.all,
            subcommands: [
                ControlCommand(
                    "add", "Register a public key and print the key ID that requests send",
                    discussion: [
                        "The key must be an EC P-256 key in PEM form. Two live keys may have "
                            + "the same name, so that a new key can replace an old one without a "
                            + "gap.",
                        "A container that is not there is made, and the command says so.",
                    ],
                    options: [
                        .value("name", .text("NAME"), required: true, "Its name"),
                        .value("public-key", .file, required: true, "The public key, PEM"),
                        ContainerCommands.existing,
                    ],
                    examples: [
                        .init(
                            "openssl ecparam -name prime256v1 -genkey -noout -out key.pem && openssl "
                                + "ec -in key.pem -pubout -out public.pem", "To make one"),
                        .init(
                            "stratusctl key add --container iCloud.org.example.app --name import "
                                + "--public-key public.pem", "To register it"),
                    ],
                    run: IdentityCommands.addKey),
                ControlCommand(
                    "list", "The container's keys, and the user each acts as",
                    examples: [
                        .init(
                            "stratusctl key list --container iCloud.org.example.app",
                            "Which keys are registered?")
                    ],
                    run: IdentityCommands.listKeys),
                ControlCommand(
                    "revoke", "Revoke a key: every node refuses it within two seconds",
                    positionals: [
                        PositionalDefinition("ID", .text("ID"), "its 64 hexadecimal digits")
                    ],
                    examples: [
                        .init(
                            "stratusctl key revoke --container iCloud.org.example.app 1f2e",
                            "When a private key was lost")
                    ],
                    run: IdentityCommands.revokeKey),
            ]),
        ControlCommand(
            "user", "People who sign in",
            subcommands: [
                ControlCommand(
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
                        .flag(
                            "unverified", nil,
                            "Do not vouch for the address: others cannot find the person by it"),
                    ],
                    examples: [
                        .init(
                            "stratusctl user add --email mara@example.org --given-name Mara",
                            "Then 'stratusctl user reset-link' lets her set a password")
                    ],
                    run: IdentityCommands.addUser),
                ControlCommand(
                    "list", "All accounts, by e-mail address",
                    examples: [
                        .init(
                            "stratusctl user list",
                            "Who has an account, and who has not signed in for long?")
                    ],
                    run: IdentityCommands.listUsers),
                ControlCommand(
                    "change", "Change a person's name or e-mail address",
                    discussion: [
                        "Sessions, data and record names stay. Nobody has vouched for a new address: "
                            + "others cannot find the person by it until 'user verify-address', or "
                            + "until the person opens a link that was sent there."
                    ],
                    options: [
                        Self.email,
                        .value("to", .text("ADDRESS"), "The new e-mail address"),
                        .value("given-name", .text("NAME"), "The new given name"),
                        .value("family-name", .text("NAME"), "The new family name"),
                    ],
                    examples: [
                        .init(
                            "stratusctl user change --email mara@example.org --to mara@example.com",
                            "After a change of provider")
                    ],
                    run: PersonCommands.change),
                ControlCommand(
                    "verify-address", "Vouch for a person's e-mail address",
                    discussion: [
                        "Others who know the address may then find the person, if the person wants to "
                            + "be found."
                    ],
                    options: [Self.email],
                    examples: [
                        .init(
                            "stratusctl user verify-address --email mara@example.org",
                            "Once you know that the address is hers")
                    ],
                    run: PersonCommands.verify),
                ControlCommand(
                    "unverify-address",
                    "Take that back: others cannot find the person by the address",
                    options: [Self.email],
                    examples: [
                        .init(
                            "stratusctl user unverify-address --email mara@example.org",
                            "When somebody else has the address")
                    ],
                    run: PersonCommands.unverify),
                ControlCommand(
                    "invite", "Send a person an e-mail with a link to choose a password",
                    discussion: [
                        "Takes signIn.mail of the configuration. The link works once, within a day."
                    ],
                    options: [Self.email],
                    examples: [
                        .init(
                            "stratusctl user invite --email mara@example.org", "After 'user add'")
                    ],
                    run: PersonCommands.invite),
                ControlCommand(
                    "show", "One person: names, sessions, record names", options: [Self.email],
                    examples: [
                        .init(
                            "stratusctl user show --email mara@example.org",
                            "Her sessions, and her record name in each container")
                    ],
                    run: IdentityCommands.showUser),
                ControlCommand(
                    "disable", "Disable an account and end its sessions", options: [Self.email],
                    examples: [
                        .init(
                            "stratusctl user disable --email mara@example.org",
                            "When an account may be in wrong hands")
                    ],
                    run: IdentityCommands.disableUser),
                ControlCommand(
                    "enable", "Enable an account again", options: [Self.email],
                    examples: [
                        .init(
                            "stratusctl user enable --email mara@example.org",
                            "Once it is in the right ones")
                    ],
                    run: IdentityCommands.enableUser),
                ControlCommand(
                    "delete", "Erase a person: private data in every container, sessions, account",
                    discussion: [
                        "Prints what was erased, and what remains to be erased. No node serves any of "
                            + "it from then on. It leaves the nodes' disks within the hour, mostly "
                            + "within a minute; with --wait the command ends when it has.",
                        "Exit code 1 if a node has not said so in time. 'stratusctl user erasures' "
                            + "goes on waiting.",
                    ],
                    options: [
                        Self.email,
                        .flag(
                            "wait", nil,
                            "Wait until every node has said that nothing is left on its disk"),
                        Self.waitTime,
                    ],
                    examples: [
                        .init(
                            "stratusctl user delete --email mara@example.org --wait",
                            "When a person asks to be forgotten")
                    ],
                    run: IdentityCommands.deleteUser),
                ControlCommand(
                    "erasures", "Show on which nodes' disks something erased is left",
                    discussion: [
                        "Exit code 1 while it is left somewhere, or a node does not answer."
                    ],
                    options: [
                        .flag("wait", nil, "Wait until nothing is left on any"), Self.waitTime,
                    ],
                    examples: [
                        .init(
                            "stratusctl user erasures --wait", "After 'user delete' was interrupted"
                        )
                    ],
                    run: IdentityCommands.erasures),
                ControlCommand(
                    "export", "Print everything a container holds about a person, as JSON lines",
                    discussion: [
                        "With --assets the files go into a directory, one for each distinct file. "
                            + "A record's line says under which names its files lie there. A file "
                            + "that is there already and sound is not fetched again, so an "
                            + "interrupted export can be repeated.",
                        "Exit code 1 if a file cannot be had. Standard error names it, and the "
                            + "others are written.",
                    ],
                    options: [Self.email] + PlaceOptions.all + [
                        .value(
                            "assets", .directory,
                            "Write the files of records here; made if it is missing")
                    ],
                    examples: [
                        .init(
                            "stratusctl user export --email mara@example.org --container "
                                + "iCloud.org.example.app > mara.jsonl",
                            "To give a person their data"),
                        .init(
                            "stratusctl user export --email mara@example.org --container "
                                + "iCloud.org.example.app --assets files > mara.jsonl",
                            "With the bytes of their files"),
                    ],
                    run: ExportCommand.run),
                ControlCommand(
                    "reset-link",
                    "Print the address of a page that sets a new password; it works once",
                    options: [Self.email],
                    examples: [
                        .init(
                            "stratusctl user reset-link --email mara@example.org",
                            "When a person has forgotten the password")
                    ],
                    run: IdentityCommands.makeResetLink),
                ControlCommand(
                    "sign-out", "End one session of a person, or every one",
                    options: [
                        Self.email,
                        .value(
                            "session", .text("ID"),
                            "Only this one: its ID in 'user show'; every one otherwise"),
                    ],
                    examples: [
                        .init(
                            "stratusctl user sign-out --email mara@example.org",
                            "When a device was stolen"),
                        .init(
                            "stratusctl user sign-out --email mara@example.org --session 1f2e",
                            "When it is known which"),
                    ],
                    run: IdentityCommands.signOut),
                ControlCommand(
                    "sign-in", "Print a web-auth token, for scripts and tests",
                    options: [Self.email] + PlaceOptions.all + [
                        .flag("stay", nil, "Valid for two weeks without use instead of a day")
                    ],
                    examples: [
                        .init(
                            "stratusctl user sign-in --email mara@example.org --container iCloud.org.example.app",
                            "For a request by curl")
                    ],
                    run: IdentityCommands.signIn),
                ControlCommand(
                    "app-password",
                    "Passwords for programs that mount a person's documents",
                    discussion: [
                        "WebDAV clients ask for a name and a password. The name may be any; the "
                            + "password is one of these, never the account's own."
                    ],
                    options: [Self.email] + PlaceOptions.all,
                    subcommands: [
                        ControlCommand(
                            "add", "Make one and print it; it is shown only once",
                            options: [
                                .value(
                                    "label", .text("LABEL"), required: true,
                                    "What it is for, as the person will find it in lists"),
                                .flag("read-only", nil, "It changes nothing"),
                                .flag(
                                    "everything", nil,
                                    "It shows what apps keep beside the folder Documents too"),
                            ],
                            examples: [
                                .init(
                                    "stratusctl user app-password add --email ann@example.org "
                                        + "--container iCloud.org.example.app --label laptop",
                                    "To mount documents on a laptop")
                            ],
                            run: IdentityCommands.addAppPassword),
                        ControlCommand(
                            "list", "A person's app passwords, with their IDs",
                            examples: [
                                .init(
                                    "stratusctl user app-password list --email mara@example.org --container iCloud.org.example.app",
                                    "To find the ID of one")
                            ],
                            run: IdentityCommands.listAppPasswords),
                        ControlCommand(
                            "revoke", "Revoke one: every node refuses it within two seconds",
                            positionals: [
                                PositionalDefinition(
                                    "ID", .text("ID"), "its ID in 'app-password list'")
                            ],
                            examples: [
                                .init(
                                    "stratusctl user app-password revoke --email mara@example.org --container iCloud.org.example.app 1f2e",
                                    "When the laptop was lost")
                            ],
                            run: IdentityCommands.revokeAppPassword),
                    ]),
            ]),
        ControlCommand(
            "role", "Custom roles of a container's users",
            discussion: [
                "The schema defines roles and what they may do; these commands give them to "
                    + "users."
            ],
            options: PlaceOptions.all,
            subcommands: [
                ControlCommand(
                    "list", "Users and their roles",
                    examples: [
                        .init(
                            "stratusctl role list --container iCloud.org.example.app",
                            "Who has which role?")
                    ],
                    run: IdentityCommands.listMembers),
                ControlCommand(
                    "grant", "Give a role to a user",
                    options: [Self.member],
                    positionals: [PositionalDefinition("ROLE", .text("ROLE"), "the role")],
                    examples: [
                        .init(
                            "stratusctl role grant --container iCloud.org.example.app --user mara@example.org Editors",
                            "The role must stand in the schema")
                    ],
                    run: IdentityCommands.grantRole),
                ControlCommand(
                    "revoke", "Take a role away from a user", options: [Self.member],
                    positionals: [PositionalDefinition("ROLE", .text("ROLE"), "the role")],
                    examples: [
                        .init(
                            "stratusctl role revoke --container iCloud.org.example.app --user mara@example.org Editors",
                            "When somebody leaves the team")
                    ],
                    run: IdentityCommands.revokeRole),
            ]),
        ControlCommand(
            "explain-access",
            "Explain why somebody may or may not read, create or write records of a type",
            options: PlaceOptions.all + [
                .value("type", .text("TYPE"), required: true, "The record type"),
                .value(
                    "user", .text("USER"),
                    "E-mail address, record name or key; without it, a caller with only an "
                        + "API token"),
                .value(
                    "creator", .text("NAME"), "The record name of the user who created the record"),
            ],
            examples: [
                .init(
                    "stratusctl explain-access --container iCloud.org.example.app --type Book --user mara@example.org",
                    "Why may she not save a book?")
            ],
            run: IdentityCommands.explain),
        ControlCommand(
            "sealing-key", "The keys that seal web-auth tokens, sign-in links and sync tokens",
            subcommands: [
                ControlCommand(
                    "list", "Every key: which one seals, and which ones still open tokens",
                    examples: [.init("stratusctl sealing-key list", "Which keys open tokens?")],
                    run: IdentityCommands.listSealingKeys),
                ControlCommand(
                    "rotate", "Make a new key; nobody is signed out",
                    discussion: [
                        "The new key seals once every node has read it, ten seconds later. "
                            + "Older keys still open the tokens that they sealed, until they are "
                            + "revoked."
                    ],
                    examples: [.init("stratusctl sealing-key rotate", "Once a year")],
                    run: IdentityCommands.rotateSealingKey),
                ControlCommand(
                    "revoke",
                    "Revoke older keys: their tokens are refused everywhere within two "
                        + "seconds",
                    discussion: [
                        "Use this if a key may have become known. People whose token was "
                            + "sealed with a revoked key sign in again. Clients whose sync token "
                            + "was sealed with one fetch everything from the beginning."
                    ],
                    options: [
                        .value("before", .integer(1...1_000_000), "Every key with a lower number"),
                        .flag("all", nil, "Make a new key and revoke all others"),
                    ],
                    examples: [
                        .init(
                            "stratusctl sealing-key revoke --before 3",
                            "When a backup with older keys was lost")
                    ],
                    run: IdentityCommands.revokeSealingKeys),
            ]),
        ControlCommand(
            "audit", "Show the changes that administrators made",
            options: [
                .value("limit", .integer(1...1_000), "Entries to show (default: 100)"),
                .flag("verify", nil, "Check that no entry was changed, dropped or added"),
            ],
            examples: [.init("stratusctl audit --verify", "Was an entry changed or removed?")],
            run: IdentityCommands.audit),
    ]

    private static let member = OptionDefinition.value(
        "user", .text("USER"), required: true, "E-mail address, record name or key")
}
