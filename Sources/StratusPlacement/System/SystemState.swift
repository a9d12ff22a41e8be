import StratusCoding
package import StratusModel
package import StratusRows

/// The replicated state of the system partition: nodes, placement, moves, join tokens, notices.
///
/// Applying reads no clock and draws nothing. A refused command changes nothing. A repeated command
/// answers as before or changes nothing more. The view is kept in memory and written through.
package struct SystemState: ReplicatedState {
    private var view: ClusterView?
    private var isLoaded = false

    package init() {}

    package mutating func forget() {
        self.view = nil
        self.isLoaded = false
    }

    package mutating func apply(
        _ command: Command, at position: EntryPosition, over rows: Rows
    ) throws(StoreError) -> Outcome {
        guard command.kind == .system, let body = try? SystemCommand(decoding: command.body) else {
            return Outcome(.unreadable)
        }
        let outcome = try self.decide(body, by: command.principal, at: position.time, rows)
        return Outcome(.decided, body: outcome.encoded())
    }

    private mutating func decide(
        _ command: SystemCommand, by principal: Principal, at time: HybridTime,
        _ rows: Rows
    ) throws(StoreError) -> SystemOutcome {
        guard principal.kind == .administrator || principal.kind == .system else {
            return .refused(SystemRefusal(.notAllowed))
        }
        if !self.isLoaded {
            self.view = try SystemRows.view(rows.view)
            self.isLoaded = true
        }
        if case .form(let formation) = command {
            return try self.form(formation, at: time, rows)
        }
        guard var next = self.view else { return .refused(SystemRefusal(.notFormed)) }
        let before = next.settings
        var token: (hash: Bytes, row: JoinToken)?
        switch command {
        case .addToken(let hash, let expires):
            return try self.addToken(hash, expires, at: time, rows, next)
        case .revokeToken(let hash):
            if hash.count == JoinToken.hashSize { try rows.remove(SystemRows.token(hash)) }
            return .done(revision: before.revision)
        case .join(let node, let hash):
            let known = try Self.token(hash, rows.view)
            if let refusal = Self.refusal(of: known, at: time, for: node, in: next) {
                return .refused(refusal)
            }
            token = known.map { (hash, $0) }
        case .recover(let recovery):
            guard principal.kind == .system else {
                return .refused(SystemRefusal(.notAllowed))
            }
            if try rows.row(.system, SystemRows.recovery(recovery)) != nil {
                return .done(revision: before.revision)
            }
        default: break
        }

        let changes: [ClusterView.Change]
        var joined: NodeID?
        do throws(SystemRefusal) {
            (changes, joined) = try next.apply(command)
        } catch { return .refused(error) }

        if case .recover(let recovery) = command {
            if recovery.groups.contains(.system) {
                try Self.forgetNotices(&next.settings, rows)
            }
            try rows.put(SystemRows.recovery(recovery), [1])
        }
        if !changes.isEmpty || next.settings.featureLevel != before.featureLevel {
            next.settings.revision += 1
            try Self.append(
                .view, Self.bytes(next.settings.revision), to: &next.settings, at: time, rows)
        }
        if let joined, var token, token.row.usedBy == nil {
            token.row.usedBy = joined
            var writer = ByteWriter()
            token.row.write(to: &writer)
            try rows.put(SystemRows.token(token.hash), writer.bytes)
        }
        if next.settings != before {
            try Self.write(next.settings, rows)
            for change in changes { try Self.write(change, of: next, rows) }
            self.view = next
        }
        if let joined { return .joined(joined, revision: next.settings.revision) }
        return .done(revision: next.settings.revision)
    }

    // MARK: Forming

    private mutating func form(
        _ formation: Formation, at time: HybridTime, _ rows: Rows
    ) throws(StoreError) -> SystemOutcome {
        if let view {
            // Every founder says it; the first one did it.
            guard view.settings.cluster == formation.cluster else {
                return .refused(SystemRefusal(.alreadyFormed))
            }
            return .done(revision: view.settings.revision)
        }
        guard formation.converted.map({ Formation.isMaster($0.master) }) ?? true,
            var view = ClusterView.formed(by: formation)
        else {
            return .refused(SystemRefusal(.badRequest))
        }
        view.settings.revision = 1
        try Self.append(.view, Self.bytes(1), to: &view.settings, at: time, rows)
        try Self.write(view.settings, rows)
        for node in view.nodes { try Self.write(.node(node.id), of: view, rows) }
        for group in view.groups { try Self.write(.replicas(group), of: view, rows) }
        self.view = view
        return .done(revision: 1)
    }

    // MARK: Tokens

    private func addToken(
        _ hash: Bytes, _ expires: Int64, at time: HybridTime, _ rows: Rows,
        _ view: ClusterView
    ) throws(StoreError) -> SystemOutcome {
        guard hash.count == JoinToken.hashSize, expires > time.milliseconds else {
            return .refused(SystemRefusal(.badRequest))
        }
        // A token that exists stays as it is: said twice, it must not open twice.
        if try Self.token(hash, rows.view) == nil {
            var kept = 0
            for (key, row) in try rows.view.all(5) {
                let token = try SystemRows.decoding(row, JoinToken.init(from:))
                if token.expiresMilliseconds < time.milliseconds {
                    try rows.remove(key)
                } else {
                    kept += 1
                }
            }
            guard kept < JoinToken.countMax else {
                return .refused(SystemRefusal(.tooMany, limit: JoinToken.countMax))
            }
            var writer = ByteWriter()
            JoinToken(expiresMilliseconds: expires).write(to: &writer)
            try rows.put(SystemRows.token(hash), writer.bytes)
        }
        return .done(revision: view.settings.revision)
    }

    private static func token(_ hash: Bytes, _ rows: RowView)
        throws(StoreError) -> JoinToken?
    {
        guard hash.count == JoinToken.hashSize,
            let row = try rows.row(.system, SystemRows.token(hash))
        else { return nil }
        return try SystemRows.decoding(row, JoinToken.init(from:))
    }

    private static func refusal(
        of token: JoinToken?, at time: HybridTime, for node: ClusterNode, in view: ClusterView
    ) -> SystemRefusal? {
        guard let token else { return SystemRefusal(.tokenUnknown) }
        if let user = token.usedBy {
            // The answer may have been lost: the same node asks again, and is told again.
            return view.node(user)?.key == node.key ? nil : SystemRefusal(.tokenUsed)
        }
        return token.expiresMilliseconds < time.milliseconds ? SystemRefusal(.tokenExpired) : nil
    }

    // MARK: Rows

    private static func bytes(_ number: UInt64) -> Bytes {
        var writer = ByteWriter(reserving: 8)
        writer.write(fixed: number)
        return writer.bytes
    }

    private static func append(
        _ kind: Notice.Kind, _ payload: Bytes, to settings: inout ClusterSettings,
        at time: HybridTime, _ rows: Rows
    ) throws(StoreError) {
        var writer = ByteWriter(reserving: payload.count + 24)
        Notice(
            sequence: settings.nextNotice, milliseconds: time.milliseconds, kind: kind,
            payload: payload
        ).write(to: &writer)
        try rows.put(SystemRows.notice(settings.nextNotice), writer.bytes)
        settings.nextNotice += 1
        while settings.nextNotice - settings.firstNotice > UInt64(Notice.countMax) {
            try rows.remove(SystemRows.notice(settings.firstNotice))
            settings.firstNotice += 1
        }
    }

    /// Those of whom nothing is known any more may have been read: numbers go on far behind them.
    private static func forgetNotices(
        _ settings: inout ClusterSettings, _ rows: Rows
    ) throws(StoreError) {
        for (key, _) in try rows.view.all(6) { try rows.remove(key) }
        settings.nextNotice = (settings.nextNotice >> 32 + 1) << 32
        settings.firstNotice = settings.nextNotice
    }

    private static func write(_ settings: ClusterSettings, _ rows: Rows)
        throws(StoreError)
    {
        var writer = ByteWriter()
        settings.write(to: &writer)
        try rows.put(SystemRows.settings, writer.bytes)
    }

    private static func write(
        _ change: ClusterView.Change, of view: ClusterView, _ rows: Rows
    ) throws(StoreError) {
        var writer = ByteWriter()
        switch change {
        case .node(let id):
            view.node(id)?.write(to: &writer)
            try rows.put(SystemRows.node(id), writer.bytes)
        case .replicas(let group):
            try rows.put(
                SystemRows.replicas(group),
                SystemRows.encoded(replicas: view.replicas(of: group)))
        case .move(let group):
            if let move = view.move(of: group) {
                move.write(to: &writer)
                try rows.put(SystemRows.move(group), writer.bytes)
            } else {
                try rows.remove(SystemRows.move(group))
            }
        case .certificate(let fingerprint):
            if view.withdrawn.contains(fingerprint) {
                try rows.put(SystemRows.withdrawn(fingerprint), [1])
            } else {
                try rows.remove(SystemRows.withdrawn(fingerprint))
            }
        }
    }

    // MARK: Reading

    package func answer(_ query: Query, over rows: RowView) throws(StoreError)
        -> QueryAnswer
    {
        guard query.kind == .system, let body = try? SystemQuery(decoding: query.body) else {
            return QueryAnswer(body: [])
        }
        return QueryAnswer(body: try self.answer(body, rows).encoded())
    }

    private func answer(_ query: SystemQuery, _ rows: RowView)
        throws(StoreError) -> SystemAnswer
    {
        switch query {
        case .view: return .view(try self.isLoaded ? self.view : SystemRows.view(rows))
        case .notices(let after, let limit):
            guard let row = try rows.row(.system, SystemRows.settings) else {
                return .notices(NoticePage(first: 1, next: 1, notices: []))
            }
            let settings = try SystemRows.decoding(row, ClusterSettings.init(from:))
            var page = NoticePage(
                first: settings.firstNotice, next: settings.nextNotice, notices: [])
            guard after < settings.nextNotice else { return .notices(page) }
            let found = try rows.rows(
                from: SystemRows.notice(after + 1), to: [7],
                limit: min(limit, SystemQuery.noticeCountMax))
            for (_, row) in found {
                page.notices.append(try SystemRows.decoding(row, Notice.init(from:)))
            }
            return .notices(page)
        case .tokens:
            var tokens: [(hash: Bytes, token: JoinToken)] = []
            for (key, row) in try rows.all(5) {
                tokens.append(
                    (
                        Bytes(key.dropFirst()),
                        try SystemRows.decoding(row, JoinToken.init(from:))
                    ))
            }
            return .tokens(tokens)
        }
    }
}
