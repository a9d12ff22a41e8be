import StratusModel
import StratusRecords

/// One request to a gateway about all parts of a database, question by question.
struct ZoneRequest {
    enum Kind {
        case modify([ModifyZones.Operation])
        case list
        case lookup(String)
        case walk
        case erase
        case query(least: Int64)
        /// A gateway that has heard of a later layout of the container, with more buckets.
        case otherLayout
    }

    enum Question: Equatable {
        case note(BucketMask)
        case home
        case part(Int)
        /// The home as one more part: it is erased last.
        case homePart
    }

    /// What it began with, in one part.
    struct Beginning {
        /// How far the part's feed had come, as somebody was told.
        var floor: UInt64 = 0
        var zones: [String: ZoneIncarnation] = [:]
        var erasureCount = 0
    }

    let kind: Kind
    let calledAt: Int64
    var left: [Question]
    /// The question that is under way.
    var asked: Question?
    var merge: FeedMerge?
    var query: ZoneWideQuery?
    /// The buckets that were asked, or will be.
    var mask: BucketMask
    var beginnings: [DatabaseID: Beginning] = [:]
    /// The bits that somebody had been told of when the home was asked.
    var told = BucketMask()
    /// With a bug planted, the buckets that are read from their start.
    var restarted: Set<Int> = []
    /// With a bug planted, the one identity of all its commands.
    var identity: RequestIdentity?

    /// Asks the parts that have not answered a look of a query.
    mutating func beginLook() {
        self.left = (self.query?.open ?? []).map { $0 == 0 ? .homePart : .part($0 - 1) }
    }

    /// The home has said which buckets are in use: asks those that only the home knew.
    mutating func hearOfHome(_ answer: BucketMask) {
        switch self.kind {
        case .list, .walk, .erase: break
        case .modify, .lookup, .query, .otherLayout: return
        }
        for number in answer.subtracting(self.mask).numbers(
            below: SimulatedZones.database.bucketCount)
        {
            self.left.append(.part(number))
        }
        self.mask = self.mask.union(answer)
        if case .erase = self.kind { self.left.append(.homePart) }
    }
}
