package import StratusModel

/// The log text of a membership change: nodes by name, partitions by the numbers that `stratusctl`
/// shows.
package struct ChangeWords: Sendable, Equatable, CustomStringConvertible {
    /// `move begins`, `drain`.
    package var change: String
    package var node: String?
    package var partition: String?
    package var from: String?
    package var to: String?
    /// Several of these make one move, of which the end is told to everybody.
    package var isDetail = false

    private init(_ change: String) { self.change = change }

    /// A fingerprint as administrators write it.
    package static func hexadecimal(_ bytes: Bytes) -> String {
        bytes.map { String(Int($0) + 0x100, radix: 16).suffix(2) }.joined()
    }

    /// - Parameter view: where names are looked up; without one, nodes have their numbers.
    package init(_ command: SystemCommand, in view: ClusterView?) {
        func name(_ id: NodeID) -> String { view?.node(id)?.name ?? "\(id)" }
        func about(_ change: String, _ id: NodeID) -> ChangeWords {
            var words = ChangeWords(change)
            words.node = name(id)
            return words
        }
        func moving(_ change: String, _ move: ReplicaMove, isDetail: Bool) -> ChangeWords {
            var words = ChangeWords(change)
            words.partition = Self.partition(move.group)
            words.from = move.from.map(name)
            words.to = move.to.map(name)
            words.isDetail = isDetail
            return words
        }
        func moved(_ change: String, _ group: GroupID, _ number: UInt64, isDetail: Bool)
            -> ChangeWords
        {
            let move = view?.moves.first { $0.group == group && $0.number == number }
            return moving(
                change, move ?? ReplicaMove(group, from: nil, to: nil), isDetail: isDetail)
        }
        switch command {
        case .form: self = ChangeWords("form")
        case .addToken: self = ChangeWords("make a join token")
        case .revokeToken: self = ChangeWords("revoke a join token")
        case .join(let node, _):
            self = ChangeWords("join")
            self.node = node.name
        case .announce(let node):
            self = ChangeWords("announce")
            self.node = node.name
            self.isDetail = true
        case .drain(let id, let leaves, _):
            self = about(leaves ? "remove when empty" : "drain", id)
        case .undrain(let id): self = about("undrain", id)
        case .withdrawCertificate(let fingerprint):
            self = ChangeWords("withdraw certificate \(Self.hexadecimal(fingerprint))")
        case .restoreCertificate(let fingerprint):
            self = ChangeWords("restore certificate \(Self.hexadecimal(fingerprint))")
        case .remove(let id, _): self = about("remove", id)
        case .configure(let id, let weight, let rack):
            self = about(
                "configure" + (weight.map { " weight \($0)" } ?? "")
                    + (rack.map { " rack '\($0)'" } ?? ""), id)
        case .beginMove(let move): self = moving("move begins", move, isDetail: true)
        case .fenceMove(let group, let number, _):
            self = moved("move is fenced", group, number, isDetail: true)
        case .finishMove(let group, let number):
            self = moved("move is done", group, number, isDetail: false)
        case .abandonMove(let group, let number, _):
            self = moved("move is given up", group, number, isDetail: false)
        case .raiseFeatureLevel(let level):
            self = ChangeWords("raise the feature level to \(level)")
        case .recover: self = ChangeWords("recover")
        }
    }

    /// `system`, or the number that `stratusctl partition list` shows.
    package static func partition(_ group: GroupID) -> String {
        PartitionID(group: group).map { "\($0.raw)" } ?? "system"
    }

    package var description: String {
        var text = self.change
        if let node { text += " \(node)" }
        if let partition { text += " partition \(partition)" }
        if let from { text += " from \(from)" }
        if let to { text += " to \(to)" }
        return text
    }
}
