import StratusModel

/// An item that waits for the log's next batch.
enum QueuedItem {
    case entry(GroupID, Entry, token: UInt64)
    case hardState(GroupID, HardState)
    case cut(GroupID, from: LogIndex)
    case start(GroupID, GroupTail.LogPoint)
    /// Entries through here were on this disk: those that are not are owed.
    case last(GroupID, GroupTail.LogPoint)

    var size: Int { LogFormat.itemSize + self.payloadSize }

    var isOwed: Bool { if case .last = self { true } else { false } }

    var payloadSize: Int {
        if case .entry(_, let entry, _) = self { entry.payload.count } else { 0 }
    }
}

extension LogFormat.Item {
    init(_ queued: QueuedItem, crc: UInt32) {
        switch queued {
        case .entry(let group, let entry, _):
            self.init(
                kind: .entry, group: group, index: entry.index.raw, term: entry.term.raw,
                entryKind: entry.kind.rawValue, time: entry.time,
                size: UInt32(entry.payload.count), crc: crc)
        case .hardState(let group, let hardState):
            self.init(
                kind: .hardState, group: group,
                index: hardState.vote.map { UInt64($0.raw) + 1 } ?? 0, term: hardState.term.raw)
        case .cut(let group, let from):
            self.init(kind: .cut, group: group, index: from.raw, term: 0)
        case .start(let group, let start):
            self.init(kind: .start, group: group, index: start.index.raw, term: start.term.raw)
        case .last(let group, let last):
            self.init(kind: .last, group: group, index: last.index.raw, term: last.term.raw)
        }
    }
}
