import StratusModel

/// What a node has still to do so that nothing of what was erased is left on its disk.
///
/// A value: its owner tells it which partitions have a mark, asks which file is to be made anew, and
/// carries that out. When no partition has a mark any more, the log lets go of all that it has
/// written.
struct Remains {
    /// An erasure is many commands: a file is made anew once none has come for so long.
    static let quietTime = Duration.seconds(5)
    /// And after this at the latest.
    static let quietTimeMax = Duration.seconds(60)
    /// However many people are erased, a file rests for so many times as long as it took to make.
    static let restFactor = 20
    static let restMin = Duration.seconds(20)
    static let restMax = Duration.seconds(600)
    /// For so long the log keeps what followers need that are behind. Then they get a snapshot.
    static let followerPatience = Duration.seconds(1_200)
    /// Erasures that follow each other without a pause are waited for as long as this.
    static let erasingPatience = Duration.seconds(1_500)
    /// Milliseconds after which a follower asks for outcomes to be forgotten.
    static let leaderPatience: Int64 = 5_000
    /// Milliseconds after which a file is made anew although no command has forgotten them.
    static let forgettingPatience: Int64 = 60_000
    /// What failed is tried again after this.
    static let retryTime = Duration.seconds(30)

    struct Owed: Equatable {
        var index: LogIndex
        var since: MonotonicTime
        var changedAt: MonotonicTime
        var retryAt: MonotonicTime?
    }

    /// Partitions with a mark.
    private(set) var rows: [GroupID: Owed] = [:]
    /// The partition whose file is being made anew.
    private var rebuilding: (group: GroupID, since: MonotonicTime)?
    /// Until when the file of a partition is not made anew again.
    private var restsUntil: [GroupID: MonotonicTime] = [:]
    /// Since when the note says that the log has to let go; nil: it says nothing.
    var notedSince: Int64?
    /// When this process learned of that.
    var notedAt: MonotonicTime?
    /// Since when the log is letting go; nil: it is not.
    var expiringSince: MonotonicTime?

    /// - Parameter marked: all partitions that have a mark now, with the entry that it names.
    mutating func see(_ marked: [GroupID: LogIndex], at now: MonotonicTime) {
        for group in self.rows.keys where marked[group] == nil { self.rows[group] = nil }
        for (group, index) in marked {
            guard let known = self.rows[group] else {
                self.rows[group] = Owed(index: index, since: now, changedAt: now)
                continue
            }
            if index > known.index {
                self.rows[group]?.index = index
                self.rows[group]?.changedAt = now
            }
        }
        // More has been erased: it is in the log too, and that begins again.
        if !marked.isEmpty, !self.isLogOverdue(at: now) { self.expiringSince = nil }
        self.restsUntil = self.restsUntil.filter { now < $0.value }
    }

    /// The partitions whose files are to be made anew, the one that waits longest first.
    func due(at now: MonotonicTime) -> [GroupID] {
        self.rows.filter { group, owed in
            if let retryAt = owed.retryAt, now < retryAt { return false }
            if self.restsUntil[group] != nil { return false }
            return now >= min(owed.changedAt + Self.quietTime, owed.since + Self.quietTimeMax)
        }.sorted { ($0.value.since, $0.key) < ($1.value.since, $1.key) }.map(\.key)
    }

    mutating func rebuildBegun(_ group: GroupID, at now: MonotonicTime) {
        self.rebuilding = (group, now)
    }

    /// The file of a partition was made anew.
    mutating func rebuilt(_ group: GroupID, at now: MonotonicTime) {
        self.rows[group] = nil
        var rest = Self.restMin
        if let begun = self.rebuilding, begun.group == group {
            rest = max(rest, min((now - begun.since) * Self.restFactor, Self.restMax))
        }
        self.rebuilding = nil
        self.restsUntil[group] = now + rest
    }

    /// Whether its file is made anew although something is still to be removed: it is made once
    /// more afterwards.
    func isOverdue(_ group: GroupID, at now: MonotonicTime) -> Bool {
        self.rows[group].map { now >= $0.since + Self.erasingPatience } ?? false
    }

    /// Whether the log lets go although partitions have marks: it does so once more afterwards.
    func isLogOverdue(at now: MonotonicTime) -> Bool {
        self.notedAt.map { now >= $0 + Self.erasingPatience } ?? false
    }

    mutating func failed(_ group: GroupID, at now: MonotonicTime) {
        self.rows[group]?.retryAt = now + Self.retryTime
    }

    /// Whether the log may keep nothing more for followers.
    func isPatienceOver(at now: MonotonicTime) -> Bool {
        self.expiringSince.map { now >= $0 + Self.followerPatience } ?? false
    }

    var isNothing: Bool { self.rows.isEmpty && self.notedSince == nil }
}
