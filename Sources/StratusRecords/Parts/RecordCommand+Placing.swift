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
            case .modifySubscriptions(let modify): modify.database
            case .followNews(let follow): follow.database
            case .pinAsset(let pin): pin.database
            case .holdAssets(let hold): hold.database
            case .putKey(let put): put.database
            case .noteBuckets(let note): note.database
            case .modifyKeyValues(let modify): modify.database
            case .modifyDocuments(let modify): modify.database
            case .resealFields(let reseal): reseal.database
            case .replaceBody(let replace): replace.database
            case .retireKeys(let retire): retire.database
            case .rewrapKey(let rewrap): rewrap.database
            case .schema, .continueJobs, .recover, .loseBody, .findBody, .forgetOutcomes: nil
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
            case .modifySubscriptions(var modify):
                modify.database = newValue
                self = .modifySubscriptions(modify)
            case .followNews(var follow):
                follow.database = newValue
                self = .followNews(follow)
            case .pinAsset(var pin):
                pin.database = newValue
                self = .pinAsset(pin)
            case .holdAssets(var hold):
                hold.database = newValue
                self = .holdAssets(hold)
            case .putKey(var put):
                put.database = newValue
                self = .putKey(put)
            case .noteBuckets(var note):
                note.database = newValue
                self = .noteBuckets(note)
            case .modifyKeyValues(var modify):
                modify.database = newValue
                self = .modifyKeyValues(modify)
            case .modifyDocuments(var modify):
                modify.database = newValue
                self = .modifyDocuments(modify)
            case .resealFields(var reseal):
                reseal.database = newValue
                self = .resealFields(reseal)
            case .replaceBody(var replace):
                replace.database = newValue
                self = .replaceBody(replace)
            case .retireKeys(var retire):
                retire.database = newValue
                self = .retireKeys(retire)
            case .rewrapKey(var rewrap):
                rewrap.database = newValue
                self = .rewrapKey(rewrap)
            case .schema, .continueJobs, .recover, .loseBody, .findBody, .forgetOutcomes: break
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

    /// Whether the command makes no zone and so carries no floor.
    private var takesFloor: Bool {
        switch self {
        case .modifyRecords, .modifyZones, .reserveReferences: true
        default: false
        }
    }

    /// Whether the encoding says a bucket of zones or a floor before the command itself: feature
    /// level 2.
    var isPlaced: Bool { self.database?.zoneBucket != nil || self.tagFloor != 0 }

    /// The command as the home of its database, under the first layout of its container, gets it.
    var unplaced: RecordCommand {
        var command = self
        if command.database?.zoneBucket != nil { command.database = command.database?.whole }
        command.tagFloor = 0
        return command
    }

    /// - Returns: nil: the command cannot be for this bucket, or have this floor.
    func placed(in bucket: Bucket?, above tagFloor: UInt64) -> RecordCommand? {
        guard bucket != nil || tagFloor != 0, tagFloor == 0 || self.takesFloor else { return nil }
        var command = self
        if let bucket {
            switch self {
            // Stores and documents lie at the home.
            case .noteBuckets, .auditLinks, .reserveReferences, .modifyKeyValues,
                .modifyDocuments:
                return nil
            default: break
            }
            guard var database = self.database, database.scope == .private else { return nil }
            database.bucket = bucket
            command.database = database
        }
        command.tagFloor = tagFloor
        return command
    }
}
