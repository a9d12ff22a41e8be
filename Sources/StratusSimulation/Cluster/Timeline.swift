import StratusConsensus
import StratusModel
import StratusPlacement

/// The events of a run, gathered for a picture.
package struct Timeline {
    private struct Span {
        var node: NodeID
        var from: Int64
        var to: Int64
        var kind: String
        var text: String
    }
    private struct Leadership {
        var group: GroupID
        var node: NodeID
        var term: Term
        var from: Int64
        var to: Int64?
    }
    private struct Move {
        var group: GroupID
        var number: UInt64
        var text: String
        var from: Int64
        var to: Int64?
    }
    private struct Operation {
        var group: GroupID
        var from: Int64
        var to: Int64
        var isKnown: Bool
    }

    private var spans: [Span] = []
    private var downSince: [NodeID: (time: Int64, losesPower: Bool)] = [:]
    private var leaderships: [Leadership] = []
    private var operations: [Operation] = []
    private var faultsEndedAt: Int64?
    private var moves: [Move] = []

    package init() {}

    mutating func started(_ node: NodeID, at time: Int64) {
        guard let down = self.downSince.removeValue(forKey: node) else { return }
        self.spans.append(
            Span(
                node: node, from: down.time, to: time, kind: down.losesPower ? "power" : "crash",
                text: down.losesPower ? "no power" : "crashed"))
    }

    mutating func crashed(_ node: NodeID, at time: Int64, losesPower: Bool) {
        self.downSince[node] = (time, losesPower)
        for position in self.leaderships.indices
        where self.leaderships[position].node == node && self.leaderships[position].to == nil {
            self.leaderships[position].to = time
        }
    }

    mutating func paused(_ node: NodeID, from: Int64, to: Int64) {
        self.spans.append(Span(node: node, from: from, to: to, kind: "pause", text: "paused"))
    }

    mutating func cut(_ links: [(NodeID, NodeID)], from: Int64, to: Int64) {
        for (one, other) in links where one != other {
            self.spans.append(
                Span(node: one, from: from, to: to, kind: "cut", text: "\(one) ↛ \(other)"))
        }
    }

    mutating func role(
        _ role: RaftGroup.Role, term: Term, of node: NodeID, in group: GroupID, at time: Int64
    ) {
        for position in self.leaderships.indices
        where self.leaderships[position].node == node && self.leaderships[position].group == group
            && self.leaderships[position].to == nil
        {
            self.leaderships[position].to = time
        }
        if role == .leader {
            self.leaderships.append(
                Leadership(group: group, node: node, term: term, from: time, to: nil))
        }
    }

    mutating func operation(in group: GroupID, from: Int64, to: Int64, isKnown: Bool) {
        self.operations.append(Operation(group: group, from: from, to: to, isKnown: isKnown))
    }

    mutating func begun(_ move: ReplicaMove, at time: Int64) {
        let text =
            "\(move.group) moves from \(move.from?.description ?? "nowhere") to "
            + "\(move.to?.description ?? "nowhere")"
        self.moves.append(
            Move(group: move.group, number: move.number, text: text, from: time, to: nil))
    }

    mutating func ended(_ move: ReplicaMove, isDone: Bool, at time: Int64) {
        for position in self.moves.indices
        where self.moves[position].group == move.group && self.moves[position].to == nil {
            self.moves[position].to = time
            self.moves[position].text += isDone ? "" : ", taken back"
        }
    }

    /// Records the role of a node in the cluster from here on.
    mutating func became(_ text: String, _ node: NodeID, at time: Int64) {
        self.spans.append(
            Span(node: node, from: time, to: time + 20_000_000, kind: "member", text: text))
    }

    mutating func faultsEnded(at time: Int64) { self.faultsEndedAt = time }

    /// A picture: one lane for each node with its leaderships and troubles, one for each group's
    /// operations. Hovering over a box says what it is.
    package func svg(title: String, nodes: Int, groups: Int, end: Int64) -> String {
        let left = 60.0
        let width = 1_400.0
        let shownGroups = min(groups, 6)
        let lane = 26.0 + 10.0 * Double(shownGroups)
        let height = 60.0 + lane * Double(nodes) + 24.0 * Double(shownGroups) + 30.0
        func x(_ time: Int64) -> Double {
            (left + (width - left - 10) * Double(time) / Double(max(1, end))).rounded()
        }
        func top(_ node: NodeID) -> Double { 40 + lane * Double(node.raw - 1) }
        let colours = ["#2a6f97", "#e07a5f", "#3d8361", "#8d5a97", "#b08900", "#5c677d"]
        func box(
            _ from: Int64, _ to: Int64, _ y: Double, _ h: Double, _ fill: String, _ text: String
        )
            -> String
        {
            "<rect x=\"\(x(from))\" y=\"\(y)\" width=\"\(max(1, x(to) - x(from)))\" height=\"\(h)\" "
                + "fill=\"\(fill)\"><title>\(text)</title></rect>\n"
        }
        var out =
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"\(width)\" height=\"\(height)\" "
            + "font-family=\"sans-serif\" font-size=\"11\">\n"
            + "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
            + "<text x=\"10\" y=\"18\" font-size=\"13\">\(title)</text>\n"
        for number in 1...max(1, nodes) {
            let node = NodeID(UInt32(number))
            out += "<text x=\"10\" y=\"\(top(node) + 14)\">\(node)</text>\n"
            out +=
                "<line x1=\"\(left)\" x2=\"\(width - 10)\" y1=\"\(top(node) + lane - 4)\" "
                + "y2=\"\(top(node) + lane - 4)\" stroke=\"#dddddd\"/>\n"
        }
        for span in self.spans {
            let fill =
                switch span.kind {
                case "power": "#d62828"
                case "crash": "#f4a3a3"
                case "pause": "#cccccc"
                case "member": "#111111"
                default: "#ffe0a3"
                }
            let offset = span.kind == "cut" ? 8.0 : 0.0
            out += box(
                span.from, span.to, top(span.node) + offset, span.kind == "cut" ? 5 : 8, fill,
                "\(span.node) \(span.text)")
        }
        for item in self.leaderships where Int(item.group.raw) < shownGroups {
            let y = top(item.node) + 16 + 10 * Double(item.group.raw)
            out += box(
                item.from, item.to ?? end, y, 8, colours[Int(item.group.raw) % colours.count],
                "\(item.node) leads \(item.group) in term \(item.term)")
            if x(item.to ?? end) - x(item.from) > 20 {
                out +=
                    "<text x=\"\(x(item.from) + 2)\" y=\"\(y + 7)\" font-size=\"8\" "
                    + "fill=\"white\">\(item.term.raw)</text>\n"
            }
        }
        let operationsTop = 40 + lane * Double(nodes)
        for number in 0..<shownGroups {
            let y = operationsTop + 24 * Double(number)
            out += "<text x=\"10\" y=\"\(y + 14)\">g\(number) ops</text>\n"
        }
        for (number, item) in self.operations.enumerated() where Int(item.group.raw) < shownGroups {
            let y = operationsTop + 24 * Double(item.group.raw) + Double(number % 5) * 4
            out += box(
                item.from, item.to, y, 3, item.isKnown ? "#3d8361" : "#d62828",
                item.isKnown ? "answered" : "outcome unknown")
        }
        for move in self.moves where Int(move.group.raw) < shownGroups {
            out += box(
                move.from, move.to ?? end, operationsTop + 24 * Double(move.group.raw) + 19, 4,
                "#8d5a97", move.text)
        }
        if let ended = self.faultsEndedAt {
            out +=
                "<line x1=\"\(x(ended))\" x2=\"\(x(ended))\" y1=\"30\" y2=\"\(height - 10)\" "
                + "stroke=\"black\" stroke-dasharray=\"4\"/>\n"
                + "<text x=\"\(x(ended) + 4)\" y=\"34\">faults end</text>\n"
        }
        let legend = [
            (colours[0], "leads, with its term (a colour for each group)"), ("#f4a3a3", "crashed"),
            ("#d62828", "no power; outcome unknown"), ("#cccccc", "paused"),
            ("#ffe0a3", "cannot send to a peer"), ("#3d8361", "operation answered"),
            ("#8d5a97", "a replica moves"),
        ]
        var place = left + 60
        for (colour, text) in legend {
            out +=
                "<rect x=\"\(place)\" y=\"\(height - 16)\" width=\"12\" height=\"8\" "
                + "fill=\"\(colour)\"/>\n"
                + "<text x=\"\(place + 16)\" y=\"\(height - 8)\">\(text)</text>\n"
            place += 40 + 6 * Double(text.count)
        }
        out += "<text x=\"\(left)\" y=\"\(height - 8)\">0</text>\n"
        out +=
            "<text x=\"\(width - 70)\" y=\"\(height - 8)\">\(end / 1_000_000) ms</text>\n</svg>\n"
        return out
    }
}
