/// Who touched a record, when, with what.
package struct ChangeStamp: Sendable, Hashable {
    /// Milliseconds since 1970, from the entry's time.
    package var milliseconds: Int64
    package var userRecordName: String
    package var deviceID: String

    package init(milliseconds: Int64, userRecordName: String, deviceID: String) {
        self.milliseconds = milliseconds
        self.userRecordName = userRecordName
        self.deviceID = deviceID
    }
}

/// One named field of a record.
package struct Field: Sendable, Hashable {
    package var name: String
    package var value: FieldValue
    package init(name: String, value: FieldValue) {
        self.name = name
        self.value = value
    }
}

/// A live record as it is stored.
package struct Record: Sendable, Hashable {
    package var name: String
    package var type: String
    package var zone: ZoneID
    package var tag: ChangeTag
    package var created: ChangeStamp
    package var modified: ChangeStamp
    /// Sorted by name (UTF-8 order), no name twice.
    package var fields: [Field]
    /// The record above this one in a sharing hierarchy.
    package var parent: String?
    package var shortGUID: String?
    /// The share record that this one is the root of.
    package var share: String?

    package init(
        name: String, type: String, zone: ZoneID, tag: ChangeTag, created: ChangeStamp,
        modified: ChangeStamp, fields: [Field], parent: String? = nil, shortGUID: String? = nil,
        share: String? = nil
    ) {
        self.name = name
        self.type = type
        self.zone = zone
        self.tag = tag
        self.created = created
        self.modified = modified
        self.fields = fields
        self.parent = parent
        self.shortGUID = shortGUID
        self.share = share
    }

    package func value(of field: String) -> FieldValue? {
        var low = 0
        var high = self.fields.count
        while low < high {
            let middle = (low + high) / 2
            let name = self.fields[middle].name
            if name == field { return self.fields[middle].value }
            if name < field { low = middle + 1 } else { high = middle }
        }
        return nil
    }
}
