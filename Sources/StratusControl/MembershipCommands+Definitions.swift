import StratusCommandLine

extension MembershipCommands {
    private static let name = PositionalDefinition("NODE", .text("NODE"), "the node's name")
    private static let partition = PositionalDefinition(
        "PARTITION", .text("PARTITION"), "its number, or 'system'")
    private static let accept = OptionDefinition.value(
        "accept", .text("N"),
        "Do it anyway; N is the number that the refusal named")
    private static let noWait = OptionDefinition.flag(
        "no-wait", nil, "Return at once; 'cluster status' shows the progress")

    static let paths: [[String]] = [
        ["cluster", "join-token"], ["cluster", "certificate", "withdraw"],
        ["cluster", "certificate", "restore"], ["cluster", "certificate", "list"],
        ["node", "drain"], ["node", "undrain"], ["node", "remove"],
        ["node", "replace"], ["node", "weight"], ["partition", "show"], ["partition", "move"],
        ["partition", "leader"], ["doctor"], ["top"],
    ]

    static let clusterCommands = [
        CommandDefinition(
            "join-token", "Make a token that lets one node join; it is shown only once",
            options: [
                .value("valid", .duration, default: "1h", "How long it is valid")
            ],
            examples: [.init("stratusctl cluster join-token > d.token", "For the new node's file")]),
        CommandDefinition(
            "certificate", "Withdraw certificates of nodes, for instance stolen ones",
            subcommands: [
                CommandDefinition(
                    "withdraw", "Let no peer take this certificate any more",
                    discussion: [
                        "Every node closes the connections that the certificate opened, and takes "
                            + "no new ones. Give the node a new certificate first, if it still runs. "
                            + "'openssl x509 -in FILE -noout -fingerprint -sha256' prints the "
                            + "fingerprint."
                    ], positionals: [Self.fingerprint]),
                CommandDefinition(
                    "restore", "Take a withdrawal back", positionals: [Self.fingerprint]),
                CommandDefinition("list", "Show the withdrawn certificates"),
            ]),
    ]

    private static let fingerprint = PositionalDefinition(
        "FINGERPRINT", .text("HEX"), "SHA-256 of the certificate, with or without colons")

    static let nodeCommands = [
        CommandDefinition(
            "drain", "Move all replicas off a node; it stays a member",
            options: [Self.accept, Self.noWait], positionals: [Self.name]),
        CommandDefinition(
            "undrain", "Let a node hold replicas again", positionals: [Self.name]),
        CommandDefinition(
            "remove", "Move all replicas off a node, then remove it for good",
            discussion: [
                "With --now, the node is removed at once, with the replicas it still holds. "
                    + "Use this for a machine that is gone. The command says how many partitions "
                    + "lose a replica or their majority, and asks for that number as --accept."
            ],
            options: [
                .flag("now", nil, "Remove it at once, with the replicas it holds"), Self.accept,
                Self.noWait,
            ], positionals: [Self.name],
            examples: [.init("stratusctl node remove e", "Before the machine is switched off")]),
        CommandDefinition(
            "replace", "Move all replicas off a node whose successor has joined, then remove it",
            discussion: [
                "The successor must join first, under a name of its own. The old node need "
                    + "not run."
            ],
            options: [Self.accept, Self.noWait],
            positionals: [
                PositionalDefinition("OLD", .text("NODE"), "the node to remove"),
                PositionalDefinition("NEW", .text("NODE"), "its successor, which has joined"),
            ]),
        CommandDefinition(
            "weight", "Change how much data a node holds, relative to the others",
            options: [.value("rack", .text("RACK"), "Change its rack too")],
            positionals: [
                Self.name,
                PositionalDefinition("WEIGHT", .text("N"), "1 to 100000; a new node has 100"),
            ]),
    ]

    static let partitionCommands = [
        CommandDefinition(
            "show", "One partition: replicas, leader, lag, and its move",
            positionals: [Self.partition]),
        CommandDefinition(
            "move", "Move one replica to another node",
            discussion: [
                "The planner keeps the nodes balanced: if this move unbalances them, others "
                    + "follow."
            ],
            options: [
                .value("from", .text("NODE"), required: true, "The node that gives up its replica"),
                .value("to", .text("NODE"), required: true, "The node that gets a replica"),
                Self.noWait,
            ], positionals: [Self.partition]),
        CommandDefinition(
            "leader", "Transfer a partition's leadership to another of its replicas",
            options: [.value("to", .text("NODE"), required: true, "The node that is to lead")],
            positionals: [Self.partition]),
    ]

    static let definitions = [
        CommandDefinition(
            "doctor",
            "Find problems of the cluster and say what to do: exit code 1 if there are any",
            options: [
                .value(
                    "wait", .duration,
                    "Wait at most this long until nothing is found, with progress")
            ],
            examples: [
                .init("stratusctl doctor", "When something is odd, and before an upgrade"),
                .init("stratusctl doctor --wait 60s", "Between two nodes of an upgrade"),
            ]),
        CommandDefinition(
            "top", "Show the nodes of the cluster continuously, until interrupted",
            options: [
                .value("every", .duration, default: "2s", "The time between two updates"),
                .value("count", .text("N"), "Stop after this many updates"),
            ]),
    ]
}
