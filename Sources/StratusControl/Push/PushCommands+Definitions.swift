import StratusCommandLine

extension PushCommands {
    private static let user: [OptionDefinition] = [
        .value("user", .text("NAME"), required: true, "The user's record name in the container")
    ]
    private static let key: [OptionDefinition] = [
        .value("team", .text("ID"), required: true, "The team's ten letters and digits"),
        .value("key-id", .text("ID"), required: true, "The key's ten letters and digits"),
    ]

    static let commands: [ControlCommand] = [
        ControlCommand(
            "push", "Keys of push providers, and what is sent to them",
            subcommands: [
                ControlCommand(
                    "apns", "Keys for Apple's push service",
                    subcommands: [
                        ControlCommand(
                            "add", "Give a container a key, or exchange one of the same name",
                            discussion: [
                                "The key is a .p8 file from Apple. It is sealed at the container's "
                                    + "home, and never shown again. It counts on every node a "
                                    + "second later. A key that replaces another of the same team "
                                    + "and name takes over what waits."
                            ],
                            options: PlaceOptions.all + Self.key + [
                                .value(
                                    "key-file", .file, required: true, "The private key, PEM"),
                                .value(
                                    "topics", .text("LIST"), required: true,
                                    "The apps' bundle identifiers, separated by commas; the first "
                                        + "counts for devices that name none"),
                            ],
                            examples: [
                                .init(
                                    "stratusctl push apns add --container iCloud.org.example.app "
                                        + "--team DEF123GHIJ --key-id ABC123DEFG --key-file key.p8 "
                                        + "--topics org.example.app", "For one app")
                            ],
                            run: PushCommands.addKey),
                        ControlCommand(
                            "list", "The container's keys", options: PlaceOptions.all,
                            examples: [
                                .init(
                                    "stratusctl push apns list --container iCloud.org.example.app",
                                    "Which keys are there, and for which apps?")
                            ],
                            run: PushCommands.listKeys),
                        ControlCommand(
                            "remove", "Remove a key", options: PlaceOptions.all + Self.key,
                            examples: [
                                .init(
                                    "stratusctl push apns remove --container iCloud.org.example.app --team DEF123GHIJ --key-id ABC123DEFG",
                                    "Once its successor has been added")
                            ],
                            run: PushCommands.removeKey),
                        ControlCommand(
                            "check", "Send to a device that nobody has, and explain the answer",
                            discussion: [
                                "The answer proves the key, the team, the topic and the network. "
                                    + "The exit code says whether every key is good."
                            ],
                            options: PlaceOptions.all + [
                                .value("topic", .text("ID"), "Only keys of this topic"),
                                .value(
                                    "apns-environment", .choice(["development", "production"]),
                                    "The host to ask; else the one of the environment"),
                            ],
                            examples: [
                                .init(
                                    "stratusctl push apns check --container iCloud.org.example.app --topic org.example.app",
                                    "Does Apple take the key?")
                            ],
                            run: PushCommands.check),
                    ]),
                ControlCommand(
                    "vapid", "Keys for Web Push",
                    subcommands: [
                        ControlCommand(
                            "create", "Make the container's first key and print its public part",
                            options: PlaceOptions.all + [
                                .value(
                                    "contact", .text("URL"), required: true,
                                    "Whom a push service may write to: mailto: or https:")
                            ],
                            examples: [
                                .init(
                                    "stratusctl push vapid create --container "
                                        + "iCloud.org.example.app --contact "
                                        + "mailto:push@example.org",
                                    "Pages subscribe with the printed key")
                            ],
                            run: PushCommands.createVAPID),
                        ControlCommand(
                            "show", "The container's keys, without their secrets",
                            options: PlaceOptions.all,
                            examples: [
                                .init(
                                    "stratusctl push vapid show --container iCloud.org.example.app",
                                    "The public key, for the web page")
                            ],
                            run: PushCommands.showVAPID),
                        ControlCommand(
                            "rotate", "Make the next key and print its public part",
                            discussion: [
                                "Browsers that subscribed with one of the last three keys before "
                                    + "it are still sent to. Others must subscribe again."
                            ],
                            options: PlaceOptions.all + [
                                .value("contact", .text("URL"), "Another contact than before")
                            ],
                            examples: [
                                .init(
                                    "stratusctl push vapid rotate --container iCloud.org.example.app",
                                    "When the private key may be known")
                            ],
                            run: PushCommands.rotateVAPID),
                    ]),
                ControlCommand(
                    "status", "What this node sends, and the state of each way to a provider",
                    discussion: [
                        "Each node of a cluster sends for the databases that it leads. Ask each "
                            + "of them."
                    ],
                    examples: [.init("stratusctl push status", "Does anything wait?")],
                    run: PushCommands.status),
                ControlCommand(
                    "trace", "Recent pushes of this node: from a change to its verdict",
                    discussion: [
                        "A node remembers its last 4,096 pushes, at most 2 MiB, until it ends. "
                            + "The node that leads a database sends for it: ask each of them."
                    ],
                    options: PlaceOptions.all + [
                        .value("record", .text("NAME"), "Only pushes about this record"),
                        .value("event", .text("N"), "Only pushes about the event of this number"),
                        .value("user", .text("NAME"), "Only pushes to this user's devices"),
                        .value("limit", .integer(1...1_000), "Pushes to show (default: 100)"),
                    ],
                    examples: [
                        .init(
                            "stratusctl push trace --container iCloud.org.example.app --record note-1",
                            "What became of a change?")
                    ],
                    run: PushCommands.trace),
                ControlCommand(
                    "devices", "A user's devices and poll tokens",
                    discussion: [
                        "Shows what stands in the way of each, never its address. 'behind' counts "
                            + "events of the user's databases since the device was last told or "
                            + "looked after; most events concern no subscription."
                    ],
                    options: PlaceOptions.all + Self.user,
                    examples: [
                        .init(
                            "stratusctl push devices --container iCloud.org.example.app --user _1f2e",
                            "Is the device known?")
                    ],
                    run: PushCommands.devices),
                ControlCommand(
                    "send", "Send a text to one device of a user",
                    discussion: [
                        "It goes past everything that waits, over a connection of its own, and "
                            + "tells of no change. The exit code says whether the provider took "
                            + "it."
                    ],
                    options: PlaceOptions.all + Self.user + [
                        .value("alert", .text("TEXT"), required: true, "What the device shows"),
                        .value(
                            "device", .text("NAME"),
                            "How the device's name begins; not needed where there is one"),
                    ],
                    examples: [
                        .init(
                            "stratusctl push send --container iCloud.org.example.app --user _ab12 "
                                + "--device 427a98 --alert Hello", "To one of several devices")
                    ],
                    run: PushCommands.send),
                ControlCommand(
                    "explain", "Why a record's change would reach a user's devices, or not",
                    discussion: [
                        "Asks each subscription by the code that matches changes, with the record "
                            + "as it is now, and shows what stands in the way of each device. The "
                            + "exit code says whether a device would be told."
                    ],
                    options: PlaceOptions.all + Self.user + [
                        .value("record", .text("NAME"), required: true, "The record"),
                        .value("zone", .text("NAME"), "Its zone; else the default zone"),
                        .value(
                            "database", .choice(["private", "public"]), default: "private",
                            "The user's private database, or the public one"),
                        .value(
                            "change", .choice(["create", "update", "delete"]), default: "update",
                            "What would happen to it"),
                    ],
                    examples: [
                        .init(
                            "stratusctl push explain --container iCloud.org.example.app --user _1f2e --record note-1",
                            "Why does this person hear nothing?")
                    ],
                    run: PushCommands.explain),
                ControlCommand(
                    "pause", "Send nothing for a container; changes wait",
                    options: PlaceOptions.all,
                    examples: [
                        .init(
                            "stratusctl push pause --container iCloud.org.example.app",
                            "While many records are imported")
                    ],
                    run: PushCommands.pause),
                ControlCommand(
                    "resume", "Send again", options: PlaceOptions.all,
                    examples: [
                        .init(
                            "stratusctl push resume --container iCloud.org.example.app",
                            "After the import")
                    ],
                    run: PushCommands.resume),
            ])
    ]
}
