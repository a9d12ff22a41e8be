import StratusCommandLine

extension MembershipCommands {
    private static let name = PositionalDefinition("NODE", .text("NODE"), "the node's name")
    private static let partition = PositionalDefinition(
        "PARTITION", .text("PARTITION"), "its number, or 'system'")
    private static let accept = OptionDefinition.value(
        "accept", .text("N"),
        "Do it although it costs something: the number that the refusal named")
    private static let noWait = OptionDefinition.flag(
        "no-wait", nil, "Ask for it and return; 'cluster status' shows how far it is")

    static let paths: [[String]] = [
        ["cluster", "join-token"], ["node", "drain"], ["node", "undrain"], ["node", "remove"],
        ["node", "replace"], ["node", "weight"], ["partition", "show"], ["partition", "move"],
        ["partition", "leader"], ["doctor"], ["top"],
    ]

    static let clusterCommands = [
        CommandDefinition(
            "join-token", "Make a token that lets one node join; it is shown this once",
            options: [
                .value("valid", .duration, default: "1h", "How long it may be used")
            ],
            examples: [.init("stratusctl cluster join-token > d.token", "For the new node's file")])
    ]

    static let nodeCommands = [
        CommandDefinition(
            "drain", "Move everything off a node; it stays a member",
            options: [Self.accept, Self.noWait], positionals: [Self.name]),
        CommandDefinition(
            "undrain", "Let a node carry data again", positionals: [Self.name]),
        CommandDefinition(
            "remove", "Move everything off a node, then remove it for good",
            discussion: [
                "With --now it is removed at once, with what it still holds: for a machine that is gone. "
                    + "What that costs is said, and wants --accept."
            ],
            options: [
                .flag("now", nil, "Remove it with what it holds"), Self.accept, Self.noWait,
            ], positionals: [Self.name],
            examples: [.init("stratusctl node remove e", "Before the machine is switched off")]),
        CommandDefinition(
            "replace", "Move everything off a node whose successor has joined, then remove it",
            discussion: [
                "The successor joins first, under a name of its own. The old node need not run."
            ],
            options: [Self.accept, Self.noWait],
            positionals: [
                PositionalDefinition("OLD", .text("NODE"), "the node that goes"),
                PositionalDefinition("NEW", .text("NODE"), "the node that has joined for it"),
            ]),
        CommandDefinition(
            "weight", "Change how much a node carries, relative to the others",
            options: [.value("rack", .text("RACK"), "Its rack too")],
            positionals: [
                Self.name, PositionalDefinition("WEIGHT", .text("N"), "1 to 100000; 100 is usual"),
            ]),
    ]

    static let partitionCommands = [
        CommandDefinition(
            "show", "One partition: replicas, leader, who lags, its move",
            positionals: [Self.partition]),
        CommandDefinition(
            "move", "Move one replica to another node",
            discussion: [
                "The planner keeps nodes level: a move that leaves them uneven is followed by others."
            ],
            options: [
                .value("from", .text("NODE"), required: true, "Who gives it"),
                .value("to", .text("NODE"), required: true, "Who gets it"), Self.noWait,
            ], positionals: [Self.partition]),
        CommandDefinition(
            "leader", "Hand a partition's leadership to another of its replicas",
            options: [.value("to", .text("NODE"), required: true, "Who is to lead")],
            positionals: [Self.partition]),
    ]

    static let definitions = [
        CommandDefinition(
            "doctor",
            "Find what is wrong with the cluster, and say what to do: exit code 1 if anything is",
            examples: [.init("stratusctl doctor", "When something is odd, and before an upgrade")]),
        CommandDefinition(
            "top", "The nodes of the cluster, again and again, until interrupted",
            options: [
                .value("every", .duration, default: "2s", "How often"),
                .value("count", .text("N"), "Stop after so many times"),
            ]),
    ]
}
