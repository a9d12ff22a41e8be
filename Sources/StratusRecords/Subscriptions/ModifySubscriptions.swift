package import StratusCoding
package import StratusModel
package import StratusRows

/// `subscriptions/modify`: in order, each on its own. The owner is the command's principal.
package struct ModifySubscriptions: DatabaseOperation, LevelledContent, Equatable {
    package static let number: UInt8 = 10
    /// All that the owner has is read twice: keys to count them, rows to count their operands. What
    /// is wanted of a type is read and written once.
    package static let bound = WorkBound.entry(60_000)

    package enum Operation: Sendable, Equatable {
        /// Made, replaced where the content differs, or left as it is where it does not.
        case create(Subscription)
        /// Replaced; one that is not there is refused.
        case update(Subscription)
        case delete(String)

        package var id: String {
            switch self {
            case .create(let subscription), .update(let subscription): subscription.id
            case .delete(let id): id
            }
        }
    }

    /// Where the subscriptions are kept.
    package var database = DatabaseID()
    /// Whether they are those of the owner's shared database.
    package var isShared = false
    /// The most that one owner may have here.
    package var countMax: UInt32 = 1_000
    /// 1…200.
    package var operations: [Operation] = []

    package init() {}

    package var payer: Payer { .owner(of: self.database) }
    package var need: AccessNeed { .owner }
    package var adds: Bool {
        self.operations.contains { if case .delete = $0 { false } else { true } }
    }
    /// Comparators, selectors and types of predicates stay in rows.
    package var contentLevel: FeatureLevel {
        self.operations.reduce(.one) { level, operation in
            switch operation {
            case .create(let subscription), .update(let subscription):
                max(level, subscription.predicate?.level ?? .one)
            case .delete: level
            }
        }
    }

    package mutating func lay<F: Form>(in form: inout F) throws(F.Problem) {
        try form.lay(&self.isShared)
        try form.lay(&self.countMax)
        // One more than it takes is told so.
        try form.lay(&self.operations, atMost: RecordState.operationCountMax + 1)
    }

    package func apply(
        in state: inout RecordState, at entry: borrowing EntryContext, over rows: Rows
    ) throws(StoreError) -> Result<ModifiedSubscriptions, RequestRefusal> {
        let subscriber = entry.principal.userRecordName
        if let refusal = self.refusal(of: subscriber) { return .failure(refusal) }
        let database = try state.openDatabase(self.database, over: rows)
        var edit = SubscriptionEdit(
            database: database, subscriber: subscriber,
            watch: try state.cache.watch(of: database, over: rows.view))
        edit.isShared = self.isShared
        edit.countMax = Int(self.countMax)
        var modified = ModifiedSubscriptions()
        for operation in self.operations {
            modified.results.append(try edit.apply(operation, &state.cache, over: rows))
        }
        try edit.flush(into: rows, cache: &state.cache, bugs: state.bugs)
        return .success(modified)
    }

    private func refusal(of subscriber: String) -> RequestRefusal? {
        // Subscriptions belong to somebody.
        guard !subscriber.isEmpty, !subscriber.utf8.contains(0),
            !(self.isShared && self.database.scope == .public)
        else { return RequestRefusal(.accessDenied) }
        if self.operations.isEmpty { return RequestRefusal(.empty) }
        let countMax = RecordState.operationCountMax
        if self.operations.count > countMax {
            return RequestRefusal(.tooManyItems, String(countMax))
        }
        return nil
    }
}

extension ModifySubscriptions.Operation: FormChoice {
    /// What stands there until it is read.
    private static let unread = Subscription("unread", .database, content: [])

    package init() { self = .delete("") }

    package var number: UInt8 {
        switch self {
        case .create: 1
        case .update: 2
        case .delete: 3
        }
    }

    package init?(number: UInt8) {
        switch number {
        case 1: self = .create(Self.unread)
        case 2: self = .update(Self.unread)
        case 3: self = .delete("")
        default: return nil
        }
    }

    package mutating func layFields<F: Form>(in form: inout F) throws(F.Problem) {
        switch self {
        case .create(var subscription):
            try form.lay(&subscription)
            self = .create(subscription)
        case .update(var subscription):
            try form.lay(&subscription)
            self = .update(subscription)
        case .delete(var id):
            try form.lay(&id)
            self = .delete(id)
        }
    }
}

/// The outcome of a ``ModifySubscriptions`` or of a ``FollowNews``, whose only result it is.
package struct ModifiedSubscriptions: FormValue, Sendable, Equatable {
    /// In the order of the operations.
    package var results: [SubscriptionResult] = []

    package init() {}

    package mutating func lay<F: Form>(in form: inout F) throws(F.Problem) {
        try form.lay(&self.results, atMost: RecordState.operationCountMax)
    }
}

/// What became of one operation of ``ModifySubscriptions``.
package enum SubscriptionResult: UInt8, Sendable, CaseIterable, FormValue {
    /// Made, replaced, or there already with equal content.
    case saved = 1
    case deleted = 2
    case notFound = 3
    case zoneNotFound = 4
    /// The owner has as many as one may, or they are as large as they may be.
    case tooMany = 5

    package init() { self = .saved }

    package mutating func lay<F: Form>(in form: inout F) throws(F.Problem) {
        var number = self.rawValue
        try form.lay(byte: &number)
        guard let known = Self(rawValue: number) else { return try form.require(false) }
        self = known
    }
}
