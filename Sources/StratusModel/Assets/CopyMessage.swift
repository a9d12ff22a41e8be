/// The messages that nodes exchange about copies. They may be lost, repeated or late; an altered
/// one does not decode.
package enum CopyMessage: Sendable, Hashable {
    /// Asks the receiver to store a copy. Answered with ``stored(_:)`` under the same number.
    case put(number: UInt64, group: GroupID, copy: StoredCopy)
    /// Asks whether all of a body is there: as a put of copies that the receiver should have.
    case confirm(number: UInt64, group: GroupID, body: BodyID, chunkCount: UInt32)
    /// The answer to a put or to a confirm.
    case stored(number: UInt64, at: LogIndex)
    /// The other answer to a put or to a confirm.
    case refused(number: UInt64, CopyRefusal)
    /// Asks for a copy. Answered with ``fetched(number:bytes:)``.
    case fetch(number: UInt64, group: GroupID, name: CopyName)
    /// Nil: it is not here.
    case fetched(number: UInt64, bytes: Bytes?)
    /// The body will not be named: its copies may go. No answer.
    case drop(group: GroupID, body: BodyID)

    /// Whether it brings the bytes of a copy: such a message takes a link of its own, so that it
    /// stands before no other.
    package var isBulk: Bool {
        switch self {
        case .put: true
        case .fetched(_, let bytes): bytes != nil
        case .confirm, .stored, .refused, .fetch, .drop: false
        }
    }
}
