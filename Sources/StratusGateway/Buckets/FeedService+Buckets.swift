import StratusCluster
import StratusModel
import StratusRecords

/// The feed of a private database whose custom zones lie in buckets.
///
/// Each change that was acknowledged before a request began is on its walk: the home is asked
/// within the request which buckets are in use, and so is each of these.
extension FeedService {
    /// A page behind the position of a token. Nil: every existing zone. Empty: no changes, and the
    /// feed's end.
    func page(
        of database: PrivateDatabase, after token: String?, as kind: FeedToken.Kind, limit: Int
    ) async throws -> FeedMerge.Page {
        if token == "" { return try await self.end(of: database) }
        let after = try token.map { token throws(InputRefusal) in
            try self.exchange.partedPosition(token, of: database, as: kind)
        }
        guard let page = try await self.page(of: database, after: after, limit: limit) else {
            throw ClientError(ZoneRefusal.positionExpired)
        }
        return page
    }

    /// Nil: the position has expired.
    private func page(
        of database: PrivateDatabase, after: PartedPosition?, limit: Int
    ) async throws -> FeedMerge.Page? {
        let merge = FeedMerge(after: after, count: database.bucketCount, limit: limit)
        let exchange = self.exchange
        let first = after?.mask ?? BucketMask()
        let known = exchange.knownBuckets(of: database).union(first)
        let (answers, _) = try await exchange.askBuckets(of: database, first: first) { number in
            // Those that only the home knew get a share of their own.
            let mask = known.union(BucketMask(of: [number]))
            guard let question = merge.questions(mask).first(where: { $0.number == number }) else {
                throw RouteError.refused("a bucket without a question")
            }
            let part = database.part(number)
            return try await exchange.ask(
                .databaseChanges(
                    DatabaseChangesAsk(
                        database: part, after: question.after, limit: question.limit)),
                at: .database(part))
        }
        var merged = merge
        for (number, answer) in answers {
            if case .zoneRefused(.positionExpired) = answer { return nil }
            merged.take(try Self.page(answer), of: number)
        }
        return merged.page()
    }

    /// As of a whole database: the client named no position, so it hears of none that expires on
    /// the way.
    private func end(of database: PrivateDatabase) async throws -> FeedMerge.Page {
        let limit = self.exchange.kernel.limits.operationCountMax
        var after: PartedPosition?
        var restartCount = 0
        while true {
            guard var page = try await self.page(of: database, after: after, limit: limit) else {
                guard after != nil, restartCount < Self.restartCountMax else {
                    throw ClientError(
                        .tryAgainLater, "the database is changing too fast, try again later",
                        retryAfter: 1)
                }
                restartCount += 1
                after = nil
                continue
            }
            // A page that does not move would be asked for for ever.
            if !page.moreComing || page.position == after {
                page.changes = []
                page.moreComing = false
                return page
            }
            after = page.position
        }
    }
}

extension Exchange {
    func token(_ position: PartedPosition, as kind: FeedToken.Kind) -> String {
        PartedToken(kind, position).text(
            at: self.feedPlace(nil, self.holder.owner), sealedWith: self.cipher)
    }

    func partedPosition(
        _ token: String, of database: PrivateDatabase, as kind: FeedToken.Kind
    ) throws(InputRefusal) -> PartedPosition {
        try PartedToken(
            kind, text: token, count: database.bucketCount,
            at: self.feedPlace(nil, self.holder.owner), openedWith: self.cipher
        ).position
    }
}
