/// The author of a change to a record, with its time and device.
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
///
/// The fields live on the heap and never change there. Records are handed on often and changed
/// seldom, and copying one reference costs a tenth of copying the dozen that a record holds.
package struct Record: Sendable, Hashable {
    private struct Content: Sendable, Hashable {
        var name: String
        var type: String
        var zone: ZoneID
        var tag: ChangeTag
        var created: ChangeStamp
        var modified: ChangeStamp
        var fields: [Field]
        var parent: String?
        var shortGUID: String?
        var share: String?
    }

    private final class Box: Sendable {
        let content: Content
        init(_ content: Content) { self.content = content }
    }

    private var box: Box

    package init(
        name: String, type: String, zone: ZoneID, tag: ChangeTag, created: ChangeStamp,
        modified: ChangeStamp, fields: [Field], parent: String? = nil, shortGUID: String? = nil,
        share: String? = nil
    ) {
        self.box = Box(
            Content(
                name: name, type: type, zone: zone, tag: tag, created: created,
                modified: modified, fields: fields, parent: parent, shortGUID: shortGUID,
                share: share))
    }

    package var name: String {
        get { self.box.content.name }
        set { self.change { $0.name = newValue } }
    }
    package var type: String {
        get { self.box.content.type }
        set { self.change { $0.type = newValue } }
    }
    package var zone: ZoneID {
        get { self.box.content.zone }
        set { self.change { $0.zone = newValue } }
    }
    package var tag: ChangeTag {
        get { self.box.content.tag }
        set { self.change { $0.tag = newValue } }
    }
    package var created: ChangeStamp {
        get { self.box.content.created }
        set { self.change { $0.created = newValue } }
    }
    package var modified: ChangeStamp {
        get { self.box.content.modified }
        set { self.change { $0.modified = newValue } }
    }
    /// Sorted by name (UTF-8 order), no name twice.
    package var fields: [Field] {
        get { self.box.content.fields }
        set { self.change { $0.fields = newValue } }
    }
    /// The record above this one in a sharing hierarchy.
    package var parent: String? {
        get { self.box.content.parent }
        set { self.change { $0.parent = newValue } }
    }
    package var shortGUID: String? {
        get { self.box.content.shortGUID }
        set { self.change { $0.shortGUID = newValue } }
    }
    /// The share record that this one is the root of.
    package var share: String? {
        get { self.box.content.share }
        set { self.change { $0.share = newValue } }
    }

    private mutating func change(_ body: (inout Content) -> Void) {
        var content = self.box.content
        body(&content)
        self.box = Box(content)
    }

    package static func == (one: Self, other: Self) -> Bool {
        one.box === other.box || one.box.content == other.box.content
    }

    package func hash(into hasher: inout Hasher) { self.box.content.hash(into: &hasher) }

    package func value(of field: String) -> FieldValue? {
        let fields = self.fields
        var low = 0
        var high = fields.count
        while low < high {
            let middle = (low + high) / 2
            let name = fields[middle].name
            if name == field { return fields[middle].value }
            if name < field { low = middle + 1 } else { high = middle }
        }
        return nil
    }
}
