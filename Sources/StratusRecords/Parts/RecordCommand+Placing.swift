package import StratusModel

extension RecordCommand {
    /// The one database that the command is about; nil: it is about a container or a partition.
    package var database: DatabaseID? {
        get {
            switch self {
            case .modifyRecords(let modify): modify.database
            case .modifyZones(let modify): modify.database
            case .eraseDatabase(let erase): erase.database
            case .reserveReferences(let reserve): reserve.database
            case .auditLinks(let audit): audit.database
            case .noteBuckets(let note): note.database
            case .modifyDocuments(let modify): modify.database
            case .schema, .continueJobs, .recover, .forgetOutcomes: nil
            }
        }
        set {
            guard let newValue else { return }
            switch self {
            case .modifyRecords(var modify):
                modify.database = newValue
                self = .modifyRecords(modify)
            case .modifyZones(var modify):
                modify.database = newValue
                self = .modifyZones(modify)
            case .eraseDatabase(var erase):
                erase.database = newValue
                self = .eraseDatabase(erase)
            case .reserveReferences(var reserve):
                reserve.database = newValue
                self = .reserveReferences(reserve)
            case .auditLinks(var audit):
                audit.database = newValue
                self = .auditLinks(audit)
            case .noteBuckets(var note):
                note.database = newValue
                self = .noteBuckets(note)
            case .modifyDocuments(var modify):
                modify.database = newValue
                self = .modifyDocuments(modify)
            case .schema, .continueJobs, .recover, .forgetOutcomes: break
            }
        }
    }

    /// The tag above which a zone begins that the command makes; 0: where the database's own floor
    /// is.
    package var tagFloor: UInt64 {
        get {
            switch self {
            case .modifyRecords(let modify): modify.tagFloor
            case .modifyZones(let modify): modify.tagFloor
            case .reserveReferences(let reserve): reserve.tagFloor
            default: 0
            }
        }
        set {
            switch self {
            case .modifyRecords(var modify):
                modify.tagFloor = newValue
                self = .modifyRecords(modify)
            case .modifyZones(var modify):
                modify.tagFloor = newValue
                self = .modifyZones(modify)
            case .reserveReferences(var reserve):
                reserve.tagFloor = newValue
                self = .reserveReferences(reserve)
            default: break
            }
        }
    }
}

extension RecordCommand.Kind {
    /// Whether the command may make a zone, and so may carry a tag floor.
    var takesFloor: Bool {
        switch self {
        case .modifyRecords, .modifyZones, .reserveReferences: true
        default: false
        }
    }

    /// Whether it never goes to a bucket of a private database: documents lie
    /// at the home, which notes the buckets too, and only public databases have links of records.
    var isOfWholeDatabases: Bool {
        switch self {
        case .noteBuckets, .auditLinks, .reserveReferences, .modifyDocuments:
            true
        default: false
        }
    }
}
