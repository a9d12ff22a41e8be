import StratusModel
import Testing

@Suite struct RecordTests {
    private static let stamp = ChangeStamp(milliseconds: 1, userRecordName: "_u", deviceID: "d")

    private static func record() -> Record {
        Record(
            name: "a", type: "Note", zone: ZoneID(name: "z", owner: "_u"), tag: ChangeTag(1),
            created: Self.stamp, modified: Self.stamp,
            fields: [Field(name: "text", value: .scalar(.string("one")))])
    }

    /// Records share what they hold until one of them changes.
    @Test func `a change of a copy leaves the original as it was`() {
        let changes: [(name: String, change: (inout Record) -> Void)] = [
            ("name", { $0.name = "b" }), ("type", { $0.type = "Book" }),
            ("zone", { $0.zone.name = "y" }), ("tag", { $0.tag = ChangeTag(2) }),
            ("created", { $0.created.milliseconds = 2 }),
            ("modified", { $0.modified.deviceID = "e" }), ("fields", { $0.fields = [] }),
            ("parent", { $0.parent = "p" }), ("shortGUID", { $0.shortGUID = "g" }),
            ("share", { $0.share = "s" }),
        ]
        for (name, change) in changes {
            let original = Self.record()
            var copy = original
            #expect(copy == original && copy.hashValue == original.hashValue, "\(name)")
            change(&copy)
            #expect(copy != original, "\(name)")
            #expect(original == Self.record(), "\(name)")
        }
    }
}
