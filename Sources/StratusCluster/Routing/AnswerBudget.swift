package import StratusModel
import StratusRuntime

/// The memory that all answers to reads may take on a node, from reading the rows until the answers
/// have left.
///
/// A request of a hundred bytes may ask for sixteen megabytes, and its sender may read them slowly,
/// so a limit on requests bounds neither. An answer that finds no room is dropped at once, and the
/// read is answered `.notExecuted`.
package final class AnswerBudget: Sendable {
    /// Up to this size an answer is not counted: connections bound how many there are.
    package static let freeSizeMax = 16 << 10
    /// Up to this size one is small.
    package static let smallSizeMax = 256 << 10

    private let bytes: ByteBudget

    package init(_ sizeMax: ByteCount) { self.bytes = ByteBudget(sizeMax) }

    /// Bytes taken now.
    package var size: Int { self.bytes.size }

    /// A part that is given back with the last reference to it.
    package final class Share: Sendable {
        private let size: Int
        private let budget: ByteBudget

        fileprivate init(_ size: Int, of budget: ByteBudget) {
            self.size = size
            self.budget = budget
        }

        deinit { self.budget.give(self.size) }
    }

    /// - Parameter always: whether or not there is room.
    /// - Returns: nil when there is no room.
    package func share(_ size: Int, always: Bool = false) -> Share? {
        let isLarge = size > Self.smallSizeMax
        return self.bytes.take(size, isLarge: isLarge, always: always)
            ? Share(size, of: self.bytes) : nil
    }

    /// Counts an answer that is not counted yet, for as long as it is held.
    /// - Returns: whether there is room. If not, the answer should go.
    package func admit(_ answer: inout QueryAnswer, always: Bool = false) -> Bool {
        guard answer.share == nil, answer.body.count > Self.freeSizeMax else { return true }
        answer.share = self.share(answer.body.count, always: always)
        return answer.share != nil
    }
}
