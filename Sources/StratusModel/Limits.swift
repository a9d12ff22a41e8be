/// Every bound in one place. Tests and simulations run with tiny ones.
package struct Limits: Sendable, Equatable {
    /// CloudKit Web Services: operations in a modify, names in a lookup, records in an answer.
    package var operationCountMax = 200
    /// One record's encoded fields, assets not counted.
    package var recordSizeMax: ByteCount = .mebibytes(1)
    /// The quota of one user's records; the next one limits a container's public records. Zero
    /// means no quota.
    package var privateDatabaseSizeMax: ByteCount = ByteCount(0)
    package var publicDatabaseSizeMax: ByteCount = ByteCount(0)
    /// The values of one key-value store in all, and one of them.
    package var keyValueSizeMax: ByteCount = .mebibytes(1)
    /// Record and zone names.
    package var nameLengthMax = 255
    /// DELETE_SELF referrers of one target.
    package var deleteSelfReferrerCountMax = 750
    /// Records that one entry's cascade may delete; beyond, a job continues.
    package var cascadeCountMax = 2_000
    /// One request is one entry.
    package var requestSizeMax: ByteCount = .mebibytes(16)
    /// Bodies of requests held at once, over all connections. Beyond: `TRY_AGAIN_LATER`.
    package var bufferedBodySizeMax: ByteCount = .mebibytes(256)
    /// Answers to reads held at once, from the rows until they have left. Beyond: the same.
    package var bufferedAnswerSizeMax: ByteCount = .mebibytes(256)
    /// How long a command may wait to be applied, unless its sender says otherwise.
    package var commandDeadline: Duration = .seconds(30)
    package var commandDeadlineMax: Duration = .seconds(20 * 60)
    /// Commands waiting at one replica before it answers `TRY_AGAIN_LATER`.
    package var pendingCommandCountMax = 4_096
    package var pendingCommandSizeMax: ByteCount = .mebibytes(64)
    /// The commands and reads that all replicas of a node together may hold unanswered. Beyond it:
    /// the same.
    package var waitingCountMax = 16_384
    package var waitingSizeMax: ByteCount = .mebibytes(256)
    /// Index rows a query page may touch before it answers with a marker.
    package var queryTouchCountMax = 10_000
    /// Values of one `IN`, `…_ANY` or `…_ALL` filter and words of one search.
    package var queryOperandCountMax = 250

    package init() {}
}
