package import StratusModel
package import StratusRuntime

/// Who asks a partition, and within what bounds.
package struct Caller: Sendable {
    package var principal: Principal
    /// For a command that names no database; nil: it is about no container.
    package var container: ContainerReference?
    /// When its own request ends: it waits no longer, whatever the command may take.
    package var end: MonotonicTime?
    /// Until when a command may be carried out, where that is fixed by something else: a signature,
    /// or what was read before. Wall milliseconds.
    package var deadlineMilliseconds: Int64?
    /// Whether a command too late for its partition's time may be sent again with a later deadline.
    /// False where the deadline tells until when a copy can come from elsewhere.
    package var mayRunLater = true
    /// Where answers are counted until the request has its own.
    package var room: AnswerRoom?
    /// Left while a partition is waited for, and taken again for what it answers.
    package var turn: LongWork.Turn?

    package init(
        _ principal: Principal, in container: ContainerReference? = nil,
        until end: MonotonicTime? = nil
    ) {
        self.principal = principal
        self.container = container
        self.end = end
    }

    /// Stratus itself.
    package static func system(
        in container: ContainerReference? = nil, until end: MonotonicTime? = nil
    ) -> Caller { Caller(Principal(kind: .system), in: container, until: end) }

    /// The same caller with commands that are carried out by a fixed time or never.
    package func fixed(by deadlineMilliseconds: Int64?) -> Caller {
        guard let deadlineMilliseconds else { return self }
        var caller = self
        caller.deadlineMilliseconds = deadlineMilliseconds
        caller.mayRunLater = false
        return caller
    }
}
