import StratusModel

// The access that the operations and questions need which are no types yet. Each is listed: who adds
// one says what it needs.

extension RecordCommand {
    var need: AccessNeed {
        switch self {
        // What a participant may do in each record the batch asks for itself.
        case .modifyRecords(let modify): .reader(zone: modify.zone)
        case .modifyZones, .reserveReferences, .noteBuckets, .modifyDocuments:
            .owner
        case .continueJobs, .eraseDatabase, .recover, .auditLinks:
            .system
        // These ask on the way, and none of them speaks of a database.
        case .schema, .forgetOutcomes: .everybody
        }
    }
}

extension RecordQuery.Ask {
    var need: AccessNeed {
        switch self {
        case .lookup(let ask): .reader(zone: ask.zone)
        case .zoneChanges(let ask): .reader(zone: ask.zone)
        case .page(let ask): ask.zone.map { .reader(zone: $0) } ?? .owner
        case .judge(let ask): .reader(zone: ask.modify.zone)
        // Each name is looked at by itself: those that the caller may not see are not there.
        case .zones(_, names: .some): .everybody
        case .zones(_, names: .none), .zonePage, .databaseChanges, .use, .buckets, .documents:
            .owner
        // These ask on the way, and none of them speaks of a database.
        case .schema, .jobs, .work, .heldRecords: .everybody
        }
    }

    /// A zone that is not there is said in the words of the question.
    func answer(to refusal: RequestRefusal) -> RecordAnswer {
        if case .zoneChanges = self, refusal.reason == .zoneNotFound {
            return .zoneRefused(.notFound)
        }
        return .refused(refusal)
    }
}
