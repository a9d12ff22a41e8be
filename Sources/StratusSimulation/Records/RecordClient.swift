import StratusModel
import StratusRecords

/// What a client asks of a group that holds records.
enum RecordWork: Equatable {
    case command(RecordCommand, Principal)
    case query(RecordQuery.Ask, Principal)

    var isWrite: Bool {
        if case .command = self { true } else { false }
    }

    /// The zone it is about; nil for what is about none, or several.
    var place: RecordModel.Place? {
        switch self {
        case .command(.modifyRecords(let modify), _):
            RecordModel.Place(database: modify.database, zone: modify.zone)
        case .query(.lookup(let ask), _):
            RecordModel.Place(database: ask.database, zone: ask.zone)
        case .query(.zoneChanges(let ask), _):
            RecordModel.Place(database: ask.database, zone: ask.zone)
        case .query(.page(let ask), _):
            ask.zone.map { RecordModel.Place(database: ask.database, zone: $0) }
        default: nil
        }
    }
}

/// What one client knows of records.
struct RecordClient {
    struct Name: Hashable {
        var group: GroupID
        var place: RecordModel.Place
        var record: String
    }

    struct Sighting {
        var tag: String
        var number: Int?
    }

    struct Feed: Hashable {
        var group: GroupID
        var place: RecordModel.Place
    }

    /// Records as it last saw them: what its updates expect.
    var sightings: [Name: Sighting] = [:]
    var mirrors: [Feed: RecordMirror] = [:]
}
