import StratusModel
import StratusRecords

/// Finds why the parent of a record is missing: whether the same request was to make it, and was
/// refused.
struct RefusedParents {
    private let operations: [ModifyRequest.Operation]
    private let errors: [ClientError?]
    private var positions: [String: Int] = [:]

    /// - Parameter errors: that of each operation; nil: it was carried out.
    init(_ operations: [ModifyRequest.Operation], _ errors: [ClientError?]) {
        self.operations = operations
        self.errors = errors
        for (position, operation) in operations.enumerated() where !operation.kind.isDelete {
            self.positions[operation.recordName] = position
        }
    }

    /// The error of an operation that is refused for a parent which was refused itself; nil: the
    /// error is what it is.
    func error(at position: Int) -> ClientError? {
        guard let (name, above) = self.refusedParent(of: position) else { return nil }
        var cause = above
        // Each step goes to another operation, unless they are a circle: that is nobody's cause.
        for _ in self.operations {
            guard let (_, next) = self.refusedParent(of: cause) else {
                return self.errors[cause].map { ClientError(parent: name, refusedFor: $0) }
            }
            cause = next
        }
        return nil
    }

    private func refusedParent(of position: Int) -> (name: String, position: Int)? {
        guard case RecordOperation.ParentChange.set(let name) = self.operations[position].parent,
            self.errors[position]?.isAboutMissingParent(name) == true,
            let parent = self.positions[name], parent != position, self.errors[parent] != nil
        else { return nil }
        return (name, parent)
    }
}
