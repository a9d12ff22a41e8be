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

    static let clusterCommands: [ControlCommand] = [
        ControlCommand(
            "join-token", "Make a token that lets one node join; it is shown only once",
            options: [
                .value("valid", .duration, default: "1h", "How long it is valid")
            ],
            examples: [.init("stratusctl cluster join-token > d.token", "For the new node's file")],
            run: MembershipCommands.joinToken),
        ControlCommand(
            "certificate", "Withdraw certificates of nodes, for instance stolen ones",
            subcommands: [
                ControlCommand(
                    "withdraw", "Let no peer take this certificate any more",
                    discussion: [
                        "Every node closes the connections that the certificate opened, and takes "
                            + "no new ones. Give the node a new certificate first, if it still runs. "
                            + "'openssl x509 -in FILE -noout -fingerprint -sha256' prints the "
                            + "fingerprint."
                    ],
                    options: [
                        .value("of", .text("NODE"), "Whose it is, for 'certificate list'")
                    ],
                    positionals: [Self.fingerprint],
                    examples: [
                        .init(
                            "stratusctl cluster certificate withdraw \"$FINGERPRINT\"",
                            "When a node's key was stolen")
                    ],
                    run: MembershipCommands.withdrawCertificate),
                ControlCommand(
                    "restore", "Take a withdrawal back", positionals: [Self.fingerprint],
                    examples: [
                        .init(
                            "stratusctl cluster certificate restore \"$FINGERPRINT\"",
                            "When it was the wrong one")
                    ],
                    run: MembershipCommands.restoreCertificate),
                ControlCommand(
                    "list", "Show the withdrawn certificates",
                    examples: [
                        .init(
                            "stratusctl cluster certificate list",
                            "Which certificates are withdrawn, since when, and by whom?")
                    ],
                    run: MembershipCommands.listCertificates),
            ]),
    ]

    private static let fingerprint = PositionalDefinition(
        "FINGERPRINT", .text("HEX"), "SHA-256 of the certificate, with or without colons")

    static let nodeCommands: [ControlCommand] = [
        ControlCommand(
            "drain", "Move all replicas off a node; it stays a member",
            options: [Self.accept, Self.noWait], positionals: [Self.name],
            examples: [.init("stratusctl node drain d", "Before work on its machine")],
            run: MembershipCommands.drain),
        ControlCommand(
            "undrain", "Let a node hold replicas again", positionals: [Self.name],
            examples: [.init("stratusctl node undrain d", "After the work")],
            run: MembershipCommands.undrain),
        ControlCommand(
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
            examples: [.init("stratusctl node remove e", "Before the machine is switched off")],
            run: MembershipCommands.remove),
        ControlCommand(
            "replace", "Move all replicas off a node whose successor has joined, then remove it",
            discussion: [
                "The successor must join first, under a name of its own. The old node need "
                    + "not run."
            ],
            options: [Self.accept, Self.noWait],
            positionals: [
                PositionalDefinition("OLD", .text("NODE"), "the node to remove"),
                PositionalDefinition("NEW", .text("NODE"), "its successor, which has joined"),
            ],
            examples: [.init("stratusctl node replace c d", "Once d has joined")],
            run: MembershipCommands.replace),
        ControlCommand(
            "weight", "Change how much data a node holds, relative to the others",
            options: [.value("rack", .text("RACK"), "Change its rack too")],
            positionals: [
                Self.name,
                PositionalDefinition("WEIGHT", .text("N"), "1 to 100000; a new node has 100"),
            ],
            examples: [
                .init(
                    "stratusctl node weight d 200 --rack east", "For a machine with a larger disk")
            ],
            run: MembershipCommands.weight),
    ]

    static let partitionCommands: [ControlCommand] = [
        ControlCommand(
            "show", "One partition: replicas, leader, lag, and its move",
            positionals: [Self.partition],
            examples: [.init("stratusctl partition show 12", "Who leads it, and who is behind?")],
            run: MembershipCommands.showPartition),
        ControlCommand(
            "move", "Move one replica to another node",
            discussion: [
                "The planner keeps the nodes balanced: if this move unbalances them, others "
                    + "follow."
            ],
            options: [
                .value("from", .text("NODE"), required: true, "The node that gives up its replica"),
                .value("to", .text("NODE"), required: true, "The node that gets a replica"),
                Self.noWait,
            ], positionals: [Self.partition],
            examples: [
                .init("stratusctl partition move 12 --from a --to d", "Away from a slow disk")
            ],
            run: MembershipCommands.movePartition),
        ControlCommand(
            "leader", "Transfer a partition's leadership to another of its replicas",
            options: [.value("to", .text("NODE"), required: true, "The node that is to lead")],
            positionals: [Self.partition],
            examples: [.init("stratusctl partition leader 12 --to b", "Away from a busy node")],
            run: MembershipCommands.moveLeader),
    ]

    static let commands: [ControlCommand] = [
        ControlCommand(
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
            ],
            run: DoctorCommand.run),
        ControlCommand(
            "top", "Show the nodes of the cluster continuously, until interrupted",
            options: [
                .value("every", .duration, default: "2s", "The time between two updates"),
                .value("count", .text("N"), "Stop after this many updates"),
            ],
            examples: [.init("stratusctl top --every 5s", "During an upgrade")],
            run: TopCommand.run),
    ]
}
