import StratusModel
import Synchronization

/// Which queries every bucket of a database has the indexes for, as far as this gateway has found
/// out.
///
/// An index that is complete in a partition stays so under the schema it was asked for by; under
/// another one the question is another.
final class ReadyQueries: Sendable {
    /// The indexes that a query without an order may need.
    struct Question: Hashable, Sendable {
        struct Need: Hashable, Sendable {
            var field: FieldSelector
            var comparator: Comparator
        }

        var database: SpreadParts
        /// Those of its buckets that were asked.
        var mask: BucketMask
        var schemaVersion: UInt64
        var recordType: String
        var needs: Set<Need>

        init(
            _ predicate: RecordPredicate, in database: SpreadParts, _ mask: BucketMask,
            schemaVersion: UInt64
        ) {
            self.mask = mask
            self.database = database
            self.schemaVersion = schemaVersion
            self.recordType = predicate.recordType
            self.needs = Set(
                predicate.filters.map { Need(field: $0.field, comparator: $0.comparator) })
        }
    }

    private let questions = Mutex<Set<Question>>([])
    private let countMax: Int

    init(countMax: Int = 4_096) { self.countMax = countMax }

    func holds(_ question: Question) -> Bool { self.questions.withLock { $0.contains(question) } }

    func insert(_ question: Question) {
        self.questions.withLock { questions in
            if questions.count >= self.countMax { questions = [] }
            questions.insert(question)
        }
    }
}
