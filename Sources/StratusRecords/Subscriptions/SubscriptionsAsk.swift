package import StratusCoding
package import StratusModel
package import StratusRows

/// Asks for the asker's subscriptions in a database.
package struct SubscriptionsAsk: SingleQuestion, DatabaseQuestion, Equatable {
    package static let number: UInt8 = 12
    /// All of an owner at once: a thousand rows, which together are at most 1 MiB.
    package static let bound = WorkBound.page(step: 2_000)

    package var database = DatabaseID()
    /// Whether they are those of the owner's shared database.
    package var isShared = false
    /// Nil: all of them. At most 200.
    package var names: [String]?

    package init() {}

    package var payer: Payer { .owner(of: self.database) }
    package var need: AccessNeed { .owner }

    package mutating func lay<F: Form>(in form: inout F) throws(F.Problem) {
        try form.lay(&self.database)
        try form.lay(&self.isShared)
        try form.lay(
            &self.names,
            by: { (writer, names) in
                writer.write(flag: names != nil)
                if let names { writer.write(texts: names) }
            },
            { (reader) throws(DecodingError) in try reader.flag() ? try reader.texts() : nil })
    }

    package func answer(
        in state: inout RecordState, to asker: Principal, _ cost: ReadCost, over view: RowView
    ) throws(StoreError) -> Result<FoundSubscriptions, RequestRefusal> {
        let subscriber = asker.userRecordName
        guard !subscriber.isEmpty, !subscriber.utf8.contains(0) else {
            return .failure(RequestRefusal(.accessDenied))
        }
        let countMax = RecordState.operationCountMax
        if let names, names.count > countMax {
            return .failure(RequestRefusal(.tooManyItems, String(countMax)))
        }
        var answer = FoundSubscriptions()
        guard let database = try state.cache.database(self.database, over: view) else {
            answer.found = self.names?.map { _ in nil } ?? []
            return .success(answer)
        }
        guard let names else {
            let rows = try StoredRows.subscriptions(
                database.number, isShared: self.isShared, of: subscriber, over: view)
            answer.found = rows.map(\.subscription)
            return .success(answer)
        }
        for name in names {
            let key = Keys.subscription(
                database.number, isShared: self.isShared, of: subscriber, name)
            answer.found.append(try StoredRows.subscription(key, over: view)?.subscription)
        }
        return .success(answer)
    }
}

/// An answer to a ``SubscriptionsAsk``.
package struct FoundSubscriptions: FormValue, Sendable, Equatable {
    /// All by ID; or in the order of the names, nil where there is none.
    package var found: [Subscription?] = []

    package init() {}

    package mutating func lay<F: Form>(in form: inout F) throws(F.Problem) {
        try form.lay(
            &self.found,
            by: { (writer, found) in
                writer.write(count: found.count)
                for subscription in found {
                    writer.write(flag: subscription != nil)
                    if let subscription { writer.write(subscription) }
                }
            },
            { (reader) throws(DecodingError) in
                var found: [Subscription?] = []
                for _ in 0..<(try reader.count()) {
                    found.append(try reader.flag() ? try reader.subscription() : nil)
                }
                return found
            })
    }
}
