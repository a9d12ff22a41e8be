import StratusModel

/// A key of a person's key-value store, with its value.
package struct KeyValueRow: NamedMembers, TabularRow {
    package var key = ""
    package var value: RawJSON?

    package init() {}
    package mutating func lay(in form: inout NamedForm) {
        form.member("key", &self.key)
        form.member("value", &self.value)
    }

    package static var columns: [AnswerColumn<Self>] {
        [
            .init("KEY", \.key),
            .init("VALUE") { $0.value?.text ?? "" },
        ]
    }
}

/// A person's key-value store.
package struct KeyValuesAnswer: NamedMembers {
    package var values: [KeyValueRow] = []
    package var keys: Int64 = 0
    package var bytes: Int64 = 0
    package var removedKeys: Int64 = 0
    package var devices: Int64 = 0

    package init() {}
    package mutating func lay(in form: inout NamedForm) {
        form.member("values", &self.values)
        form.member("keys", &self.keys)
        form.member("bytes", &self.bytes)
        form.member("removedKeys", &self.removedKeys)
        form.member("devices", &self.devices)
    }
}

/// A key that is set or removed.
package struct KeyValueBody: NamedMembers {
    package var key: String?
    package var value: RawJSON?
    package var isRemoved = false

    package init() {}
    package mutating func lay(in form: inout NamedForm) {
        form.member("key", &self.key)
        form.member("value", &self.value)
        form.member("removed", ifSet: &self.isRemoved)
    }
}

/// A device that has sent changes.
package struct DeviceRow: ListedRow, TabularRow {
    package static let list: StaticString = "devices"

    package var device = ""
    package var lastBatch: Int64 = 0
    package var lastSeen = ""

    package init() {}
    package mutating func lay(in form: inout NamedForm) {
        form.member("device", &self.device)
        form.member("lastBatch", &self.lastBatch)
        form.member("lastSeen", &self.lastSeen)
    }

    package static var columns: [AnswerColumn<Self>] {
        [
            .init("DEVICE", \.device),
            .init("LAST BATCH", alignsRight: true, \.lastBatch),
            .init("LAST SEEN", \.lastSeen),
        ]
    }
}

/// An item of a person's documents.
package struct DocumentRow: ListedRow, TabularRow {
    package static let list: StaticString = "items"

    package var path = ""
    package var id = ""
    package var kind = ""
    package var size: Int64 = 0
    package var edited = ""
    package var device = ""
    package var conflicts: Int64 = 0

    package init() {}
    package mutating func lay(in form: inout NamedForm) {
        form.member("path", &self.path)
        form.member("id", &self.id)
        form.member("kind", &self.kind)
        form.member("size", &self.size)
        form.member("edited", &self.edited)
        form.member("device", &self.device)
        form.member("conflicts", &self.conflicts)
    }

    package static var columns: [AnswerColumn<Self>] {
        [
            .init("PATH", \.path),
            .init("KIND", \.kind),
            .init("BYTES", \.size),
            .init("EDITED", \.edited),
            .init("DEVICE", \.device),
            .init("CONFLICTS", \.conflicts),
        ]
    }
}

/// What a part of a person's documents holds.
package struct DocumentUseRow: ListedRow, TabularRow {
    package static let list: StaticString = "parts"

    package var part = ""
    package var files: Int64 = 0
    package var folders: Int64 = 0
    package var bytes: Int64 = 0
    package var versions: Int64 = 0

    package init() {}
    package mutating func lay(in form: inout NamedForm) {
        form.member("part", &self.part)
        form.member("files", &self.files)
        form.member("folders", &self.folders)
        form.member("bytes", &self.bytes)
        form.member("versions", &self.versions)
    }

    package static var columns: [AnswerColumn<Self>] {
        [
            .init("PART", \.part),
            .init("FILES", \.files),
            .init("FOLDERS", \.folders),
            .init("BYTES", \.bytes),
            .init("VERSIONS", \.versions),
        ]
    }
}

/// A content of a file.
package struct DocumentVersionRow: ListedRow, TabularRow {
    package static let list: StaticString = "versions"

    package var contentTag = ""
    package var state = ""
    package var size: Int64 = 0
    package var edited = ""
    package var device = ""

    package init() {}
    package mutating func lay(in form: inout NamedForm) {
        form.member("contentTag", &self.contentTag)
        form.member("state", &self.state)
        form.member("size", &self.size)
        form.member("edited", &self.edited)
        form.member("device", &self.device)
    }

    package static var columns: [AnswerColumn<Self>] {
        [
            .init("CONTENT", \.contentTag),
            .init("STATE", \.state),
            .init("BYTES", \.size),
            .init("EDITED", \.edited),
            .init("DEVICE", \.device),
        ]
    }
}

/// A lock of a WebDAV client.
package struct DocumentLockRow: ListedRow, TabularRow {
    package static let list: StaticString = "locks"

    package var path = ""
    package var token = ""
    package var scope = ""
    package var depth = ""
    package var until = ""

    package init() {}
    package mutating func lay(in form: inout NamedForm) {
        form.member("path", &self.path)
        form.member("token", &self.token)
        form.member("scope", &self.scope)
        form.member("depth", &self.depth)
        form.member("until", &self.until)
    }

    package static var columns: [AnswerColumn<Self>] {
        [
            .init("PATH", \.path),
            .init("TOKEN", \.token),
            .init("SCOPE", \.scope),
            .init("DEPTH", \.depth),
            .init("UNTIL", \.until),
        ]
    }
}

/// A link by which anybody may read a file; not the link itself.
package struct PublicationRow: ListedRow, TabularRow {
    package static let list: StaticString = "publications"

    package var path = ""
    package var publication = ""
    package var name = ""
    package var size: Int64 = 0
    package var until = ""

    package init() {}
    package mutating func lay(in form: inout NamedForm) {
        form.member("path", &self.path)
        form.member("publication", &self.publication)
        form.member("name", &self.name)
        form.member("size", &self.size)
        form.member("until", &self.until)
    }

    package static var columns: [AnswerColumn<Self>] {
        [
            .init("PATH", \.path),
            .init("PUBLICATION", \.publication),
            .init("NAME", \.name),
            .init("BYTES", \.size),
            .init("UNTIL", \.until),
        ]
    }
}
