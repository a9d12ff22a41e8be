import StratusCluster
import StratusIdentity
import StratusModel
import StratusRecords

/// The caller's private database in parts: a home, and buckets of custom zones.
extension Exchange {
    private var tagFloor: UInt64 { self.holder.layout.tagFloor }

    /// The buckets that are known to be in use without a question.
    func knownBuckets(of database: PrivateDatabase) -> BucketMask {
        self.kernel.caches.zoneBuckets.mask(of: database, above: self.tagFloor)
    }

    /// The buckets in use, as the home says now: all that hold a zone.
    func buckets(
        of database: PrivateDatabase, as caller: Caller? = nil
    ) async throws -> BucketsAnswer {
        let ask = BucketsAsk(database: database.home, count: database.bucketCount)
        guard
            case .buckets(let answer) = try await self.ask(
                .buckets(ask), at: .database(database.home), as: caller)
        else { throw RouteError.otherKind }
        self.kernel.caches.zoneBuckets.note(answer.mask, of: database, above: self.tagFloor)
        return answer
    }

    /// Makes sure that the home knows of these buckets, before zones are made in them.
    func note(_ numbers: BucketMask, of database: PrivateDatabase) async throws {
        guard !self.knownBuckets(of: database).contains(numbers) else { return }
        let note = NoteBuckets(
            database: database.home,
            buckets: ZoneBuckets(
                count: database.bucketCount, mask: numbers, tagFloor: self.tagFloor))
        let outcome = try await self.submit(
            .noteBuckets(note), to: database.home, schema: Schema(),
            part: [4, UInt8(truncatingIfNeeded: self.holder.layout.generation)]
        ).outcome
        guard case .bucketsNoted(let mask) = outcome else {
            throw RouteError.otherKind
        }
        // A note that was carried out before, under the same identity, is remembered as it was.
        self.kernel.caches.zoneBuckets.note(
            mask.union(numbers), of: database, above: self.tagFloor)
    }

    /// Asks the home which buckets are in use, and at the same time `ask` of each bucket that is
    /// known to be: then of those that only the home knew.
    ///
    /// - Parameter first: buckets to ask in any case.
    /// - Returns: the answers by number, and the home's.
    func askBuckets<Answer: Sendable>(
        of database: PrivateDatabase, first: BucketMask = BucketMask(),
        _ ask: @escaping @Sendable (_ number: Int) async throws -> Answer
    ) async throws -> (answers: [(number: Int, answer: Answer)], home: BucketsAnswer) {
        let known = self.knownBuckets(of: database).union(first)
        return try await withThrowingTaskGroup(of: PartAnswer<Answer>.self) { tasks in
            tasks.addTask { .home(try await self.buckets(of: database)) }
            for number in known.numbers(below: database.bucketCount) {
                tasks.addTask { .bucket(number, try await ask(number)) }
            }
            var home = BucketsAnswer(mask: BucketMask(), zone: nil)
            var answers: [(number: Int, answer: Answer)] = []
            for try await told in tasks {
                switch told {
                case .bucket(let number, let answer): answers.append((number, answer))
                case .home(let answer):
                    home = answer
                    let more = answer.mask.subtracting(known)
                    for number in more.numbers(below: database.bucketCount) {
                        tasks.addTask { .bucket(number, try await ask(number)) }
                    }
                }
            }
            answers.sort { $0.number < $1.number }
            return (answers, home)
        }
    }
}

/// An answer of one part of a private database.
private enum PartAnswer<Answer: Sendable>: Sendable {
    case home(BucketsAnswer)
    case bucket(Int, Answer)
}
