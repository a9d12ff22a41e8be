package import StratusModel
import StratusRecords
import StratusRows

/// Decides which commands may add rows to a partition: those are refused while the disk has no more
/// than its reserve. Everything else continues: deletions, the work of jobs and mail, sessions of
/// users who come to delete, and the commands that keep the cluster together.
package enum AddingCommands {
    package static func contains(_ command: Command) -> Bool {
        switch command.kind {
        case .records:
            if let operation = RecordState.operations.operation(in: command) {
                return operation.adds
            }
            guard
                let records = try? RecordCommand(
                    decoding: command.body, container: command.container)
            else { return false }
            return self.adds(records)
        case .identity:
            guard let identity = try? IdentityCommand(decoding: command.body) else { return false }
            // A new account begins with its address.
            return identity.edits.contains { edit in
                guard case .put = edit.change, edit.condition == .absent else { return false }
                return edit.key.kind == .address || edit.key.kind == .account
            }
        case .system, .mail: return false
        // Tests replicate it, nodes do not.
        case .reference: return false
        }
    }

    private static func adds(_ command: RecordCommand) -> Bool {
        switch command {
        case .modifyRecords(let modify): !modify.operations.allSatisfy(\.kind.isDelete)
        case .modifyZones(let modify): modify.operations.contains { $0.kind == .create }
        case .schema(.extend), .reserveReferences: true
        // Without the schema in force nothing could be deleted either.
        case .schema(.install), .continueJobs, .eraseDatabase, .recover, .auditLinks,
            .forgetOutcomes:
            false
        // The creation that follows it is refused.
        case .noteBuckets: false
        case .modifyDocuments(let modify):
            modify.operations.contains {
                switch $0 {
                case .create, .save, .copy, .annotate, .lock, .publish, .convert: true
                case .edit(_, let edits, _, _):
                    edits.contains {
                        switch $0 {
                        case .put: true
                        case .transfer(_, _, let isMove): !isMove
                        case .remove: false
                        }
                    }
                // A removal follows it, and what it separates is stored already.
                case .separate: false
                case .place, .remove, .settle, .removeData, .refresh, .unlock, .withdraw: false
                }
            }
        }
    }
}
